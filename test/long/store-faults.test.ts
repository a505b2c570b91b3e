import { createServer, type Server } from 'node:net';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { Client } from 'pg';
import { SHARDS } from '../../core/ledger/ledger';
import { LOCK_SPACE } from '../../core/ledger/outbox/ship';
import { type ClockedServer, redisServer } from '../chaos/servers';
import { ask } from '../support/calls';
import { startGateway, type TestGateway } from '../support/gateway';
import { findProgram } from '../support/programs';
import { newDatabase } from '../support/shared';
import { until } from '../support/until';
import { messagesAnswer, messagesStream, startUpstream, type TestUpstream } from '../support/upstream';

/** The shortest lease that the settings allow, so that its end takes seconds here instead of minutes. */
const LEASE_SECONDS = 5;
const COST_E8 = 10_500;
const COST_USD = '0.00010500';
const usage = { input: 10, output: 5 };
const never = new Promise<never>(() => undefined);
const HOUR = 3_600;

describe('The ledger, after a fault,', () => {
  let redis: ClockedServer;
  let databaseUrl: string;
  let client: Redis;
  let upstream: TestUpstream;
  /** A server that accepts connections and never answers. A call to it has a hold, and no upstream has the request. */
  let mute: Server;
  let gateway: TestGateway;
  let dying: TestGateway;

  before(async () => {
    findProgram('cc'); // What moves the clock of Redis is compiled here.
    redis = await redisServer('everysec');
    await redis.start();
    client = new Redis(redis.url);
    databaseUrl = await newDatabase();
    upstream = await startUpstream();
    mute = createServer((socket) => socket.on('error', () => undefined));
    await new Promise<void>((done) => mute.listen(0, '127.0.0.1', done));
    const { port } = mute.address() as { port: number };
    const start = () =>
      startGateway({
        stores: { redisUrl: redis.url, databaseUrl },
        upstreams: {
          acme: { url: upstream.url },
          mute: { url: `https://127.0.0.1:${port}`, models: { silent: {} }, timeouts: { connect: '30s' } },
        },
        system: { ledger: { leaseSeconds: LEASE_SECONDS } },
      });
    [gateway, dying] = await Promise.all([start(), start()]);
  });
  after(async () => {
    await gateway?.stop();
    await dying?.kill();
    await upstream?.stop();
    mute?.close();
    client?.disconnect();
    await redis?.remove();
  });
  beforeEach(() => upstream.reset());

  const call = (body = ask(), at = gateway, key = '') => at.call('/v1/messages', { key, body });
  const metric = async (name: string) => {
    const { text } = await gateway.admin('GET', '/metrics');
    return Number(new RegExp(`^${name} (.*)$`, 'm').exec(text)?.[1]);
  };
  /** Waits until nothing is held and the balance is as expected, and asserts that no invariant is broken. */
  const settlesAt = async (key: string, e8: number, withinMs = 10_000) => {
    const left = (e8 / 1e8).toFixed(8);
    await until(
      `nothing is held and ${left} is left`,
      async () => {
        const { balanceUsd, heldUsd } = await gateway.balance(key);
        if (balanceUsd === left && heldUsd === '0.00000000') return true;
        throw new Error(`${balanceUsd} is left, ${heldUsd} is held`);
      },
      withinMs,
    );
    await until('the books agree', async () => {
      const { status, json } = await gateway.admin('GET', '/admin/v1/ledger/verify');
      if (status === 200 && json.items.length === 0) return true;
      throw new Error(JSON.stringify(json));
    });
  };
  /** Opens a stream that has content. Its last events wait for `finish`. */
  const openStream = async (key: string, at = gateway) => {
    let finish = (): void => undefined;
    const finished = new Promise<void>((resolve) => (finish = resolve));
    upstream.next(messagesStream({ texts: ['some'], usage, waitFor: { before: 5, until: finished } }));
    const count = upstream.calls.length + 1;
    const answer = call(ask({ stream: true }), at, key);
    await upstream.call(count);
    return { answer, finish };
  };

  it('returns the holds of a killed process within lease + 5 s, and charges each call that this process had settled once', async () => {
    const { key } = await gateway.newCustomer('10');
    upstream.next(messagesStream({ texts: ['all of it'], usage }));
    const settled = await call(ask({ stream: true }), dying, key);
    expect(settled.text).to.contain('message_stop').and.to.contain(COST_USD);

    const connected = new Promise((done) => mute.once('connection', done));
    const open = [call(ask({ model: 'silent' }), dying, key)];
    await connected;
    for (const before of [4, 6]) {
      upstream.next(messagesStream({ texts: ['some', 'more'], usage, waitFor: { before, until: never } }));
      const count = upstream.calls.length + 1;
      open.push(call(ask({ stream: true }), dying, key));
      await upstream.call(count);
    }
    expect(Number((await gateway.balance(key)).heldUsd)).to.be.above(0);

    const cutOff = Promise.allSettled(open);
    await dying.kill();
    expect((await cutOff).every(({ status }) => status === 'rejected')).to.equal(true);
    await settlesAt(key, 10e8 - COST_E8, (LEASE_SECONDS + 5) * 1_000);
    const records = await until('their records exist', async () => {
      const { json } = await gateway.call('/v1/usage', { method: 'GET', key });
      return json.items.length === 4 ? (json.items as { billing: string; cost: string }[]) : undefined;
    });
    expect(records.map(({ billing, cost }) => `${billing} ${cost}`)).to.have.members([
      `actual ${COST_USD}`,
      ...Array.from({ length: 3 }, () => 'expired 0.00000000'),
    ]);
  });

  it('charges each answered call once and no other call, although Redis is emptied twice under load', async () => {
    const { key } = await gateway.newCustomer('10');
    // A credit whose entry is lost with Redis is sent again after 5 s. Until then the money is missing and calls get 402.
    await settlesAt(key, 10e8);
    upstream.always(messagesAnswer({ usage }));
    const statuses: number[] = [];
    let stopped = false;
    const caller = async () => {
      while (!stopped) statuses.push((await call(ask(), gateway, key)).status);
    };
    const callers = Array.from({ length: 8 }, caller);
    const told = () => statuses.filter((status) => status === 200).length;
    const restores = () => gateway.output().split('the ledger was compared with Postgres and restored').length;
    for (let time = 0; time < 2; time += 1) {
      const before = told();
      await until('calls are served', () => told() > before + 50);
      const restored = restores();
      await client.flushall();
      // Meanwhile the node serves calls from its allowance, or refuses them with 503.
      await until('the ledger is restored', () => restores() > restored);
    }
    const before = told();
    await until('calls are served again', () => told() > before + 50);
    stopped = true;
    await Promise.all(callers);
    expect(statuses.filter((status) => status !== 200 && status !== 503)).to.deep.equal([]);
    await settlesAt(key, 10e8 - told() * COST_E8);
  });

  it('refuses new calls with 503 while too many entries wait for Postgres, settles open calls, and recovers', async () => {
    const { key } = await gateway.newCustomer('10');
    const other = new Client({ connectionString: databaseUrl });
    await other.connect();
    try {
      // Lock all shards, as if another process shipped them and never finished.
      await other.query(
        `SELECT pg_advisory_lock(${LOCK_SPACE}, shard) FROM generate_series(0, ${SHARDS - 1}) AS shard`,
      );
      const open = await openStream(key);
      upstream.always(messagesAnswer({ usage }));
      for (let each = 0; each < 20; each += 1) expect((await call(ask(), gateway, key)).status).to.equal(200);
      const outboxes = await client.keys('*:ob');
      const sizes = await Promise.all(outboxes.map((name) => client.memory('USAGE', name, 'SAMPLES', 0)));
      const bytes = sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0);
      await client.config('SET', 'maxmemory', String(Math.round(bytes / 0.8)));
      await until('readiness says so', async () => (await gateway.call('/readyz', { method: 'GET' })).status === 503);
      const { length } = upstream.calls;
      const refused = await call(ask(), gateway, key);
      expect(refused.status).to.equal(503);
      expect(refused.json.error.code).to.equal('LEDGER_UNAVAILABLE');
      expect(refused.headers['retry-after']).to.equal('5');
      expect(upstream.calls).to.have.length(length);
      open.finish();
      expect((await open.answer).text)
        .to.contain('message_stop')
        .and.to.contain(COST_USD);
      expect((await gateway.balance(key)).balanceUsd).to.equal(((10e8 - 21 * COST_E8) / 1e8).toFixed(8));
    } finally {
      await other.end();
      await client.config('SET', 'maxmemory', '0');
    }
    await until('calls are served again', async () => (await call(ask(), gateway, key)).status === 200);
    await settlesAt(key, 10e8 - 22 * COST_E8);
  });

  it("charges nothing for the calls that are open when Redis's clock jumps by an hour, counts them, and charges all others", async () => {
    const { setClock } = redis;
    if (setClock === undefined) throw new Error('the C compiler could not make what moves the clock of Redis');
    const { key } = await gateway.newCustomer('10');
    upstream.always(messagesAnswer({ usage }));
    const before = await metric('tollgate_ledger_late_settles_total');
    let now = 0;
    for (const then of [HOUR, 0, -HOUR, 0]) {
      const open = await openStream(key);
      await setClock(then);
      if (then > now)
        await until('its lease is over', async () => (await gateway.balance(key)).heldUsd === '0.00000000');
      expect((await call(ask(), gateway, key)).status).to.equal(200);
      open.finish();
      expect((await open.answer).text).to.contain('message_stop');
      now = then;
    }
    await settlesAt(key, 10e8 - 6 * COST_E8);
    expect(await metric('tollgate_ledger_late_settles_total')).to.equal(before + 2);
  });
});
