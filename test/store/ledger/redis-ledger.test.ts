import assert from 'node:assert/strict';
import { Redis } from 'ioredis';
import { newId } from '../../../core/base/ids';
import { CLOSED_MS, INTENT_MS, LedgerUnavailable, MAX_INTENTS } from '../../../core/ledger/ledger';
import { accountPrefix } from '../../../core/ledger/redis/keys';
import { LEDGER_SCRIPTS } from '../../../core/ledger/redis/redis-ledger';
import { dayNumberOf, NO_SPENDING, newScope, spend } from '../../../core/ledger/scopes';
import { shardOf } from '../../../core/ledger/shard';
import { checkRedis, connectRedis } from '../../../core/storage/redis';
import { quiet } from '../../support/databases';
import { freePort } from '../../support/free-port';
import { startRedis } from '../../support/redis';
import { watchCommands } from '../../support/redis-monitor';
import { rejection } from '../../support/rejection';
import { emptyRedis } from '../../support/shared';
import { settlesWithin, until } from '../../support/until';
import { fundedPayer, keyRequest, openRedisLedger, reserveRequest } from './ledger-fixture';
import { ledgerSuite } from './ledger-suite';

/** What a test has opened. The hook closes it even if the test fails. */
const closings: (() => unknown)[] = [];

const openLedger = async (url: string, commandTimeout?: number) => {
  const redis = connectRedis(url, quiet);
  if (commandTimeout !== undefined && redis instanceof Redis) redis.options.commandTimeout = commandTimeout;
  closings.push(() => redis.disconnect());
  await checkRedis(redis);
  const ledger = await openRedisLedger(redis);
  closings.push(() => ledger.close());
  return ledger;
};
const openOther = (url: string) => {
  const other = new Redis(url);
  closings.push(() => other.disconnect());
  return other;
};
const startServer = async (options: readonly string[] = []) => {
  const server = await startRedis(options);
  closings.push(() => server.stop());
  return server;
};

const closeAll = async () => {
  for (const close of closings.splice(0).reverse()) await close();
};

// Waits long for answers, because a busy machine must not fail the test.
ledgerSuite('in Redis', async () => openLedger(await emptyRedis(), 30_000));

