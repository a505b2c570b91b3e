import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import type { Ledger } from '../../../core/ledger/ledger';
import { MemoryLedger } from '../../../core/ledger/memory-ledger';
import { shipShards } from '../../../core/ledger/outbox/ship';
import { ensureReady } from '../../../core/ledger/recovery';
import { shardOf } from '../../../core/ledger/shard';
import { verify } from '../../../core/ledger/verify/verify';
import { formatUsd, parseUsd } from '../../../core/money';
import { sumSomeUntil } from '../../../core/records/usage-roll-up';
import { StartFailure } from '../../../core/start-failure';
import { migrate, openDatabase, openPostgres } from '../../../core/storage/database';
import { up as sumRefusedCalls } from '../../../migrations/before-squash/2026-11-22-sum-refused-calls';
import { quiet } from '../../support/databases';
import {
  BEFORE_SQUASH,
  OF_302D198,
  type OlderDatabase,
  restoreEmbedded,
  restorePostgres,
} from '../../support/older-databases';
import { rejection } from '../../support/rejection';
import { functionBodies, schemaText } from '../../support/schema-text';
import { newDatabase } from '../../support/shared';
import { reserveRequest, usageRecord } from '../ledger/ledger-fixture';
import { assertSumsAreExact } from '../records/exact-sums';

/** The time to create a PGlite database, which takes seconds of one core that tests may share. */
const MAKING_PGLITE_MS = 120_000;

/** More days than the age of every record in the dumps. */
const DAYS = Math.ceil((Date.now() - Date.parse('2026-11-22')) / 86_400_000);

/** A time after everything in the dumps. */
const LATER = new Date('2028-01-01');

const KINDS: readonly { readonly name: string; open(older: OlderDatabase): Promise<Knex> }[] = [
  { name: 'Postgres', open: async (older) => openPostgres(await restorePostgres(older), { log: quiet }) },
  {
    name: 'PGlite',
    open: async (older) => openDatabase({ dataFolder: await restoreEmbedded(older), log: quiet }),
  },
];

const namesIn = async (database: Knex): Promise<string[]> => database('knex_migrations').orderBy('id').pluck('name');

/** Returns the number of rows of each table, without those of the migration library. */
async function countRows(database: Knex): Promise<Record<string, number>> {
  const { rows } = await database.raw<{ rows: { name: string }[] }>(
    `SELECT relname AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
     AND relname NOT LIKE 'knex%' ORDER BY relname`,
  );
  const counts: Record<string, number> = {};
  for (const { name } of rows) {
    const [row] = await database(name).count({ count: '*' });
    counts[name] = Number(row?.['count']);
  }
  return counts;
}

async function readBalances(database: Knex, ledger: Ledger): Promise<Record<string, string>> {
  const ids: string[] = await database('accounts').orderBy('id').pluck('id');
  const balances: Record<string, string> = {};
  for (const id of ids) {
    const account = await ledger.readAccount(id);
    balances[id] = formatUsd((account?.availableE8 ?? 0n) + (account?.heldE8 ?? 0n));
  }
  return balances;
}

/** Charges 0.000001 USD for a call, with an active key. */
async function spend(database: Knex, ledger: Ledger): Promise<string> {
  const [row] = await database('api_keys')
    .join('accounts', 'accounts.id', 'account_id')
    .where({ 'api_keys.status': 'active', 'accounts.status': 'active' })
    .select({ keyId: 'api_keys.id', accountId: 'account_id', keyRev: 'rev' });
  const { keyRev, ...payer } = row as { keyId: string; accountId: string; keyRev: number };
  const record = JSON.stringify(usageRecord(payer, { createdAt: new Date().toISOString() }));
  const request = reserveRequest(payer, 100n, { keyRev, record });
  assert.equal((await ledger.reserve(request)).outcome, 'reserved');
  await ledger.settle({ ...payer, rid: request.rid, costE8: 100n, record });
  await shipShards({ ledger, database, log: quiet }, [shardOf(payer.accountId)]);
  return payer.accountId;
}

