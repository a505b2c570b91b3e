import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { Counter, Gauge } from 'prom-client';
import { startLoop } from '../../base/loop';
import { metrics } from '../../base/metrics';
import type { Stop } from '../../base/resources';
import type { NewEvent } from '../../events/event';
import { raiseEvents } from '../../events/raise';
import type { Outbox } from '../ledger';
import type { Shipper } from './shipper';

/** Watches how many entries wait for Postgres, because the gateway admits calls without Postgres only up to a bound. */
interface OutboxWatch {
  /** Whether the gateway refuses new calls because the outbox is full. The ledger always accepts operations that close calls. */
  isFull(): boolean;
  readonly stop: Stop;
}

interface OutboxWatchOptions {
  readonly ledger: Pick<Outbox, 'outboxShare'>;
  readonly shipper: Pick<Shipper, 'oldestAgeMs'>;
  readonly database: Knex;
  readonly log: Logger;
  readonly everyMs?: number;
}

/** The share of the ledger's memory that the outbox may use before an alarm. At `FULL_AT`, the outbox counts as full. */
const ALARM_AT = 0.4;
const FULL_AT = 0.7;
const LOOK_EVERY_MS = 2_000;
const LOOK_AT_REST_EVERY_MS = 5_000;

const share = new Gauge({
  name: 'tollgate_ledger_outbox_share',
  help: "Share of the ledger's memory used by entries that are not in Postgres yet: alarm at 0.4, full at 0.7.",
  aggregator: 'max',
  registers: [metrics],
});
const age = new Gauge({
  name: 'tollgate_ledger_outbox_oldest_seconds',
  help: 'Age of the oldest entry that is not in Postgres yet.',
  aggregator: 'max',
  registers: [metrics],
});
const refused = new Counter({
  name: 'tollgate_ledger_outbox_full_total',
  help: 'How often the outbox was full; the gateway then refuses new calls.',
  registers: [metrics],
});

export function startOutboxWatch(options: OutboxWatchOptions): OutboxWatch {
  const { ledger, shipper, database, log, everyMs = LOOK_EVERY_MS } = options;
  let level: 'ok' | 'alarm' | 'full' = 'ok';
  let unwritten: NewEvent | undefined;
  let isWriting = false;

  // The event waits for Postgres, whose outage is why entries wait. No look waits for the event, because calls depend on the looks.
  const write = async (event: NewEvent) => {
    isWriting = true;
    // A later look may have found the outbox full meanwhile, which is another event.
    if ((await raiseEvents(database, log, [event])) && unwritten === event) unwritten = undefined;
    isWriting = false;
  };

  const look = async () => {
    const oldestAgeMs = shipper.oldestAgeMs();
    // An outbox without entries is not measured, because measuring costs one command per shard.
    const taken = oldestAgeMs === 0 ? 0 : await ledger.outboxShare();
    share.set(taken);
    age.set(oldestAgeMs / 1_000);
    const before = level;
    if (unwritten !== undefined && !isWriting) void write(unwritten);
    level = taken >= FULL_AT ? 'full' : taken >= ALARM_AT ? 'alarm' : 'ok';
    if (level === 'full') refused.inc();
    if (level === before) return;
    if (level === 'ok') log.info({ share: taken }, 'the outbox is below its limit again');
    else {
      if (level === 'full' || before === 'ok') unwritten = behind(level, taken, oldestAgeMs);
      log.error(
        { share: taken, level },
        "the outbox is filling up because entries wait for Postgres; at 0.7 of the ledger's memory new calls are refused",
      );
    }
  };

  // A failed measurement needs no handling, because an unavailable ledger already refuses calls.
  const times = { everyMs, firstAfterMs: everyMs, atRestMs: LOOK_AT_REST_EVERY_MS };
  const loop = startLoop(look, { ...times, whenFailed: () => undefined });
  return { isFull: () => level === 'full', stop: loop.stop };
}

/** Returns the event of a level of the outbox. All processes see the level within seconds, so that it has one event an hour. */
function behind(level: 'alarm' | 'full', share: number, oldestAgeMs: number): NewEvent {
  const now = new Date().toISOString();
  const data = {
    level,
    share: Math.round(share * 100) / 100,
    oldestSeconds: Math.round(oldestAgeMs / 1_000),
    since: now,
  };
  return { type: 'outbox.behind', once: `${level} ${now.slice(0, 13)}`, data };
}
