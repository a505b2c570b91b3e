import { Worker } from 'node:worker_threads';
import type { Logger } from 'pino';
import { Counter } from 'prom-client';
import { metrics } from '../../base/metrics';
import { shardOf } from '../shard';
import { COLLECT_MS, type Shipper } from './shipper';

/** The addresses of Redis and Postgres for the shipper's thread, which opens its own connections. */
export interface ShipperAddresses {
  readonly redisUrl: string;
  readonly databaseUrl: string;
}

export interface ShipperThreadOptions extends ShipperAddresses {
  readonly log: Logger;
  onWritten?(rids: readonly string[]): void;
  /** The file with the program of the shipper's thread. Tests give another file. */
  readonly program?: string;
}

/** The messages to the shipper's thread (ToShipper) and from it (ToGateway). */
export type ToShipper = { readonly nudged: readonly number[] } | 'stop';
export type ToGateway = { readonly oldestAgeMs: number } | { readonly written: readonly string[] };

const PROGRAM = require.resolve('./shipper-worker');

/**
 * How long the gateway collects notices of new entries ("nudges") if there are at least MANY. An entry in a batch of 600 costs Postgres
 * five sixths of one in a batch of 150.
 */
const COLLECT_MANY_MS = 300;
const MANY = 30;

/** How long the thread may be silent before the gateway assumes that it ships nothing. */
const SILENCE_MS = 5_000;
const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5_000;

const restarts = new Counter({
  name: 'tollgate_ledger_shipper_restarts_total',
  help: 'How often the shipper, the thread that moves entries to Postgres, failed and was restarted.',
  registers: [metrics],
});

/**
 * Starts a shipper in its own thread. Shipping the entry of a call costs a tenth of the call's CPU time, in bursts that would delay other
 * calls. A thread that ends unexpectedly is restarted, and its first sweep finds the waiting entries.
 */
export function startShipperThread(options: ShipperThreadOptions): Shipper {
  const { log, onWritten, program = PROGRAM, ...addresses } = options;
  const nudged = new Set<number>();
  let nudges = 0;
  let nudging: NodeJS.Timeout | undefined;
  let worker: Worker | undefined;
  let pausing: NodeJS.Timeout | undefined;
  let pauseMs = FIRST_PAUSE_MS;
  let ended: () => void = () => undefined;
  let isStopping = false;
  let oldestAgeMs = 0;
  let reportedAt = Date.now();

  const post = (message: ToShipper) => worker?.postMessage(message);

  const start = () => {
    let reason: unknown;
    worker = new Worker(program, { workerData: addresses, name: 'shipper' });
    worker.on('message', (report: ToGateway) => {
      if ('written' in report) onWritten?.(report.written);
      else oldestAgeMs = report.oldestAgeMs;
      reportedAt = Date.now();
      pauseMs = FIRST_PAUSE_MS;
    });
    worker.on('error', (error) => {
      reason = error;
    });
    worker.on('exit', (code) => {
      worker = undefined;
      if (!isStopping) startAgain(reason ?? `it ended with ${code}`);
      else if (reason !== undefined)
        log.error({ reason: String(reason) }, 'the shipper failed while stopping; its entries wait for the next start');
      ended();
    });
  };

  const startAgain = (reason: unknown) => {
    restarts.inc();
    log.error({ reason: String(reason), againAfterMs: pauseMs }, 'the shipper failed and is restarted');
    pausing = setTimeout(start, pauseMs);
    pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS);
  };

  start();
  return {
    nudge: (accountId) => {
      nudged.add(shardOf(accountId));
      nudges += 1;
      if (nudging !== undefined) return;
      const ms = nudges < MANY ? COLLECT_MS : COLLECT_MANY_MS;
      nudges = 0;
      nudging = setTimeout(() => {
        nudging = undefined;
        post({ nudged: [...nudged] });
        nudged.clear();
      }, ms).unref();
    },
    stop: async () => {
      isStopping = true;
      clearTimeout(nudging);
      clearTimeout(pausing);
      if (worker === undefined)
        return log.error('the shipper is not running at shutdown; its entries wait for the next start');
      const end = new Promise<void>((resolve) => {
        ended = resolve;
      });
      post('stop');
      await end;
    },
    oldestAgeMs: () => {
      const silentMs = Date.now() - reportedAt;
      return oldestAgeMs + (silentMs > SILENCE_MS ? silentMs : 0);
    },
  };
}
