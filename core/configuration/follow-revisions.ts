import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { type Loop, onFirstFailure, startLoop } from '../loop';
import { describeFault } from '../thrown';
import type { LiveConfiguration } from './live-configuration';
import { newestNumber } from './revisions';

/** How long a refused revision waits for its next attempt. The cause may be fixed outside of it: a credential's file, an unreachable store. */
const TRY_AGAIN_MS = 30_000;

/** How often the node looks for a new revision, at the cost of one index lookup. Nodes must follow within a second, even on a slow day. */
const LOOK_EVERY_MS = 250;

export interface FollowOptions {
  readonly live: LiveConfiguration;
  readonly database: Knex;
  readonly log: Logger;
  readonly tryAgainMs?: number;
}

/**
 * Reloads whenever any node has applied a revision. A revision that is refused here is retried after a while; until then the
 * configuration in force stays.
 * @returns a function that stops this
 */
export function followRevisions({ live, database, log, tryAgainMs = TRY_AGAIN_MS }: FollowOptions): Loop {
  const look = async () => {
    const newest = await newestNumber(database);
    const { current, lastFailure } = live;
    if (newest === current.number) return;
    const isRefused = lastFailure !== undefined && newest === lastFailure.number;
    if (isRefused && Date.now() - lastFailure.at.getTime() < tryAgainMs) return;
    await live.reload('revision');
  };
  const whenFailed = onFirstFailure((error) =>
    log.warn(
      { error: describeFault(error) },
      'the revisions of the configuration cannot be read from Postgres; the active one stays',
    ),
  );
  return startLoop(look, { everyMs: LOOK_EVERY_MS, whenFailed });
}
