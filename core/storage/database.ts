import knex, { type Knex } from 'knex';
import { types } from 'pg';
import type { Logger } from 'pino';
import { watchAvailability } from '../base/database-availability';
import { StartFailure } from '../base/start-failure';
import { lockDataFolder } from './data-folder';
import { BIGINT_OID, openInThread } from './embedded';
import { type Connection, endIfSilent } from './silent-connections';

export { migrate } from './migrate';

interface DatabaseOptions {
  /** The URL of Postgres, `postgres://…`; absent: the process runs the embedded database. */
  readonly databaseUrl?: string | undefined;
  /** The folder of the embedded database. */
  readonly dataFolder: string;
  readonly log: Logger;
  /** The most connections of this process to Postgres; the embedded database has one. */
  readonly maxConnections?: number;
}

const CONNECT_MS = 5_000;
const ACQUIRE_MS = 10_000;
const STATEMENT_MS = 30_000;
/** How long a connection may be silent while a statement runs. Postgres ends a slow statement 5 s earlier. */
const SILENT_MS = STATEMENT_MS + 5_000;
/** How often the pool closes unused connections. The default of one second would wake an idle process. */
const REAP_EVERY_MS = 10_000;
const KEEP_ALIVE_AFTER_MS = 30_000;
const IDLE_IN_TRANSACTION_MS = 60_000;

/** The location of each open database as text, without a password. */
const places = new WeakMap<Knex, string>();

/**
 * Opens the persistent store: Postgres, or PGlite under the data folder. Both return BIGINT columns (and counts) as `bigint`,
 * NUMERIC (sums of BIGINT) as a string, and timestamps as `Date`. `destroy()` closes the store and releases the data folder.
 * @throws Error when another process uses the data folder, or DATABASE_URL is not valid.
 */
export async function openDatabase(options: DatabaseOptions): Promise<Knex> {
  if (options.databaseUrl === undefined || options.databaseUrl === '') return openEmbedded(options);
  return openPostgres(options.databaseUrl, options);
}

/** Opens Postgres. @throws StartFailure when `databaseUrl` is not valid */
export function openPostgres(
  databaseUrl: string,
  { log, maxConnections = 10 }: Pick<DatabaseOptions, 'log' | 'maxConnections'>,
): Knex {
  const place = placeOf(databaseUrl);
  const database = knex({
    ...common(log),
    client: 'pg',
    connection: {
      connectionString: databaseUrl,
      application_name: 'tollgate',
      connectionTimeoutMillis: CONNECT_MS,
      statement_timeout: STATEMENT_MS,
      idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_AFTER_MS,
      types: { getTypeParser },
    } as Knex.PgConnectionConfig,
    pool: {
      min: 0,
      max: maxConnections,
      reapIntervalMillis: REAP_EVERY_MS,
      afterCreate: (connection: Connection, done: () => void) => {
        endIfSilent(connection, SILENT_MS);
        done();
      },
    },
    acquireConnectionTimeout: ACQUIRE_MS,
  });
  places.set(database, place);
  watchAvailability(database, place, log);
  return database;
}

/** Parses BIGINT for these connections only, because the parsers of `pg` are global and other code in the process may rely on them. */
const getTypeParser: typeof types.getTypeParser = (oid: number, format?: 'text' | 'binary') => {
  if (oid === BIGINT_OID && format !== 'binary') return BigInt;
  return types.getTypeParser(oid, format as 'text');
};

/** A knex client with the method that turns the database's response into a result; knex's types omit that method. */
interface ClientClass extends Pick<typeof Knex.Client, keyof typeof Knex.Client> {
  new (
    config: Knex.Config,
  ): Knex.Client & {
    processResponse(query: { readonly method?: string }, runner: unknown): unknown;
  };
}

async function openEmbedded({ dataFolder, log }: DatabaseOptions): Promise<Knex> {
  const PGliteClient = load<ClientClass>('knex-pglite');
  const lock = await lockDataFolder(dataFolder);
  const pglite = openInThread(`${dataFolder}/database`);
  const close = async () => {
    if (!pglite.closed) await pglite.close();
    await lock.release();
  };
  class EmbeddedClient extends PGliteClient {
    /**
     * Returns the number of deleted rows as Postgres does. knex-pglite expects `method` to be the name of the SQL command, but knex writes
     * `del` for DELETE.
     */
    override processResponse(query: { readonly method?: string }, runner: unknown): unknown {
      return super.processResponse(query.method === 'del' ? { ...query, method: 'delete' } : query, runner);
    }

    override async destroy(done: () => void): Promise<void> {
      await super.destroy(done);
      await close();
    }
  }
  try {
    await pglite.waitReady;
  } catch (cause) {
    await lock.release();
    throw new StartFailure(
      `The embedded database in ${dataFolder}/database cannot be opened. Restore that folder from a backup, or set ` +
        'another DATA_DIR to begin with an empty one.',
      { cause },
    );
  }
  const database = knex({
    ...common(log),
    client: EmbeddedClient,
    connection: (() => ({ pglite })) as unknown as Knex.ConnectionConfigProvider,
  });
  places.set(database, `the embedded database in ${dataFolder}`);
  return database;
}

function load<T>(name: string): T {
  return require(name) as T;
}

function common(log: Logger): Knex.Config {
  // Messages of the database library are logged at level debug only, because it reports its pool and connections many times in an outage.
  const write = (message: unknown) => log.debug({ database: message }, 'knex');
  return {
    // This setting is off, because an error's text would otherwise contain the values of the query: names, hashes, amounts.
    compileSqlOnError: false,
    log: { warn: write, error: write, deprecate: write, debug: () => undefined },
  };
}

/** Returns host, port and database of a URL, never its user or password. */
function placeOf(databaseUrl: string): string {
  let url: URL;
  try {
    url = new URL(databaseUrl);
  } catch {
    throw new StartFailure('DATABASE_URL is not a URL. Write it as postgres://user:password@host:5432/database.');
  }
  if (!['postgres:', 'postgresql:'].includes(url.protocol)) {
    throw new StartFailure(
      `DATABASE_URL begins with ${url.protocol}//, but it must be postgres://user:password@host:5432/database.`,
    );
  }
  const host = url.hostname || url.searchParams.get('host') || 'localhost';
  return `Postgres at ${host}:${url.port || '5432'}, database "${decodeURIComponent(url.pathname.slice(1))}"`;
}

const REASONS: Readonly<Record<string, string>> = {
  '3D000': 'the database does not exist; create it first (createdb)',
  '28P01': 'the user or the password is wrong; check DATABASE_URL',
  '28000': 'this user may not connect from this host; check DATABASE_URL and pg_hba.conf',
  '53300': 'it has too many connections; close some, or raise max_connections',
  '57P03': 'it is still starting; retry in a moment',
};

/** Checks that the database can be reached. @throws Error that says where it was expected, why it was not found, and what to do. */
export async function checkDatabase(database: Knex): Promise<void> {
  try {
    await database.raw('SELECT 1');
  } catch (cause) {
    const code = (cause as { code?: string }).code;
    const reason =
      (code === undefined ? undefined : REASONS[code]) ??
      `is it running, and is DATABASE_URL right? (${code ?? (cause as Error).name})`;
    throw new StartFailure(`Cannot use ${places.get(database) ?? 'the database'}: ${reason}`, { cause });
  }
}
