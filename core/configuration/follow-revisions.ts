import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { isDatabaseUnavailable } from '../base/database-availability';
import { type Loop, onFirstFailure, startLoop } from '../base/loop';
import { safeErrorFields } from '../base/safe-error';
import type { LiveConfiguration } from './live-configuration';
import { applyDue, IS_DUE } from './proposals/store';
import type { ConfigurationSource } from './source';
import { ConfigurationError } from './yaml-file';

/** How long the node waits before it retries a revision or a proposal that it refused. The cause may be fixed meanwhile: a credential's file, an unreachable store. */
const TRY_AGAIN_MS = 30_000;

/** The pause after another failure, such as of a lock. */
const SOON_MS = 1_000;

/** How often the node queries Postgres for a new revision, at the cost of two index lookups. Nodes must follow within a second, even under load. */
const LOOK_EVERY_MS = 250;

interface FollowOptions {
  readonly live: LiveConfiguration;
  readonly source: Pick<ConfigurationSource, 'check'>;
  readonly database: Knex;
  readonly log: Logger;
}

/**
 * Reloads whenever any node has applied a revision, and applies the accepted rows of proposals whose time has come. If this node refuses
 * the revision, it keeps its configuration and retries after `TRY_AGAIN_MS`.
 * @returns a function that stops this
 */
export function followRevisions({ live, source, database, log }: FollowOptions): Loop {
  let notBeforeMs = 0;
  const apply = () =>
    applyDue(database, source.check).catch((error: unknown) => {
      if (isDatabaseUnavailable(error)) throw error;
      notBeforeMs = Date.now() + (error instanceof ConfigurationError ? TRY_AGAIN_MS : SOON_MS);
      log.error({ error: safeErrorFields(error) }, 'accepted prices could not be applied at their time');
    });
  const look = async () => {
    const seen = await readNewest(database);
    const isTried = seen.isDue && Date.now() >= notBeforeMs;
    if (isTried) await apply();
    const newest = isTried ? (await readNewest(database)).number : seen.number;
    const { current, lastFailure } = live;
    if (newest === current.number) return;
    const isRefused = lastFailure !== undefined && newest === lastFailure.number;
    if (isRefused && Date.now() - lastFailure.at.getTime() < TRY_AGAIN_MS) return;
    await live.reload('revision');
  };
  const whenFailed = onFirstFailure((error) =>
    log.warn(
      { error: safeErrorFields(error) },
      'the revisions of the configuration cannot be read from Postgres; the active one stays',
    ),
  );
  return startLoop(look, { everyMs: LOOK_EVERY_MS, whenFailed });
}

/** Reads the number of the newest revision, and whether the time of a proposal has come. */
async function readNewest(database: Knex): Promise<{ number: number | undefined; isDue: boolean }> {
  const { rows } = await database.raw<{ rows: { number: number | null; isDue: boolean }[] }>(
    `SELECT (SELECT max(number) FROM config_revisions) AS number,
       EXISTS (SELECT FROM price_proposals WHERE ${IS_DUE}) AS "isDue"`,
  );
  const [{ number, isDue } = { number: null, isDue: false }] = rows;
  return { number: number ?? undefined, isDue };
}