for (const { name, open } of KINDS) {
  for (const older of [OF_302D198, BEFORE_SQUASH]) {
    describe(`a database of ${older.name} on ${name}`, function () {
      this.timeout(MAKING_PGLITE_MS);
      let database: Knex;
      let ledger: Ledger;
      let rowsBefore: Record<string, number>;

      before(async () => {
        database = await open(older);
        rowsBefore = await countRows(database);
        await migrate(database);
        ledger = new MemoryLedger();
        await ensureReady({ ledger, database, log: quiet });
      });
      after(async () => {
        await ledger.close();
        await database.destroy();
      });

      const violations = async () =>
        (await verify({ ledger, database, patienceMs: 100 }, { limit: 1_000, days: DAYS })).violations;

      it('gets the same schema as a new database', async () => {
        const fresh = openPostgres(await newDatabase(), { log: quiet });
        assert.equal(await schemaText(database), await schemaText(fresh));
        assert.deepEqual(await functionBodies(database), await functionBodies(fresh));
        assert.deepEqual(await namesIn(database), await namesIn(fresh));
        await fresh.destroy();
      });

      it('keeps every row, except ports whose tokens name no key', async () => {
        assert.ok((rowsBefore['usage_records'] ?? 0) > 10);
        const lost = older === OF_302D198 ? { sandbox_ports: 0, sandbox_places: 0 } : {};
        const rows = await countRows(database);
        const added = Object.keys(rows).filter((table) => !(table in rowsBefore));
        const empty = Object.fromEntries(added.map((table) => [table, 0]));
        const { sandbox_create_rates: renamed = 0, ...others } = rowsBefore;
        const made = { session_hash_key: 1, account_rates: renamed };
        assert.deepEqual(rows, { ...others, ...empty, ...made, ...lost });
      });

      it('keeps the balances of its version, and every invariant of the ledger', async () => {
        assert.deepEqual(await readBalances(database, ledger), older.balancesUsd);
        assert.deepEqual(await violations(), []);
      });

      it('continues the chains of entries and the sums of records', async () => {
        const accountId = await spend(database, ledger);
        const balances = await readBalances(database, ledger);
        assert.equal(parseUsd(balances[accountId] ?? ''), parseUsd(older.balancesUsd[accountId] ?? '') - 100n);
        assert.deepEqual(await violations(), []);
        await sumSomeUntil(database, LATER);
        await assertSumsAreExact(database);
      });

      it('is not changed by a second start', async () => {
        const names = await namesIn(database);
        await migrate(database);
        assert.deepEqual(await namesIn(database), names);
      });
    });
  }
}

describe('a database from before the migrations were squashed', () => {
  let databaseUrl: string;
  let database: Knex;
  beforeEach(async () => {
    databaseUrl = await restorePostgres(OF_302D198);
    database = openPostgres(databaseUrl, { log: quiet });
  });
  afterEach(() => database.destroy());

  const record = (name: string) => database('knex_migrations').insert({ name, batch: 1, migration_time: new Date() });

  it('is adopted if its commit is between the two squashed versions', async () => {
    await database.transaction(sumRefusedCalls);
    await record('2026-11-22-sum-refused-calls');
    await migrate(database);
    assert.equal((await namesIn(database)).filter((name) => name.startsWith('2026-')).length, 0);
    assert.equal(await database.schema.hasTable('sandbox_places'), true);
  });

  it('is adopted once by several nodes that start at once', async () => {
    const others = [1, 2, 3].map(() => openPostgres(databaseUrl, { log: quiet }));
    await Promise.all([database, ...others].map((node) => migrate(node)));
    const names = await namesIn(database);
    assert.equal(new Set(names).size, names.length);
    await Promise.all(others.map((node) => node.destroy()));
  });

  it('is unchanged after a failure in the middle, and the next start adopts it', async () => {
    const names = await namesIn(database);
    await database.raw('CREATE TABLE sandbox_places ()');
    await rejection(migrate(database));
    assert.deepEqual(await namesIn(database), names);
    assert.equal(await database.schema.hasColumn('usage_records', 'calls'), false);
    await database.raw('DROP TABLE sandbox_places');
    await migrate(database);
    assert.equal(await database.schema.hasColumn('usage_records', 'calls'), true);
  });

  const refused: readonly { title: string; change(): PromiseLike<unknown>; named: readonly string[] }[] = [
    {
      title: 'older than commit 302d198',
      change: () => database('knex_migrations').where('name', '>', '2026-11-21-tell').delete(),
      named: ['2026-11-21-sum-usage-records', '2026-11-21-write-wider-indexes', 'Start commit 302d198'],
    },
    {
      title: 'that lacks a migration between others',
      change: () => record('2026-11-23-bind-identities'),
      named: ['2026-11-23-bind-identities', '2026-11-22-sum-refused-calls', 'restore a backup'],
    },
    {
      title: 'that has a replacement too',
      change: () => record('0005-users'),
      named: ['0005-users', '2026-11-21-write-wider-indexes', 'restore a backup'],
    },
  ];
  for (const { title, change, named } of refused) {
    it(`${title} is refused with the names of its migrations, and not changed`, async () => {
      await change();
      const names = await namesIn(database);
      const error = await rejection(migrate(database));
      assert.ok(error instanceof StartFailure);
      for (const name of named) assert.ok(error.message.includes(name), error.message);
      assert.deepEqual(await namesIn(database), names);
    });
  }
});