describe('the ledger in Redis', () => {
  afterEach(closeAll);

  const minutesLeftIn = (redis: Redis) => async (rid: string) => {
    const [key] = await redis.keys(`*:r:${rid}`);
    const seconds = await redis.ttl(key ?? '');
    return seconds < 0 ? 'for ever' : Math.round(seconds / 60);
  };

  it('keeps an Idempotency-Key for ten of the fifteen minutes in which it keeps the closed reservation', async () => {
    const url = await emptyRedis();
    const ledger = await openLedger(url);
    await ledger.open();
    const payer = await fundedPayer(ledger, 1_000n);
    const intent = { key: 'key', body: 'body', requestId: 'req_1' };
    const first = reserveRequest(payer, 1n, { intent });
    await ledger.reserve(first);
    await ledger.settle({ ...payer, rid: first.rid, costE8: 1n, record: '' });
    const other = openOther(url);
    const outcomeWith = async (leftMs: number) => {
      await other.pexpire(`${accountPrefix(payer.accountId)}r:${first.rid}`, leftMs);
      return (await ledger.reserve(reserveRequest(payer, 1n, { intent }))).outcome;
    };
    const leftMs = CLOSED_MS - INTENT_MS;
    assert.equal(await outcomeWith(leftMs + 30_000), 'intent_charged');
    assert.equal(await outcomeWith(leftMs), 'reserved');
  });

  it('keeps at most MAX_INTENTS Idempotency-Keys of an account, and as many members of their sorted set', async () => {
    const url = await emptyRedis();
    const ledger = await openLedger(url, 30_000);
    await ledger.open();
    const payer = await fundedPayer(ledger, 1_000_000n);
    const take = async (index: number) => {
      const intent = { key: `key-${index}`, body: 'body', requestId: 'req_1' };
      const request = reserveRequest(payer, 1n, { intent });
      assert.equal((await ledger.reserve(request)).outcome, 'reserved');
      return request;
    };
    for (let index = 0; index < MAX_INTENTS; index += 1) {
      const { rid } = await take(index);
      if (index < 50) await ledger.settle({ ...payer, rid, costE8: 1n, record: '' });
    }
    for (let index = 0; index < 50; index += 1) await take(MAX_INTENTS + index);
    const other = openOther(url);
    const p = accountPrefix(payer.accountId);
    const counts = [await other.hlen(`${p}i:${payer.accountId}`), await other.zcard(`${p}io:${payer.accountId}`)];
    assert.deepEqual(counts, [MAX_INTENTS, MAX_INTENTS]);
  }).timeout(60_000);

  it('deletes the Idempotency-Keys of an account that has had no new ones for a day', async () => {
    const url = await emptyRedis();
    const ledger = await openLedger(url);
    await ledger.open();
    const payer = await fundedPayer(ledger, 1_000n);
    const intent = { key: 'key', body: 'body', requestId: 'req_1' };
    await ledger.reserve(reserveRequest(payer, 1n, { intent }));
    const other = openOther(url);
    for (const name of ['i', 'io']) {
      const seconds = await other.ttl(`${accountPrefix(payer.accountId)}${name}:${payer.accountId}`);
      assert.equal(Math.round(seconds / 60), 24 * 60, name);
    }
  });

  it('keeps closed reservations for a quarter of an hour after their rows are committed', async () => {
    const url = await emptyRedis();
    const ledger = await openLedger(url);
    await ledger.open();
    const payer = await fundedPayer(ledger, 1_000n);
    const [closed, open, tombstone] = [reserveRequest(payer, 1n), reserveRequest(payer, 1n), newId()];
    await ledger.reserve(closed);
    await ledger.reserve(open);
    await ledger.settle({ ...payer, rid: closed.rid, costE8: 1n, record: '' });
    await ledger.release({ ...payer, rid: tombstone, record: '' });
    const other = openOther(url);
    const minutesLeft = minutesLeftIn(other);
    assert.deepEqual(await Promise.all([closed.rid, open.rid, tombstone].map(minutesLeft)), [
      'for ever',
      'for ever',
      15,
    ]);
    const shard = shardOf(payer.accountId);
    const entries = (await ledger.readOutbox([shard], 10)).get(shard) ?? [];
    // Removes the time limit that the first one had.
    await other.persist(`${accountPrefix(payer.accountId)}r:${entries[0]?.rid}`);
    await ledger.trimOutbox(shard, entries);
    assert.deepEqual(new Set(await Promise.all(entries.map(({ rid }) => minutesLeft(rid)))), new Set([15]));
    assert.equal(await minutesLeft(open.rid), 'for ever');
    assert.ok((await other.ttl(`${accountPrefix(payer.accountId)}ob`)) < 0, 'the outbox itself stays');
  });

  it('keeps restored reservations like others: closed ones for a quarter of an hour, open ones until they close', async () => {
    const url = await emptyRedis();
    const ledger = await openLedger(url);
    await ledger.open();
    const payer = await fundedPayer(ledger, 1_000n);
    const [closed, open] = [newId(), newId()];
    await ledger.release({ ...payer, rid: open, record: '' });
    const minutesLeft = minutesLeftIn(openOther(url));
    assert.equal(await minutesLeft(open), 15);
    await ledger.restore([
      {
        accountId: payer.accountId,
        status: 'active',
        postedE8: 800n,
        seq: 2,
        keys: [],
        closed: [{ rid: closed, kind: 'charge', keyId: payer.keyId, amountE8: -200n, shortfallE8: 0n }],
        spending: NO_SPENDING,
        scopes: [],
        open: [{ ...payer, rid: open, amountE8: 5n, scopes: '' }],
      },
    ]);
    assert.deepEqual(await Promise.all([closed, open].map(minutesLeft)), [15, 'for ever']);
  });
});

