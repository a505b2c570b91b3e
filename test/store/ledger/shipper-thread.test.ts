import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { Knex } from 'knex';
import { type Logger, pino } from 'pino';
import { newId } from '../../../core/base/ids';
import { metrics } from '../../../core/base/metrics';
import type { Ledger, Payer } from '../../../core/ledger/ledger';
import { type ShipperThreadOptions, startShipperThread } from '../../../core/ledger/outbox/shipper-thread';
import { ensureReady } from '../../../core/ledger/recovery';
import { ALL_SHARDS } from '../../../core/ledger/shard';
import { openPostgres } from '../../../core/storage/database';
import { connectRedis, type RedisClient } from '../../../core/storage/redis';
import { quiet } from '../../support/databases';
import { freePort } from '../../support/free-port';
import { emptyRedis, newDatabase } from '../../support/shared';
import { until } from '../../support/until';
import { keyRequest, newPayer, openRedisLedger, reserveRequest } from './ledger-fixture';
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
    ledger = await openRedisLedger(redis);
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

  it('ships entries that it finds, entries that it is woken for, and entries that remain when it stops', async () => {
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

  it('is restarted after a crash, which is logged, and writes every entry once', async () => {
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

  it('reports the age of the oldest entry while the database is unreachable', async () => {
    const payer = await fund();
    const shipper = start({ databaseUrl: `postgres://postgres@127.0.0.1:${await freePort()}/none` });
    try {
      await until('its report is there', () => shipper.oldestAgeMs() > 500);
      assert.deepEqual(await readChain(database, payer.accountId), []);
    } finally {
      await shipper.stop();
    }
  });
});
