import { Gauge } from 'prom-client';
import { type Loop, startLoop } from '../base/loop';
import { metrics } from '../base/metrics';
import { type RecoverOptions, recover } from './recovery';

const LOOK_EVERY_MS = 1_000;
const LOOK_AT_REST_EVERY_MS = 5_000;

const ready = new Gauge({
  name: 'tollgate_ledger_ready',
  help: '1 while the ledger answers, 0 while it is unavailable or being rebuilt from Postgres.',
  aggregator: 'min',
  registers: [metrics],
});

/** Watches the ledger while the process runs. Recovers the ledger if it was lost, emptied or reset to an older state. */
export function startGuardian(options: RecoverOptions & { readonly everyMs?: number }): Loop {
  const { ledger, log, everyMs = LOOK_EVERY_MS } = options;
  let trouble: string | undefined;

  const look = async () => {
    if (!(await ledger.isReady())) {
      ready.set(0);
      log.warn(
        'the ledger lost data or was restored to an older state; calls are refused while it is recovered from Postgres',
      );
      await recover(options);
    }
    ready.set(1);
    trouble = undefined;
  };
  const whenFailed = (error: unknown) => {
    ready.set(0);
    const reason = String(error);
    // Each new reason why the ledger cannot be checked is logged once, because the first reason may hide another one that an operator must fix.
    if (reason !== trouble) log.error({ reason }, 'the ledger cannot be checked; the check is retried');
    trouble = reason;
  };
  return startLoop(look, { everyMs, atRestMs: LOOK_AT_REST_EVERY_MS, whenFailed });
}
