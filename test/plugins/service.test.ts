import assert from 'node:assert/strict';
import type { Handler, Route } from '../../core/api/route';
import type { PluginGateway } from '../../core/gateway/plugin-gateway';
import { remembered } from '../../core/remembered';
import service from '../../plugins/service';
import { SampleResponse, sampleRequest } from '../support/exchange';

/** `/readyz` over stores that count how often they are asked. */
function readyz() {
  const asked = { ledger: 0, database: 0 };
  const state = { isStopping: false, isOutboxFull: false };
  const gateway = {
    ledger: {
      isReady: async () => {
        asked.ledger += 1;
        return true;
      },
    },
    database: {
      raw: async () => {
        asked.database += 1;
      },
    },
    isStopping: () => state.isStopping,
    isOutboxFull: () => state.isOutboxFull,
  } as unknown as PluginGateway;
  const route = service.routes?.({}, gateway).find(({ path }: Route) => path === '/readyz');
  assert(route !== undefined);
  const statusNow = async () => {
    const request = sampleRequest('GET', '/readyz');
    const response = new SampleResponse(request);
    await (route.handle as Handler)({} as never, request, response);
    return response.statusCode;
  };
  return { asked, state, statusNow };
}

describe('/readyz', () => {
  it('asks the stores once for many questions of one moment', async () => {
    const { asked, statusNow } = readyz();
    const statuses = await Promise.all(Array.from({ length: 500 }, statusNow));
    assert.deepEqual([...new Set(statuses)], [200]);
    assert.equal(await statusNow(), 200);
    // The moment may end while a busy machine answers.
    assert(asked.ledger <= 5 && asked.database <= 5, JSON.stringify(asked));
  });

  it('tells at once that the process stops, or that too much waits for Postgres', async () => {
    const { state, statusNow } = readyz();
    assert.equal(await statusNow(), 200);
    state.isStopping = true;
    assert.equal(await statusNow(), 503);
    state.isStopping = false;
    state.isOutboxFull = true;
    assert.equal(await statusNow(), 503);
  });
});

describe('what is remembered', () => {
  it('is the same for its time, also while it is under way, and is made anew afterwards', async () => {
    let nowMs = 0;
    let made = 0;
    const read = remembered(
      1_000,
      async () => {
        made += 1;
        return made;
      },
      () => nowMs,
    );
    assert.deepEqual(await Promise.all([read(), read()]), [1, 1]);
    nowMs = 999;
    assert.equal(await read(), 1);
    nowMs = 1_000;
    assert.equal(await read(), 2);
  });
});