describe('the outbox of the ledger in Redis', () => {
  afterEach(closeAll);

  it('is read and trimmed in batches, between which Redis serves calls', async () => {
    const url = await emptyRedis();
    const ledger = await openLedger(url);
    await ledger.open();
    const payer = await fundedPayer(ledger, 100n);
    const { accountId } = payer;
    for (let each = 0; each < 199; each += 1) await ledger.credit({ accountId, rid: newId(), amountE8: 1n });
    const seen: number[] = [];
    const monitor = await watchCommands(url, ({ words: [command = '', ...args] }) => {
      if (command.toLowerCase() === 'xrange' && args.length === 5) seen.push(Number(args[4]));
      if (command.toLowerCase() === 'evalsha') seen.push(Number(args[1]) - 1);
    });
    try {
      const shard = shardOf(accountId);
      const entries = (await ledger.readOutbox([shard], 1_000)).get(shard) ?? [];
      await ledger.trimOutbox(shard, entries);
      assert.equal(entries.length, 200);
      assert.equal((await ledger.readOutbox([shard], 1_000)).size, 0);
      await until('the monitor has seen all of it', () => seen.length >= 9);
    } finally {
      monitor.stop();
    }
    assert.ok(Math.max(...seen) <= 64, String(seen));
  });

  it('is not trimmed by a late shipper after the ledger was lost and the clock of Redis was set back', async () => {
    const url = await emptyRedis();
    const ledger = await openLedger(url);
    await ledger.open();
    const payer = await fundedPayer(ledger, 100n);
    const shard = shardOf(payer.accountId);
    const read = async () => (await ledger.readOutbox([shard], 10)).get(shard) ?? [];
    const entries = await read();
    const other = openOther(url);
    await other.flushall();
    const fields = Object.entries({ kind: 'release', seq: 1, amount: 0, posted: 0, shortfall: 0 });
    await other.xadd(`${accountPrefix(payer.accountId)}ob`, '1-1', ...fields.flat());
    await ledger.trimOutbox(shard, entries);
    assert.deepEqual(
      (await read()).map(({ id }) => id),
      ['1-1'],
    );
    await ledger.trimOutbox(shard, await read());
    assert.deepEqual(await read(), []);
    await ledger.trimOutbox(shard, entries);
  });
});

const DAY_MS = 86_400_000;

describe('the calendar in the scripts of Redis', () => {
  afterEach(closeAll);

  it('agrees with the calendar of JavaScript for every day of 430 years', async () => {
    const calendar = `${sharedText()}
      local found = {}
      for day = ARGV[1], ARGV[2] do table.insert(found, { month_of(day), week_of(day) }) end
      return found`;
    const redis = openOther(await emptyRedis());
    const lastDay = dayNumberOf(Date.UTC(2400, 2, 1));
    for (let first = 0; first <= lastDay; first += 5_000) {
      const last = Math.min(first + 4_999, lastDay);
      const found = (await redis.eval(calendar, 0, first, last)) as [number, number][];
      found.forEach(([month, week], index) => {
        const date = new Date((first + index) * 86_400_000);
        assert.equal(month, date.getUTCFullYear() * 12 + date.getUTCMonth() + 1, date.toISOString());
        const before: number | undefined = found[index - 1]?.[1];
        if (before !== undefined) assert.equal(week, date.getUTCDay() === 1 ? before + 1 : before, date.toISOString());
      });
    }
  });

  it('ends the windows of limits with their day, week and month', async () => {
    const redis = openOther(await emptyRedis());
    const spentOn = `${sharedText()} return { spent_on(tonumber(ARGV[1]), ARGV[2] .. ' 1 10 100') }`;
    const first = Date.UTC(2027, 11, 20) / DAY_MS;
    for (let last = first; last < first + 15; last += 1)
      for (let day = last; day < last + 45; day += 1) {
        const [from, to] = [new Date(last * DAY_MS), new Date(day * DAY_MS)];
        const monday = last - ((from.getUTCDay() + 6) % 7);
        const isOneMonth = from.getUTCMonth() === to.getUTCMonth() && from.getUTCFullYear() === to.getUTCFullYear();
        const expected = [day === last ? 1 : 0, day < monday + 7 ? 10 : 0, isOneMonth ? 100 : 0];
        const title = `${from.toISOString()} and ${to.toISOString()}`;
        assert.deepEqual(await redis.eval(spentOn, 0, day, last), expected, title);
        const scope = {
          ...newScope(),
          spending: { day: last, spentE8: { total: 0n, day: 1n, week: 10n, month: 100n } },
        };
        spend(scope, 0n, day);
        const { day: ofDay, week, month } = scope.spending.spentE8;
        assert.deepEqual([ofDay, week, month].map(Number), expected, title);
      }
  });
});

