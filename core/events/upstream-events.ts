import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { type Loop, startLoop } from '../base/loop';
import { RecentlyUsed } from '../base/recently-used';
import type { Catalog } from '../catalog/catalog';
import { retiringModels } from '../catalog/facts';
import type { UpstreamHealth } from '../health/health';
import { raiseEvents } from './raise';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

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

/** The configuration in force, and its replacements. */
interface LiveCatalog {
  readonly current: { readonly catalog: Pick<Catalog, 'upstreams'> };
  take(prepare: () => () => void): void;
}

/** Raises an event for each model whose vendor ends it within 30 days: when a configuration comes into force, and every hour. */
export function raiseRetirements(live: LiveCatalog, database: Knex, log: Logger): Loop {
  const raise = () => {
    const retiring = retiringModels(live.current.catalog.upstreams);
    const events = retiring.map((data) => {
      return { type: 'model.retires', once: `${data.upstream} ${data.model} ${data.retires}`, data } as const;
    });
    return raiseEvents(database, log, events);
  };
  const whenFailed = (error: unknown) => log.warn({ reason: String(error) }, 'models that retire were not looked for');
  const loop = startLoop(raise, { everyMs: HOUR_MS, whenFailed });
  live.take(() => loop.wake);
  return loop;
}

interface ForeignAnswer {
  readonly requestId: string;
  readonly accountId: string;
  readonly upstream: string;
  /** The region in which the upstream says it processed the call. */
  readonly region: string;
  readonly demands: string;
}

/** The events of foreign regions that this process raised lately. */
const raised = new RecentlyUsed<true>(1_000);

/** Logs and raises that an upstream answered from outside of the demanded regions, at most once a minute for an account, upstream and region. */
export function raiseForeignRegion(database: Knex, log: Logger, data: ForeignAnswer): void {
  const once = `${data.accountId} ${data.upstream} ${data.region} ${Math.floor(Date.now() / MINUTE_MS)}`;
  if (raised.get(once)) return;
  raised.set(once, true);
  log.warn(
    data,
    'an upstream processed a call outside of the demanded regions; correct its `facts`, or ask its vendor',
  );
  void raiseEvents(database, log, [{ type: 'region.differs', once, data }]);
}
