import { Gauge } from 'prom-client';
import { startLoop } from '../loop';
import { metrics } from '../metrics';
import type { DrainOptions } from './drain';
import { recover } from './recovery';

/** Looks after the ledger while the process runs: one that was lost, emptied or went back in time is made right again. */
export interface Guardian {
  stop(): Promise<void>;
}

const LOOK_EVERY_MS = 1_000;

const ready = new Gauge({
  name: 'tollgate_ledger_ready',
  help: '1 while the ledger answers, 0 while it cannot be asked or is being rebuilt from Postgres.',
  registers: [metrics],
});

export function startGuardian(options: DrainOptions & { readonly everyMs?: number }): Guardian {
  const { ledger, log, everyMs = LOOK_EVERY_MS } = options;
  let isTroubled = false;

  const look = async () => {
    if (!(await ledger.isReady())) {
      ready.set(0);
      log.warn('the ledger was lost or has gone back in time; calls are refused while it is compared with Postgres');
      await recover(options);
    }
    ready.set(1);
    isTroubled = false;
  };
  const whenFailed = (error: unknown) => {
    ready.set(0);
    if (!isTroubled) log.error({ reason: String(error) }, 'the ledger cannot be looked after; it is tried again');
    isTroubled = true;
  };
  return { stop: startLoop(look, everyMs, whenFailed) };
}