/** Returns the functions that the scripts share: their text before their first check. */
function sharedText(): string {
  const { source } = LEDGER_SCRIPTS.find(({ name }) => name === 'reserve') ?? { source: '' };
  return source.slice(0, source.indexOf("\nif redis.call('HEXISTS'"));
}

describe('deadlines in Redis', () => {
  afterEach(closeAll);

  it('follow the clock of Redis, to the millisecond', async () => {
    const url = await emptyRedis();
    const ledger = await openLedger(url);
    await ledger.open();
    const payer = await fundedPayer(ledger, 1_000n);
    const other = openOther(url);
    const nowMs = async () => {
      const [seconds = 0, micros = 0] = (await other.time()).map(Number);
      return seconds * 1_000 + Math.floor(micros / 1_000);
    };
    const request = reserveRequest(payer, 1n, { lifetimeMs: 50_000 });
    const set: readonly (() => Promise<unknown>)[] = [
      () => ledger.reserve(request),
      () => ledger.renew({ ...payer, rid: request.rid, lifetimeMs: 50_000 }),
    ];
    for (const each of set) {
      // Waits for the second half of a second, because early in it a wrong sign of the milliseconds would not show.
      await until('it is late in a second', async () => (await nowMs()) % 1_000 > 500);
      const before = await nowMs();
      await each();
      const [, deadline] = await other.zrange(`${accountPrefix(payer.accountId)}exp`, 0, -1, 'WITHSCORES');
      assert.ok(Number(deadline) >= before + 50_000 && Number(deadline) <= (await nowMs()) + 50_000);
    }
  });
});

