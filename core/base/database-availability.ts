import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { fail, type GatewayError } from './errors';

const unreachable = new WeakSet<object>();

/** Returns whether a statement failed because the database was unreachable or because no connection was free in time. */
export function isDatabaseUnavailable(error: unknown): boolean {
  return typeof error === 'object' && error !== null && unreachable.has(error);
}

const RETRY_AFTER_SECONDS = 5;

export function databaseUnavailable(cause: unknown): GatewayError {
  return fail('DATABASE_UNAVAILABLE', { cause, retryAfterSeconds: RETRY_AFTER_SECONDS });
}

interface Connecting {
  acquireConnection(): Promise<unknown>;
}

/**
 * Detects from errors that the database is unreachable, and marks these errors. Logs one line when the database becomes unreachable and one
 * when it answers again. Logs nothing before its first answer, because the start itself reports what is wrong.
 */
export function watchAvailability(database: Knex, place: string, log: Logger): void {
  const client = database.client as Connecting;
  const acquire = client.acquireConnection.bind(client);
  let hasAnswered = false;
  let awaySinceMs: number | undefined;
  const wentAway = (error: Error) => {
    if (!hasAnswered || awaySinceMs !== undefined) return;
    awaySinceMs = performance.now();
    log.error({ place, reason: reasonOf(error) }, AWAY);
  };

  client.acquireConnection = async () => {
    try {
      return await acquire();
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      unreachable.add(error);
      // Logs nothing if all connections of the pool are busy, because that does not show that Postgres is unreachable.
      if (error.name !== 'KnexTimeoutError') wentAway(error);
      throw error;
    }
  };
  database.on('query-error', (error: Error) => {
    if (!isConnectionLost(error)) return;
    unreachable.add(error);
    wentAway(error);
  });
  database.on('query-response', () => {
    hasAnswered = true;
    if (awaySinceMs === undefined) return;
    log.info({ place, awayMs: Math.round(performance.now() - awaySinceMs) }, 'Postgres is reachable again');
    awaySinceMs = undefined;
  });
}

const AWAY =
  'Postgres is unreachable: calls continue and their records wait in Redis; requests of operators and the console fail; ' +
  'check that Postgres runs and that DATABASE_URL is right';

/** The SQLSTATEs of lost connections, and of a Postgres server that stops, has crashed or is starting. */
const LOST_STATES = /^(08...|57P0[123])$/;
/** The codes of system errors: ECONNRESET, EPIPE, ETIMEDOUT… */
const SYSTEM_CODE = /^E[A-Z]+$/;
/** The messages of the library `pg` about a closed connection. `pg` gives these errors no code. */
const LOST_MESSAGE = /Connection terminated|not queryable/;

function isConnectionLost(error: Error & { readonly code?: unknown }): boolean {
  const code = String(error.code ?? '');
  return LOST_STATES.test(code) || SYSTEM_CODE.test(code) || (code === '' && LOST_MESSAGE.test(error.message));
}

/** Returns why the connection was lost, without the error's text, because the text can contain the SQL statement. */
function reasonOf(error: Error & { readonly code?: unknown }): string {
  return String(error.code ?? LOST_MESSAGE.exec(error.message)?.[0] ?? error.name);
}
