import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { AllowanceLedger } from '../../../core/ledger/allowances/allowance-ledger';
import { LedgerUnavailable } from '../../../core/ledger/ledger';
import { accountPrefix } from '../../../core/ledger/redis/keys';
import { RedisLedger } from '../../../core/ledger/redis/redis-ledger';
import { checkRedis, connectRedis } from '../../../core/storage/redis';
import { quiet, temporaryFolder } from '../../support/databases';
import { freePort } from '../../support/free-port';
import { findProgram } from '../../support/programs';
import { startRedis } from '../../support/redis';
import { until } from '../../support/until';
import { fundedPayer, reserveRequest } from './ledger-fixture';

const CALLERS_IN_ADVANCE = 4;

async function startSentinel(master: string, masterPort: number) {
  const folder = await temporaryFolder();
  const port = await freePort();
  const file = join(folder.path, 'sentinel.conf');
  await writeFile(
    file,
    [
      `port ${port}`,
      'bind 127.0.0.1',
      `sentinel monitor ${master} 127.0.0.1 ${masterPort} 1`,
      `sentinel down-after-milliseconds ${master} 1000`,
      `sentinel failover-timeout ${master} 5000`,
    ].join('\n'),
  );
  const child = spawn(findProgram('redis-server'), [file, '--sentinel'], { stdio: 'ignore' });
  const ended = new Promise((done) => child.once('exit', done));
  return {
    port,
    stop: async () => {
      child.kill('SIGKILL');
      await ended;
      await folder.remove();
    },
  };
}

describe('the ledger behind sentinels', () => {
  const closings: (() => unknown)[] = [];
  afterEach(async () => {
    for (const close of closings.splice(0).reverse()) await close();
  });

  it('follows the master to its replica if the master is killed under load, and keeps every acknowledged call', async function () {
    this.timeout(60_000);
    const master = await startRedis();
    closings.push(() => master.stop());
    const replica = await startRedis(['--replicaof', '127.0.0.1', String(master.port)]);
    closings.push(() => replica.stop());
    const sentinel = await startSentinel('main', master.port);
    closings.push(() => sentinel.stop());
    const watching = new Redis({ host: '127.0.0.1', port: sentinel.port });
    closings.push(() => watching.disconnect());
    watching.on('error', () => undefined);
    await until(
      'the sentinel knows the replica',
      async () => {
        const replicas = (await watching.call('SENTINEL', 'REPLICAS', 'main')) as unknown[];
        return replicas.length === 1;
      },
      30_000,
    );

    const open = async (waitReplicas: number) => {
      const redis = connectRedis(`redis+sentinel://127.0.0.1:${sentinel.port}/main`, quiet);
      await checkRedis(redis, 10_000);
      const replicas = { waitReplicas, waitTimeoutMs: 100, onTooFew: 'refuse', log: quiet } as const;
      const opened = new RedisLedger({ redis, replicas });
      closings.push(() => opened.close());
      return opened;
    };
    const ledger = await open(0);
    await ledger.open();
    const waiting = await open(1);
    const payer = await fundedPayer(ledger, 100_000n);
    const inAdvance = new AllowanceLedger({ inner: await open(1), log: quiet, isHot: () => true });
    closings.push(inAdvance.stop);
    const usedMuch = await fundedPayer(ledger, 1_000_000n);
    const other = new Redis(master.url);
    closings.push(() => other.disconnect());
    other.on('error', () => undefined);
    await until('the replica is in step', async () => {
      const [reported] = /offset=(\d+)/.exec(await other.info('replication'))?.slice(1) ?? [];
      const [offset] = /master_repl_offset:(\d+)/.exec(await other.info('replication'))?.slice(1) ?? [];
      return reported !== undefined && Number(reported) >= Number(offset) - 1_000;
    });
    await other.call('WAIT', 1, 1_000);

    const told: string[] = [];
    let isKilled = false;
    const caller = async () => {
      for (;;) {
        const request = reserveRequest(payer, 10n);
        try {
          await waiting.reserve(request);
          await waiting.settle({ ...request, costE8: 1n });
          told.push(request.rid);
        } catch (error) {
          // The replica may be late on a busy machine.
          if (isKilled) throw error;
        }
      }
    };
    let toldInAdvance = 0;
    const callerInAdvance = async () => {
      for (;;) {
        const request = reserveRequest(usedMuch, 10n);
        try {
          const { outcome } = await inAdvance.reserve(request);
          if (outcome === 'reserved') await inAdvance.settle({ ...request, costE8: 1n });
          if (outcome === 'reserved') toldInAdvance += 1;
        } catch (error) {
          if (isKilled) throw error;
        }
        await new Promise((wake) => setImmediate(wake));
      }
    };
    const inAdvanceOnes = Array.from({ length: CALLERS_IN_ADVANCE }, callerInAdvance);
    const calls = Promise.allSettled([...Array.from({ length: 16 }, caller), ...inAdvanceOnes]);
    await until('many were told', () => told.length > 500 && toldInAdvance > 500);
    isKilled = true;
    process.kill(master.pid, 'SIGKILL');
    await calls;
    const answered = await until(
      'the replica answers in its place',
      async () => {
        try {
          // Opens the ledger directly. In production the recovery compares it with Postgres first, which has its own test.
          if (!(await ledger.isReady())) await ledger.open();
          return await ledger.reserve(reserveRequest(payer, 10n));
        } catch (error) {
          assert.ok(error instanceof LedgerUnavailable, String(error));
          return undefined;
        }
      },
      40_000,
    );
    assert.deepEqual(answered, { outcome: 'reserved', heldE8: 10n });
    const there = new Redis(replica.url);
    closings.push(() => there.disconnect());
    assert.match(await there.info('replication'), /role:master/);
    const prefix = accountPrefix(payer.accountId);
    const states = await Promise.all(told.map((rid) => there.hget(`${prefix}r:${rid}`, 'state')));
    assert.deepEqual(new Set(states), new Set(['settled']));
    // The ledger acknowledges a report only when a replica has it.
    const another = await startRedis(['--replicaof', '127.0.0.1', String(replica.port)]);
    closings.push(() => another.stop());
    const spent = await until('all that was told is charged', async () => {
      const { spentE8 = 0n } = (await inAdvance.readKey(usedMuch)) ?? {};
      return spentE8 >= toldInAdvance ? Number(spentE8) : undefined;
    });
    // A call whose settlement was not answered may have been charged.
    assert.ok(spent <= toldInAdvance + CALLERS_IN_ADVANCE, `told ${toldInAdvance}, spent ${spent}`);
  });
});
