import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { type Loop, startLoop, tellFirst } from '../loop';
import { describeFault } from '../thrown';
import type { LiveConfiguration } from './live-configuration';
import { newestNumber } from './revisions';

/** What kept a node from taking a revision may be mended beside it: a credential's file, a store that was away. */
const TRY_AGAIN_MS = 30_000;

/** One look at the end of an index. Nodes must follow within a second, on a slow day too. */
const LOOK_EVERY_MS = 250;

export interface FollowOptions {
  readonly live: LiveConfiguration;
  readonly database: Knex;
  readonly log: Logger;
  readonly tryAgainMs?: number;
}

/**
 * Takes over each revision that is applied, wherever it was. One that cannot be taken here is tried again after a while; until then
 * what is in force stays. @returns ends it
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
  const whenFailed = tellFirst((error) =>
    log.warn(
      { error: describeFault(error) },
      'the revisions of the configuration cannot be read from Postgres; the active one stays',
    ),
  );
  return startLoop(look, { everyMs: LOOK_EVERY_MS, whenFailed });
}
