import { createHash } from 'node:crypto';
import type { Knex } from 'knex';
import { fail } from '../base/errors';
import { canonicalEmail } from './users';

/**
 * Slows the guessing of passwords, per e-mail address (whether a user has it or not) and per client address. The database counts an attempt
 * before the gateway checks the password. Many attempts at once, at any number of nodes, therefore count like the same attempts one after
 * the other.
 */

interface Pace {
  /** How many attempts to sign in are allowed before the client must wait between attempts. */
  readonly free: number;
  /** The maximum wait, in seconds, before the next attempt to sign in. Each further attempt doubles the wait up to this maximum. */
  readonly maxWaitSeconds: number;
}

/** `maxWaitSeconds` is lower per e-mail address than per client address, because a guesser must not lock the owner of the e-mail address out. */
const PER_EMAIL: Pace = { free: 5, maxWaitSeconds: 30 };
const PER_PLACE: Pace = { free: 20, maxWaitSeconds: 300 };

/** A client learns no secret by starting sign-ins with an identity provider, but each request makes the gateway call the provider. */
const PER_PLACE_AT_PROVIDER: Pace = { free: 60, maxWaitSeconds: 60 };

/** The seconds without an attempt to sign in after which the counting of attempts starts again from 1. */
const FORGOTTEN_AFTER_SECONDS = 900;

/**
 * `now()` is the start of the transaction. It is too old if this attempt had to wait for a concurrent attempt's row lock. The condition
 * therefore reads `clock_timestamp()`.
 */
const COUNT = `
  INSERT INTO sign_in_attempts AS known (subject, tries, tried_at, next_at) VALUES (:subject, 1, now(), now())
  ON CONFLICT (subject) DO UPDATE SET
    tries = CASE WHEN known.tried_at < now() - make_interval(secs => :forgotten) THEN 1 ELSE known.tries + 1 END,
    tried_at = now(),
    next_at = now() + make_interval(secs => CASE
      WHEN known.tried_at < now() - make_interval(secs => :forgotten) OR known.tries + 1 < :free THEN 0
      ELSE least(:most, power(2, least(20, known.tries + 1 - :free))) END)
  WHERE known.next_at <= clock_timestamp()
  RETURNING tries`;

interface SignInAttempt {
  /** Records that the attempt to sign in succeeded. It was then not a guess and does not count. */
  succeeded(): Promise<void>;
}

/** Counts an attempt to sign in, per client address and e-mail address. @throws SIGN_IN_SLOWED if the client must wait */
export async function beginSignInAttempt(
  database: Knex,
  { email, place }: { readonly email: string; readonly place: string },
): Promise<SignInAttempt> {
  const atPlace = await beginAtPlace(database, place);
  const byEmail = subjectOf('email', canonicalEmail(email));
  await count(database, byEmail, PER_EMAIL);
  return {
    succeeded: async () => {
      await atPlace.succeeded();
      await database('sign_in_attempts').where({ subject: byEmail }).delete();
    },
  };
}

/** Counts an attempt to sign in without an e-mail address, per client address. @throws SIGN_IN_SLOWED if the client must wait */
export async function beginAtPlace(database: Knex, place: string): Promise<SignInAttempt> {
  const subject = subjectOf('place', place);
  await count(database, subject, PER_PLACE);
  // Subtracts one attempt from the count of the client address. A reset would help a client that also guesses passwords of other accounts.
  return { succeeded: () => uncount(database, subject, 1) };
}

/** Counts one of the two requests of a sign-in with an identity provider: the start and the return. @throws SIGN_IN_SLOWED */
export async function beginAtProvider(database: Knex, place: string): Promise<SignInAttempt> {
  const subject = subjectOf('provider', place);
  await count(database, subject, PER_PLACE_AT_PROVIDER);
  return { succeeded: () => uncount(database, subject, 2) };
}

async function uncount(database: Knex, subject: string, tries: number): Promise<void> {
  await database('sign_in_attempts').where({ subject }).decrement('tries', tries);
  await database('sign_in_attempts')
    .whereRaw('tried_at < now() - make_interval(secs => ?)', [FORGOTTEN_AFTER_SECONDS])
    .delete();
}

async function count(database: Knex, subject: string, { free, maxWaitSeconds }: Pace): Promise<void> {
  const { rows } = await database.raw<{ rows: unknown[] }>(COUNT, {
    subject,
    free,
    most: maxWaitSeconds,
    forgotten: FORGOTTEN_AFTER_SECONDS,
  });
  if (rows.length > 0) return;
  const known: { next_at: Date } | undefined = await database('sign_in_attempts').where({ subject }).first('next_at');
  const waitMs = (known?.next_at.getTime() ?? 0) - Date.now();
  const retryAfterSeconds = Math.min(maxWaitSeconds, Math.max(1, Math.ceil(waitMs / 1_000)));
  throw fail('SIGN_IN_SLOWED', { retryAfterSeconds, details: { retryAfterSeconds } });
}

function subjectOf(kind: string, value: string): string {
  return createHash('sha256').update(`${kind}:${value}`).digest('hex');
}
