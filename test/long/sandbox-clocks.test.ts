import { strict as assert } from 'node:assert';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeClock } from '../chaos/servers';
import { startGateway, type TestGateway } from '../support/gateway';
import { findProgram } from '../support/programs';
import { type AnyRecord, assertBooksAreClosed, running, SANDBOX_GATEWAY, terminate, units } from '../support/sandboxes';
import { emptyRedis, newDatabase } from '../support/shared';

const HOUR = 3_600;
/** What a minute costs at USD 3.6 an hour, in units of 1e-8 USD. */
const MINUTE_E8 = 6_000_000n;

type Clock = NonNullable<Awaited<ReturnType<typeof makeClock>>>;

describe('sandboxes whose processes have wrong clocks', function () {
  this.timeout(180_000);
  const folders: string[] = [];
  let clocks: { readonly serving: Clock; readonly working: Clock };
  let gateway: TestGateway;
  let worker: TestGateway;
  let key: string;

  const newClock = async (): Promise<Clock | undefined> => {
    const folder = await mkdtemp(join(tmpdir(), 'tollgate-clock-'));
    folders.push(folder);
    return makeClock(folder);
  };

  before(async () => {
    findProgram('cc');
    const [serving, working] = await Promise.all([newClock(), newClock()]);
    if (serving === undefined || working === undefined) throw new Error('clocks cannot be moved here');
    clocks = { serving, working };
    // This clock is an hour behind from the start.
    await serving.set(-HOUR);
    const stores = { redisUrl: await emptyRedis(), databaseUrl: await newDatabase() };
    const plugins = { sandbox: { ...SANDBOX_GATEWAY.plugins.sandbox, observeSteady: '200ms' } };
    const options = { ...SANDBOX_GATEWAY, plugins, stores };
    [gateway, worker] = await Promise.all([
      startGateway({ ...options, env: { ROLE: 'gateway', ...serving.env } }),
      startGateway({ ...options, env: { ROLE: 'worker', ...working.env } }),
    ]);
    ({ key } = await gateway.newCustomer('20'));
  });
  after(async () => {
    await gateway?.stop();
    await worker?.stop();
    for (const folder of folders) await rm(folder, { recursive: true, force: true });
  });

  /** Waits for several looks of the worker at the instance. */
  const aWhile = () => new Promise((wake) => setTimeout(wake, 1_500));

  function assertIsOfMoments(record: AnyRecord, begunMs: number): void {
    assertBooksAreClosed(record);
    assert.equal(record.observedState, 'TERMINATED', JSON.stringify(record.failure));
    assert.ok(units(record.totalCost) > 0n && units(record.totalCost) < MINUTE_E8, record.totalCost);
    const times = [record.createdAt, record.terminatedAt, record.usageSegments[0].startsAt].map(Date.parse);
    for (const time of times) assert.ok(time > begunMs - 1_000 && time < Date.now() + 1_000, JSON.stringify(record));
  }

  it("use the database's clock for their start, their payment in advance and their end", async () => {
    const begunMs = Date.now();
    const { id, reservedUntil } = await running(gateway, key, 'an hour behind');
    assert.ok(Date.parse(reservedUntil) > Date.now() + 9 * 60_000, reservedUntil);
    assertIsOfMoments(await terminate(gateway, key, id), begunMs);
  });

  for (const [what, seconds] of [
    ['forward', HOUR],
    ['back', -HOUR],
  ] as const) {
    it(`are billed for the time that they ran, although the clocks are set ${what} by an hour meanwhile`, async () => {
      const begunMs = Date.now();
      const { id } = await running(gateway, key, `set ${what}`);
      for (const clock of Object.values(clocks)) await clock.set(seconds);
      await aWhile();
      const seen = await gateway.call(`/v1/sandboxes/${id}`, { method: 'GET', key });
      assert.equal(seen.json.observedState, 'RUNNING');
      assertIsOfMoments(await terminate(gateway, key, id), begunMs);
    });
  }
});
