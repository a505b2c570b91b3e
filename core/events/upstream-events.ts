import type { Knex } from 'knex';
import type { Logger } from 'pino';
import type { UpstreamHealth } from '../health/health';
import { raiseEvents } from './raise';

const MINUTE_MS = 60_000;

/**
 * Raises an event when this process ejects an upstream and when a call shows that it answers again. Several processes may see the same
 * outage, so an upstream has at most one event of each kind in a minute.
 */
export function raiseUpstreamEvents(health: UpstreamHealth, database: Knex, log: Logger, now = Date.now): void {
  health.onEjection((type, upstream, more) => {
    const once = `${upstream} ${Math.floor(now() / MINUTE_MS)}`;
    void raiseEvents(database, log, [{ type, once, data: { upstream, ...more } }]);
  });
}
