import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { newestNumber } from './configuration-revisions';
import type { LiveConfiguration } from './live-configuration';
import { startToldLoop } from './loop';
import { describeFault } from './thrown';

/** One look at the end of an index. Nodes must follow within a second, on a slow day too. */
const LOOK_EVERY_MS = 250;

export interface FollowOptions {
  readonly live: LiveConfiguration;
  readonly database: Knex;
  readonly log: Logger;
}

/**
 * Takes over each revision that is applied, wherever it was. One that cannot be taken here is not tried again by itself: what is in
 * force stays until the next, or until somebody asks for a reload. @returns ends it
 */
export function followRevisions({ live, database, log }: FollowOptions): () => Promise<void> {
  const look = async () => {
    const newest = await newestNumber(database);
    if (newest === live.current.number || newest === live.lastFailure?.number) return;
    await live.reload('revision');
  };
  return startToldLoop(look, LOOK_EVERY_MS, (error) =>
    log.warn({ error: describeFault(error) }, 'applied revisions of the configuration cannot be looked for'),
  );
}
