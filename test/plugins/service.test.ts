import assert from 'node:assert/strict';
import type { Handler, Route } from '../../core/api/route';
import type { PluginGateway } from '../../core/gateway/plugin-gateway';
import { remembered } from '../../core/remembered';
import service from '../../plugins/service';
import { SampleResponse, sampleRequest } from '../support/exchange';

/** Makes `/readyz` over stores that count how often they are queried. */
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
  it('queries the stores once for many requests at one moment', async () => {
    const { asked, statusNow } = readyz();
    const statuses = await Promise.all(Array.from({ length: 500 }, statusNow));
    assert.deepEqual([...new Set(statuses)], [200]);
    assert.equal(await statusNow(), 200);
    // The moment may end before a busy machine has answered.
    assert(asked.ledger <= 5 && asked.database <= 5, JSON.stringify(asked));
  });

  it('reports at once that the process is stopping, or that the outbox is full', async () => {
    const { state, statusNow } = readyz();
    assert.equal(await statusNow(), 200);
    state.isStopping = true;
    assert.equal(await statusNow(), 503);
    state.isStopping = false;
    state.isOutboxFull = true;
    assert.equal(await statusNow(), 503);
  });
});

describe('a cached value', () => {
  it('is shared until it expires, even while it is computed, and computed again afterwards', async () => {
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
