import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { newId } from '../../../core/base/ids';
import { startGuardian } from '../../../core/ledger/guardian';
import { type Ledger, LedgerUnavailable, type Payer } from '../../../core/ledger/ledger';
import { MemoryLedger } from '../../../core/ledger/memory-ledger';
import { shipShards } from '../../../core/ledger/outbox/ship';
import { startShipper } from '../../../core/ledger/outbox/shipper';
import { recover } from '../../../core/ledger/recovery';
import { ALL_SHARDS } from '../../../core/ledger/shard';
import { checkRedis, connectRedis } from '../../../core/storage/redis';
import { DATABASES, quiet, type TestDatabase, temporaryFolder } from '../../support/databases';
import { startRedis } from '../../support/redis';
import { rejection } from '../../support/rejection';
import { until } from '../../support/until';
import {
  assertIncludes,
  keyRequest,
  newPayer,
  openRedisLedger,
  reserveRequest,
  settingsOf,
  usageRecord,
} from './ledger-fixture';
import { insertCredit, insertPayer, readChain } from './ledger-rows';

describe('a ledger whose data is older than the data in Postgres', () => {
  let test: TestDatabase;
  let database: Knex;
  const closings: (() => unknown)[] = [];

  before(async () => {
    const [postgres] = DATABASES;
    assert.ok(postgres !== undefined);
    test = await postgres.open();
    database = test.database;
  });
  after(() => test.close());
  afterEach(async () => {
    for (const close of closings.splice(0).reverse()) await close();
  });

  const fund = async (ledger: Ledger, amountE8: bigint) => {
    const payer = newPayer();
    const rid = newId();
    await insertPayer(database, payer);
    await insertCredit(database, payer.accountId, rid, amountE8);
    await ledger.setAccount(payer.accountId, 'active');
    await ledger.setKey(keyRequest(payer));
    await ledger.credit({ accountId: payer.accountId, rid, amountE8 });
    return payer;
  };
  const spend = async (ledger: Ledger, payer: Payer, costE8: bigint) => {
    const request = reserveRequest(payer, costE8);
    assert.equal((await ledger.reserve(request)).outcome, 'reserved');
    await ledger.settle({ ...payer, rid: request.rid, costE8, record: JSON.stringify(usageRecord(payer)) });
  };
  /** Ships, with retries while a recovery holds the shards slightly longer than the ledger is shut. */
  const ship = (ledger: Ledger) =>
    until('no other shipper holds a shard', async () => {
      const taken = await shipShards({ ledger, database, log: quiet }, ALL_SHARDS);
      return taken.length === 0;
    });

  it('after a restart of Redis from an old copy accepts no calls until corrected, and healthy accounts stay unchanged', async function () {
    this.timeout(60_000);
    const folder = await temporaryFolder();
    closings.push(folder.remove);
    let server = await startRedis(['--dir', folder.path]);
    closings.push(() => server.stop());
    const redis = connectRedis(server.url, quiet);
    await checkRedis(redis);
    const ledger = await openRedisLedger(redis);
    closings.push(() => ledger.close());
    await recover({ ledger, database, log: quiet });
    const [behind, healthy] = [await fund(ledger, 1_000n), await fund(ledger, 1_000n)];
    const open = reserveRequest(healthy, 600n);
    await ledger.reserve(open);
    const [revoked, frozen] = [await fund(ledger, 1_000n), await fund(ledger, 1_000n)];
    await ship(ledger);
    await redis.save();
    for (let each = 0; each < 3; each++) await spend(ledger, behind, 300n);
    await ship(ledger);
    await database('api_keys').where({ id: revoked.keyId }).update({ status: 'revoked', rev: 1 });
    await ledger.setKey(keyRequest(revoked, { status: 'revoked', settings: settingsOf({ rev: 1 }) }));
    await database('accounts').where({ id: frozen.accountId }).update({ status: 'frozen' });
    await ledger.setAccount(frozen.accountId, 'frozen');

    process.kill(server.pid, 'SIGKILL');
    await until('it is gone', () => redis.status !== 'ready');
    server = await startRedis(['--dir', folder.path, '--port', String(server.port)]);
    await until('it is there again', () => redis.status === 'ready');
    const refused = await rejection(ledger.reserve(reserveRequest(behind, 700n)));
    assert.ok(refused instanceof LedgerUnavailable, String(refused));

    const guardian = startGuardian({ ledger, database, log: quiet, everyMs: 20 });
    closings.push(() => guardian.stop());
    await until('it answers again', () => ledger.readAccount(behind.accountId).catch(() => undefined));
    assertIncludes(await ledger.readAccount(behind.accountId), { postedE8: 100n, availableE8: 100n, seq: 4 });
    assertIncludes(await ledger.readAccount(healthy.accountId), { postedE8: 1_000n, heldE8: 600n, seq: 1 });
    assert.equal((await ledger.settle({ ...healthy, rid: open.rid, costE8: 5n, record: '' })).outcome, 'settled');
    assert.deepEqual(await ledger.reserve(reserveRequest(revoked, 1n)), { outcome: 'revoked' });
    assert.deepEqual(await ledger.reserve(reserveRequest(frozen, 1n)), { outcome: 'frozen' });
    await ship(ledger);
    assert.equal((await readChain(database, behind.accountId)).length, 4);
    assert.equal((await readChain(database, healthy.accountId)).length, 2);
  });

  it('without a restart is closed by its shipper; its later decisions continue the chain and are never charged twice', async () => {
    const first = new MemoryLedger();
    await first.open();
    const payer = await fund(first, 100n);
    await ship(first);
    const stale = new MemoryLedger();
    await recover({ ledger: stale, database, log: quiet });
    await spend(first, payer, 30n);
    await ship(first);

    await spend(stale, payer, 20n);
    await spend(stale, payer, 75n);
    const shipper = startShipper({ ledger: stale, database, log: quiet });
    closings.push(() => shipper.stop());
    await until('the shipper has noticed', async () => !(await stale.isReady()));
    assert.equal((await readChain(database, payer.accountId)).length, 2, 'nothing was written');

    await recover({ ledger: stale, database, log: quiet });
    const chain = await readChain(database, payer.accountId);
    assert.deepEqual(
      chain.map(({ amount }) => amount),
      [100n, -30n, -20n, -50n],
      'the last charge takes what is left; the rest is the loss of the platform',
    );
    const entries = await database('ledger_entries').where({ account_id: payer.accountId, seq: 4 });
    assert.equal(entries[0]?.shortfall_e8, 25n);
    const costs = await database('usage_records').where({ account_id: payer.accountId }).sum({ all: 'cost_e8' });
    assert.equal(String(costs[0]?.['all']), '100');
    assertIncludes(await stale.readAccount(payer.accountId), { postedE8: 0n, availableE8: 0n, seq: 4 });
    assertIncludes(await stale.readKey(payer), { spentE8: 100n });
  });
});