describe('the ledger when Redis fails', () => {
  afterEach(closeAll);

  const isRefusedInTime = async (operation: () => Promise<unknown>): Promise<boolean> => {
    const error = rejection(operation());
    const inTime = await settlesWithin(300, error);
    assert.ok((await error) instanceof LedgerUnavailable, String(await error));
    return inTime;
  };

  it('refuses every operation within 300 ms while Redis stalls, at any load, and works again afterwards', async () => {
    const server = await startServer();
    const ledger = await openLedger(server.url);
    try {
      await ledger.open();
      const payer = await fundedPayer(ledger, 1_000n);
      process.kill(server.pid, 'SIGSTOP');
      // Waits longer than the ledger needs to drop the connection, so that the silent and the new connection are tested.
      for (let second = 0; second < 3; second++) {
        const inTime = await Promise.all(
          Array.from({ length: 50 }, () => isRefusedInTime(() => ledger.reserve(reserveRequest(payer, 1n)))),
        );
        assert.ok(!inTime.includes(false), `of 50, ${inTime.filter((each) => !each).length} were late`);
        await new Promise((wake) => setTimeout(wake, 500));
      }
      process.kill(server.pid, 'SIGCONT');
      await until('reserves are taken again', async () => {
        return (await ledger.reserve(reserveRequest(payer, 1n))).outcome === 'reserved';
      });
    } finally {
      process.kill(server.pid, 'SIGCONT');
    }
  });

  it('accepts answers that arrived while its own process was blocked', async () => {
    const redis = connectRedis(await emptyRedis(), quiet);
    closings.push(() => redis.disconnect());
    await checkRedis(redis);
    let closes = 0;
    redis.on('close', () => closes++);
    const answer = redis.time();
    await new Promise((sent) => setImmediate(sent));
    // Stands still longer than a command may take and a connection may be silent.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_200);
    assert.equal((await answer).length, 2);
    await redis.ping();
    assert.equal(closes, 0);
  });

  it('refuses at once after Redis restarts without data, until recovery has filled it', async () => {
    const server = await startServer();
    const ledger = await openLedger(server.url);
    await ledger.open();
    const payer = await fundedPayer(ledger, 1_000n);
    await server.stop();
    assert.ok(await isRefusedInTime(() => ledger.reserve(reserveRequest(payer, 1n))));
    await startServer(['--port', String(server.port)]);
    await until('it answers', async () => (await ledger.isReady().catch(() => true)) === false);
    assert.ok((await rejection(ledger.reserve(reserveRequest(payer, 1n)))) instanceof LedgerUnavailable);
    await ledger.open();
    await ledger.setAccount(payer.accountId, 'active');
    assert.deepEqual(await ledger.reserve(reserveRequest(payer, 1n)), { outcome: 'unknown_key' });
  });

  it('loads its scripts again when Redis has lost them', async () => {
    const url = await emptyRedis();
    const ledger = await openLedger(url);
    await ledger.open();
    const payer = await fundedPayer(ledger, 1_000n);
    const other = openOther(url);
    await other.script('FLUSH');
    assert.deepEqual(await ledger.reserve(reserveRequest(payer, 1n)), { outcome: 'reserved', heldE8: 1n });
    await other.flushall();
    await other.script('FLUSH');
    assert.deepEqual(await ledger.reserve(reserveRequest(payer, 1n)), { outcome: 'not_ready' });
  });

  it('refuses holds while Redis is full, but accepts settles, releases and a revocation', async () => {
    const url = await emptyRedis();
    const ledger = await openLedger(url);
    await ledger.open();
    const payer = await fundedPayer(ledger, 1_000n);
    const requests = Array.from({ length: 2 }, () => reserveRequest(payer, 100n));
    for (const request of requests) await ledger.reserve(request);
    const [settled, released] = requests.map(({ rid }) => ({ ...payer, rid, record: '{}' }));
    const other = openOther(url);
    await other.config('SET', 'maxmemory', '1');
    try {
      assert.ok((await rejection(ledger.reserve(reserveRequest(payer, 1n)))) instanceof LedgerUnavailable);
      assert.ok(settled !== undefined && released !== undefined);
      assert.equal((await ledger.settle({ ...settled, costE8: 7n })).outcome, 'settled');
      assert.equal((await ledger.release(released)).outcome, 'released');
      assert.equal((await ledger.release({ ...payer, rid: newId(), record: '' })).outcome, 'tombstoned');
      await ledger.setKey(keyRequest(payer, { status: 'revoked' }));
      assert.equal((await ledger.readKey(payer))?.status, 'revoked');
    } finally {
      await other.config('SET', 'maxmemory', '0');
    }
  });

  it('reports the address and never the password if Redis is unreachable at start', async () => {
    const port = await freePort();
    const redis = connectRedis(`redis://user:secret-word@127.0.0.1:${port}`, quiet);
    const error = await rejection(checkRedis(redis, 300));
    redis.disconnect();
    assert.match(error.message, new RegExp(`127\\.0\\.0\\.1:${port}.*REDIS_URL`));
    assert.doesNotMatch(error.message, /secret-word/);
  });

  it('refuses to start if Redis is configured to evict keys', async () => {
    const server = await startServer(['--maxmemory-policy', 'allkeys-lru']);
    const redis = connectRedis(server.url, quiet);
    assert.match((await rejection(checkRedis(redis))).message, /noeviction/);
    redis.disconnect();
  });
});
