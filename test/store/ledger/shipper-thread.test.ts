import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import type { Knex } from 'knex';
import { type Logger, pino } from 'pino';
import { newId } from '../../../core/ids';
import { startGuardian } from '../../../core/ledger/guardian';
import type { Ledger } from '../../../core/ledger/ledger';
import { type ShipperThreadOptions, startShipperThread } from '../../../core/ledger/outbox/shipper-thread';
import type { Payer } from '../../../core/ledger/payer';
import { ensureReady } from '../../../core/ledger/recovery';
import { openRedisLedger } from '../../../core/ledger/redis/redis-ledger';
import { ALL_SHARDS } from '../../../core/ledger/shard';
import { metrics } from '../../../core/metrics';
import { openPostgres } from '../../../core/storage/database';
import { connectRedis, type RedisClient } from '../../../core/storage/redis';
import { quiet } from '../../support/databases';
import { freePort } from '../../support/free-port';
import { emptyRedis, newDatabase } from '../../support/shared';
import { until } from '../../support/until';
import { keyRequest, newPayer, reserveRequest } from './ledger-fixture';
import { insertCredit, insertPayer, readChain } from './ledger-rows';

const program = (name: string) => join(__dirname, `../../support/scripts/${name}.cjs`);

describe('the thread of the outbox shipper', () => {
  let redisUrl: string;
  let databaseUrl: string;
  let redis: RedisClient;
  let ledger: Ledger;
  let database: Knex;

  before(async () => {
    [redisUrl, databaseUrl] = [await emptyRedis(), await newDatabase()];
    redis = connectRedis(redisUrl, quiet);
    ledger = await openRedisLedger({ redis, log: quiet });
    database = openPostgres(databaseUrl, { log: quiet });
    await ensureReady({ ledger, database, log: quiet });
  });
  after(async () => {
    await ledger.close();
    await database.destroy();
  });

  const start = (options: Partial<ShipperThreadOptions> = {}) =>
    startShipperThread({ redisUrl, databaseUrl, log: quiet, program: program('shipper-worker'), ...options });

  const fund = async (): Promise<Payer> => {
    const payer = newPayer();
    await insertPayer(database, payer);
    await ledger.setAccount(payer.accountId, 'active');
    await ledger.setKey(keyRequest(payer));
    const rid = newId();
    await insertCredit(database, payer.accountId, rid, 1_000n);
    await ledger.credit({ accountId: payer.accountId, rid, amountE8: 1_000n });
    return payer;
  };
  const spend = async (payer: Payer) => {
    const request = reserveRequest(payer, 1n);
    assert.equal((await ledger.reserve(request)).outcome, 'reserved');
    await ledger.settle({ ...payer, rid: request.rid, costE8: 1n, record: request.record });
  };
  const waiting = async () => (await ledger.readOutbox(ALL_SHARDS, 1)).size;
  const isShipped = async () => (await waiting()) === 0;

  it('ships entries that it finds, that it is woken for, and that are left when it stops', async () => {
    const payer = await fund();
    const written: string[] = [];
    const shipper = start({ onWritten: (rids) => void written.push(...rids) });
    await until('the sweep has shipped the credit', isShipped);
    await spend(payer);
    shipper.nudge(payer.accountId);
    await until('the nudge has shipped the charge', isShipped, 700);
    await spend(payer);
    await shipper.stop();
    assert.equal(await waiting(), 0, 'what is left is shipped at the end');
    const chain = await readChain(database, payer.accountId);
    assert.equal(chain.length, 3);
    assert.deepEqual(
      written,
      chain.map(({ rid }) => rid),
    );
  });

  it('writes every entry once, even if two threads share an outbox', async () => {
    const payers = await Promise.all(Array.from({ length: 8 }, fund));
    const shippers = [start(), start()];
    try {
      for (let round = 0; round < 20; round++) {
        await Promise.all(payers.map(spend));
        for (const { accountId } of payers) for (const shipper of shippers) shipper.nudge(accountId);
      }
      await until('all is shipped', isShipped);
    } finally {
      await Promise.all(shippers.map((shipper) => shipper.stop()));
    }
    for (const { accountId } of payers) assert.equal((await readChain(database, accountId)).length, 21);
  });

  it('is restarted when it crashes, logs this, and writes every entry once', async () => {
    const lines: string[] = [];
    const log: Logger = pino({ level: 'error' }, { write: (line) => void lines.push(line) });
    const payer = await fund();
    const shipper = start({ log, program: program('crashing-shipper-worker') });
    try {
      for (let crashes = 1; crashes <= 2; crashes++) {
        await spend(payer);
        shipper.nudge(payer.accountId);
        await until('it has broken', () => lines.length >= crashes);
      }
      assert.match(lines[0] ?? '', /the thread has crashed.*the shipper failed and is restarted/);
      await spend(payer);
      await until('all is shipped', isShipped);
      assert.match(await metrics.metrics(), /tollgate_ledger_shipper_restarts_total [2-9]/);
    } finally {
      await shipper.stop();
    }
    assert.equal((await readChain(database, payer.accountId)).length, 4);
  });

  it('reports the age of the oldest entry while the database is away', async () => {
    const payer = await fund();
    const shipper = start({ databaseUrl: `postgres://postgres@127.0.0.1:${await freePort()}/none` });
    try {
      await until('its report is there', () => shipper.oldestAgeMs() > 500);
      assert.deepEqual(await readChain(database, payer.accountId), []);
    } finally {
      await shipper.stop();
    }
  });

  it('shuts a ledger that went back in time, and continues once it was recovered', async () => {
    const payer = await fund();
    const shipper = start();
    const guardian = startGuardian({ ledger, database, log: quiet, everyMs: 50 });
    const seqs = () => database('ledger_entries').where({ account_id: payer.accountId }).orderBy('seq').pluck('seq');
    const isAnswering = async () => (await ledger.readAccount(payer.accountId)) !== undefined;
    try {
      await until('all is shipped', isShipped);
      // Simulates a Redis that lost its last second: it will give an entry the number that Postgres has for another.
      await database('ledger_accounts').where({ account_id: payer.accountId }).increment('seq', 1);
      await spend(payer);
      shipper.nudge(payer.accountId);
      await until('the charge continues the chain', async () => (await seqs()).length === 2);
      assert.deepEqual(await seqs(), [1n, 3n]);
      await until('the ledger answers again', isAnswering);
      await (redis as Redis).flushall();
      await until('the ledger is filled again', isAnswering);
      await spend(payer);
      shipper.nudge(payer.accountId);
      await until('what came after is shipped', async () => (await seqs()).length === 3);
    } finally {
      await guardian.stop();
      await shipper.stop();
    }
  });
});
