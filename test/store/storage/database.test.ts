import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Knex } from 'knex';
import { newId } from '../../../core/base/ids';
import { checkDatabase, migrate, openDatabase } from '../../../core/storage/database';
import { newDataFolder, newEmbeddedFolder } from '../../support/data-folder';
import { DATABASES, quiet, type TestDatabase } from '../../support/databases';
import { freePort } from '../../support/free-port';
import { rejection } from '../../support/rejection';
import { bareDatabase, builtServer, newDatabase } from '../../support/shared';

const dataFolder = '';

/** The time to create PGlite databases, which each take seconds of one core that tests may share. */
const MAKING_PGLITE_MS = 120_000;

describe('the embedded database', () => {
  it('does not block the event loop during a long statement', async function () {
    this.timeout(MAKING_PGLITE_MS);
    const database = await openDatabase({ dataFolder: await newEmbeddedFolder(), log: quiet });
    try {
      let turns = 0;
      const timer = setInterval(() => {
        turns += 1;
      }, 1);
      await database.raw('SELECT sum(sqrt(number)) FROM generate_series(1, 1000000) AS number');
      clearInterval(timer);
      assert.ok(turns > 10, `the event loop had ${turns} turns`);
    } finally {
      await database.destroy();
    }
  });

  it('reports the code, the table and the constraint of an error', async function () {
    this.timeout(MAKING_PGLITE_MS);
    const database = await openDatabase({ dataFolder: await newEmbeddedFolder(), log: quiet });
    try {
      await migrate(database);
      const id = newId();
      await database('accounts').insert({ id, name: 'one' });
      const error = (await rejection(database('accounts').insert({ id, name: 'one' }))) as Error & {
        [key: string]: unknown;
      };
      assert.ok(error instanceof Error);
      assert.deepEqual(
        [error['code'], error['table'], error['constraint'], error['severity']],
        ['23505', 'accounts', 'accounts_pkey', 'ERROR'],
      );
    } finally {
      await database.destroy();
    }
  });
});

for (const { name, open } of DATABASES) {
  describe(`the database on ${name}`, () => {
    let opened: TestDatabase;
    before(async function () {
      this.timeout(MAKING_PGLITE_MS);
      opened = await open();
    });
    after(() => opened.close());

    it('returns BIGINT columns and counts as bigint, sums as strings, times as Date', async () => {
      const { database } = opened;
      const account = newId();
      await database('accounts').insert({ id: account, name: 'one' });
      const largest = 2n ** 63n - 1n;
      await database('credits').insert({ id: newId(), account_id: account, amount_e8: largest, idempotency_key: 'a' });
      await database('credits').insert({ id: newId(), account_id: account, amount_e8: 1n, idempotency_key: 'b' });
      const rows = await database('credits').orderBy('idempotency_key').select('amount_e8', 'created_at');
      assert.deepEqual(
        rows.map((row) => row.amount_e8),
        [largest, 1n],
      );
      assert.ok(rows[0].created_at instanceof Date);
      const [sums] = await database('credits').sum({ sum: 'amount_e8' }).count({ count: '*' });
      assert.deepEqual(sums, { sum: (largest + 1n).toString(), count: 2n });
    });

    it('returns how many rows an update and a delete changed, inside and outside a transaction', async () => {
      await opened.database.transaction(changesAreCounted);
      await changesAreCounted(opened.database);
    });

    it('is migrated once, and stores the names of its migrations without extension', async () => {
      await migrate(opened.database);
      const names = await opened.database('knex_migrations').orderBy('id').pluck('name');
      assert.deepEqual(names.slice(0, 2), ['0001-accounts-and-keys', '0002-ledger-entries']);
      assert.equal(new Set(names).size, names.length);
    });

    it('keeps the parameter values of a query out of its errors', async () => {
      const row = { id: newId(), name: 'canary' };
      await opened.database('accounts').insert(row);
      const error = await rejection(opened.database('accounts').insert(row));
      assert.match(error.message, /duplicate key/);
      assert.doesNotMatch(error.message, /canary/);
    });

    it('rolls back the whole transaction if a statement in it fails', async () => {
      const id = newId();
      await rejection(
        opened.database.transaction(async (transaction) => {
          await transaction('accounts').insert({ id, name: 'half' });
          throw new Error('stop');
        }),
      );
      assert.deepEqual(await opened.database('accounts').where({ id }), []);
    });

    it('rejects a start if its schema is newer than the program, with both versions in the error', async () => {
      const { database } = opened;
      await database('knex_migrations').insert({ name: '2999-01-01-later', batch: 9, migration_time: new Date() });
      const error = await rejection(migrate(database));
      assert.ok(error.message.includes('2999-01-01-later'));
      const own =
        readdirSync(join(__dirname, '../../../migrations'))
          .filter((name) => /^\d/.test(name))
          .sort()
          .at(-1) ?? '';
      assert.ok(error.message.includes(basename(own, '.ts')), error.message);
      assert.ok(error.message.includes('Start the release that last used this database'));
      await database('knex_migrations').where({ name: '2999-01-01-later' }).delete();
    });
  });
}

