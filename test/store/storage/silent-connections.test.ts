import assert from 'node:assert/strict';
import knex from 'knex';
import { type Connection, endIfSilent, withoutTimeLimit } from '../../../core/storage/silent-connections';
import { rejection } from '../../support/rejection';
import { newDatabase } from '../../support/shared';

const SILENT_MS = 300;
const LONGER_SECONDS = 1;

describe('a connection to Postgres that is silent for too long', () => {
  const open = async () =>
    knex({
      client: 'pg',
      connection: await newDatabase(),
      pool: {
        min: 0,
        max: 1,
        afterCreate: (connection: Connection, done: () => void) => {
          endIfSilent(connection, SILENT_MS);
          done();
        },
      },
    });

  it('is closed while a statement runs, and the next statement gets another connection', async () => {
    const database = await open();
    const processId = async () => (await database.raw('SELECT pg_backend_pid() AS id')).rows[0].id;
    const first = await processId();
    const error = await rejection(database.raw('SELECT pg_sleep(?)', [LONGER_SECONDS]));
    assert.equal((error as NodeJS.ErrnoException).code, 'ETIMEDOUT');
    assert.notEqual(await processId(), first);
    await database.destroy();
  });

  it('stays open between two statements, and in a transaction without a time limit', async () => {
    const database = await open();
    const processId = async () => (await database.raw('SELECT pg_backend_pid() AS id')).rows[0].id;
    const first = await processId();
    await new Promise((wake) => setTimeout(wake, 1_000 * LONGER_SECONDS));
    await withoutTimeLimit(database, (transaction) => transaction.raw('SELECT pg_sleep(?)', [LONGER_SECONDS]));
    assert.equal(await processId(), first);
    const error = await rejection(database.raw('SELECT pg_sleep(?)', [LONGER_SECONDS]));
    assert.equal((error as NodeJS.ErrnoException).code, 'ETIMEDOUT');
    await database.destroy();
  });
});
