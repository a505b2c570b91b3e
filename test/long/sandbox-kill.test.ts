import { strict as assert } from 'node:assert';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startGateway, type TestGateway } from '../support/gateway';
import { endInstances } from '../support/instances';
import {
  assertBooksAreClosed,
  creation,
  running,
  SANDBOX_GATEWAY,
  terminate,
  waitForState,
} from '../support/sandboxes';
import { emptyRedis, newDatabase } from '../support/shared';
import { until } from '../support/until';

/** How long after a request the process is killed: in the admission, before, in and after the supplier's call, and while settling. */
const STEPS = [
  { verb: 'create', afterMs: 4 },
  { verb: 'create', afterMs: 30 },
  { verb: 'suspend', afterMs: 15 },
  { verb: 'resume', afterMs: 25 },
  { verb: 'terminate', afterMs: 40 },
] as const;

describe('A gateway that is killed in the middle of an operation on a sandbox', function () {
  this.timeout(240_000);

  let gateway: TestGateway;
  let dataFolder: string;
  afterEach(async () => {
    await gateway.stop();
    await endInstances(dataFolder);
    await rm(dataFolder, { recursive: true, force: true });
  });

  it('has at most one instance per sandbox after each kill, and ledger and bills that agree', async () => {
    const stores = { redisUrl: await emptyRedis(), databaseUrl: await newDatabase() };
    dataFolder = await mkdtemp(join(tmpdir(), 'tollgate-data-'));
    const plugins = {
      sandbox: { ...SANDBOX_GATEWAY.plugins.sandbox, lease: '1s', orphansEvery: '1s', orphanAfter: '2s' },
    };
    const start = () => startGateway({ ...SANDBOX_GATEWAY, plugins, stores, dataFolder });
    gateway = await start();
    const { key } = await gateway.newCustomer('50');

    for (const [index, { verb, afterMs }] of STEPS.entries()) {
      const body = creation(`kill ${index}`);
      const made = verb === 'create' ? undefined : (await running(gateway, key, `kill ${index}`)).id;
      if (made !== undefined && verb === 'resume') {
        await gateway.call(`/v1/sandboxes/${made}/suspend`, { key });
        await waitForState(gateway, key, made, 'SUSPENDED');
      }
      const path = made === undefined ? '/v1/sandboxes' : `/v1/sandboxes/${made}/${verb}`;
      const sent = gateway.call(path, { key, body: made === undefined ? body : {} }).catch(() => undefined);
      await new Promise((wake) => setTimeout(wake, afterMs));
      await gateway.kill();
      await sent;
      gateway = await start();
      // The caller repeats the creation with the same idempotency key, as the contract says.
      const again = made ?? (await until('the creation is repeated', () => repeated(gateway, key, body), 30_000));
      if (verb !== 'terminate') await waitForState(gateway, key, again, 'RUNNING,SUSPENDED');
      const ended = await terminate(gateway, key, again);
      assertBooksAreClosed(ended);
      assert.equal(ended.observedState, 'TERMINATED', JSON.stringify(ended.failure));
      await until('nothing is held', async () => (await gateway.balance(key)).heldUsd === '0.00000000', 30_000);
    }

    const list = await gateway.call('/v1/sandboxes?includeFinal=true', { method: 'GET', key });
    assert.equal(list.json.total, STEPS.length);
    const verify = await until(
      'the ledger agrees with its rows',
      async () => {
        const answer = await gateway.admin('GET', '/admin/v1/ledger/verify');
        return answer.json.items?.length === 0 ? answer : undefined;
      },
      30_000,
    );
    assert.equal(verify.status, 200, verify.text);
  });
});

async function repeated(gateway: TestGateway, key: string, body: object): Promise<string | undefined> {
  const answer = await gateway.call('/v1/sandboxes', { key, body });
  return answer.status === 202 ? (answer.json.id as string) : undefined;
}