async function changesAreCounted(database: Knex): Promise<void> {
  const name = newId();
  await database('accounts').insert([newId(), newId(), newId()].map((id) => ({ id, name })));
  const accounts = () => database('accounts').where({ name });
  assert.equal(await accounts().update({ status: 'frozen' }), 3);
  assert.equal(await accounts().where({ status: 'active' }).update({ name: 'other' }), 0);
  assert.equal(
    await accounts()
      .limit(1)
      .first('id')
      .then(({ id }) => database('accounts').where({ id }).delete()),
    1,
  );
  assert.deepEqual(await accounts().delete().returning('name'), [{ name }, { name }]);
  assert.equal(await accounts().delete(), 0);
}

describe('Postgres as the database', () => {
  it('is migrated correctly by several nodes that start simultaneously', async () => {
    const databaseUrl = await bareDatabase();
    const nodes = await Promise.all(
      Array.from({ length: 5 }, () => openDatabase({ databaseUrl, dataFolder, log: quiet })),
    );
    await Promise.all(nodes.map((each) => migrate(each)));
    const [first] = nodes;
    const names = await first?.('knex_migrations').pluck('name');
    assert.equal(new Set(names).size, names?.length);
    await Promise.all(nodes.map((node) => node.destroy()));
  });

  it('is named by host, port and database if it is unreachable, never with the password', async () => {
    const port = await freePort();
    const databaseUrl = `postgres://me:canary-password@127.0.0.1:${port}/ledger`;
    const database = await openDatabase({ databaseUrl, dataFolder, log: quiet });
    const error = await rejection(checkDatabase(database));
    assert.ok(error.message.includes(`127.0.0.1:${port}`));
    assert.ok(error.message.includes('"ledger"'));
    assert.ok(error.message.includes('DATABASE_URL'));
    assert.ok(error.message.includes('ECONNREFUSED'));
    assert.ok(!error.message.includes('canary-password'));
    await database.destroy();
  });

  it('causes an error that advises to create the database if it does not exist', async () => {
    const databaseUrl = (await newDatabase()).replace(/[^/]*$/, 'absent');
    const database = await openDatabase({ databaseUrl, dataFolder, log: quiet });
    const error = await rejection(checkDatabase(database));
    assert.ok(error.message.includes('"absent"'));
    assert.ok(error.message.includes('create it first'));
    await database.destroy();
  });

  it('ends a statement that takes too long', async () => {
    const database = await openDatabase({ databaseUrl: await newDatabase(), dataFolder, log: quiet });
    const { rows } = await database.raw('SHOW statement_timeout');
    assert.deepEqual(rows, [{ statement_timeout: '30s' }]);
    await checkDatabase(database);
    await database.destroy();
  });

  it('rejects a URL that is not a Postgres URL, without showing the password', async () => {
    const error = await rejection(openDatabase({ databaseUrl: 'mysql://me:canary@h/d', dataFolder, log: quiet }));
    assert.ok(error.message.includes('postgres://user:password@host:5432/database'));
    assert.ok(!error.message.includes('canary'));
    const unreadable = await rejection(openDatabase({ databaseUrl: 'canary', dataFolder, log: quiet }));
    assert.ok(unreadable.message.includes('not a URL'));
    assert.ok(!unreadable.message.includes('canary'));
  });
});

describe('PGlite as the database', function () {
  this.timeout(MAKING_PGLITE_MS);

  it('has all data after it is reopened', async () => {
    const embedded = await newEmbeddedFolder();
    const first = await openDatabase({ dataFolder: embedded, log: quiet });
    const id = newId();
    await first('accounts').insert({ id, name: 'kept' });
    await first.destroy();
    const second = await openDatabase({ dataFolder: embedded, log: quiet });
    await migrate(second);
    assert.deepEqual(await second('accounts').where({ id }).pluck('name'), ['kept']);
    await second.destroy();
  });

  it('starts from the copy in the build, also after an earlier start was interrupted', async () => {
    const built = join(dirname(await builtServer()), 'core/storage/first-database');
    const { unpackFirstDatabase } = require(built) as typeof import('../../../core/storage/first-database');
    const data = await newDataFolder();
    const folder = join(data, 'database');
    mkdirSync(`${folder}.new/global`, { recursive: true });
    writeFileSync(`${folder}.new/global/pg_control`, 'half');
    unpackFirstDatabase(folder);
    assert.deepEqual(readdirSync(data), ['database']);
    writeFileSync(join(folder, 'PG_VERSION.mark'), '');
    unpackFirstDatabase(folder);
    assert.ok(readdirSync(folder).includes('PG_VERSION.mark'), 'a database that is there stays as it is');
    const database = await openDatabase({ dataFolder: data, log: quiet });
    await migrate(database);
    assert.deepEqual(await database('accounts').pluck('id'), []);
    await database.destroy();
  });

  it('reports to a second process which process has the folder open', async () => {
    const embedded = await newEmbeddedFolder();
    const first = await openDatabase({ dataFolder: embedded, log: quiet });
    const error = await rejection(openDatabase({ dataFolder: embedded, log: quiet }));
    assert.ok(error.message.includes(`process ${process.pid}`));
    assert.ok(error.message.includes('DATABASE_URL'));
    await first.destroy();
  });
});
