import type { Logger } from 'pino';
import { type Loop, onFirstFailure, startLoop } from '../../../core/base/loop';
import { safeErrorFields } from '../../../core/base/safe-error';
import { nextVisit, plan, type Seen } from '../lifecycle/plan';
import { isFinal } from '../lifecycle/states';
import type { Claim, SandboxStore } from '../store/sandbox-store';
import { apply } from './apply';
import type { StepContext } from './step-context';

/** How many steps the worker runs at most each time it processes a sandbox. The next time it continues. */
const MAX_STEPS = 30;
const FAILED_VISIT_AGAIN_MS = 5_000;
const MONEY_AGAIN_MS = 2_000;

/** How many sandboxes a worker processes at once at most. */
const AT_ONCE = 32;

interface ReconcilerOptions {
  readonly store: SandboxStore;
  readonly context: Omit<StepContext, 'commit' | 'chargeOf'>;
  readonly log: Logger;
  /** The pause between two rounds of the reconciler, in milliseconds. */
  readonly everyMs: () => number;
  /** The minimum pause between two rounds of the reconciler while the process is idle, in milliseconds. */
  readonly atRestMs?: () => number;
}

/** Runs the due actions of one claimed sandbox. A crash may interrupt this at any point. Returns when to process the sandbox again. */
export async function visit(
  { store, context: given }: Pick<ReconcilerOptions, 'store' | 'context'>,
  claim: Claim,
): Promise<number | undefined> {
  const first = await store.load(claim.id);
  if (first === undefined || first.sandbox.leaseEpoch !== claim.epoch) return undefined;
  let aggregate = first;
  let seen: Seen = {};
  const context: StepContext = {
    ...given,
    chargeOf: (period) => store.chargeOf(period),
    commit: async (before, change) => {
      const written = await store.commit(before, change, given.now());
      if (written !== undefined) return written;
      // Another process has changed the sandbox. While the claim is valid, the worker decides again from the current state.
      const there = await store.load(claim.id);
      return there?.sandbox.leaseEpoch === claim.epoch ? there : undefined;
    },
  };
  for (let step = 0; step < MAX_STEPS; step += 1) {
    const [action] = plan(aggregate, seen, given.now(), given.timings);
    if (action === undefined) break;
    const next = await apply(context, aggregate, action, seen);
    if (next === undefined) return undefined;
    ({ aggregate, seen } = next);
  }
  const nowMs = given.now();
  const nextAtMs = isFinal(aggregate.sandbox.observedState) ? nowMs : nextVisit(aggregate, nowMs, given.timings);
  const soonestMs = seen.moneyWaits === 'ledger' ? Math.min(nextAtMs, nowMs + MONEY_AGAIN_MS) : nextAtMs;
  await store.release(claim, aggregate.sandbox.revision, soonestMs);
  return soonestMs;
}

export const LOOK_EVERY_MS = 1_000;

/** Starts a reconciler; any number may run at once. It claims due sandboxes, processes several at once, and sleeps until the next sandbox is due. */
export function startReconciler(options: ReconcilerOptions): Loop {
  const { store, context, log, everyMs, atRestMs = () => 0 } = options;
  const { leaseMs: claimMs } = context.timings;
  const underWay = new Set<Promise<void>>();
  const timers = new Set<NodeJS.Timeout>();
  const wakeAt = (atMs: number) => {
    const timer = setTimeout(
      () => {
        timers.delete(timer);
        loop.wake();
      },
      Math.max(0, atMs - context.now()),
    );
    timers.add(timer);
  };

  const work = async (claim: Claim) => {
    const keep = setInterval(() => {
      store.keep(claim, context.now() + claimMs).catch(() => undefined);
    }, claimMs / 3);
    try {
      const againAtMs = await visit(options, claim);
      if (againAtMs !== undefined && againAtMs < context.now() + LOOK_EVERY_MS) wakeAt(againAtMs);
    } catch (error) {
      log.error(
        { sandboxId: claim.id, error: safeErrorFields(error) },
        'a sandbox could not be reconciled; it is retried',
      );
      await store.release(claim, undefined, context.now() + FAILED_VISIT_AGAIN_MS).catch(() => undefined);
    } finally {
      clearInterval(keep);
    }
  };

  const begin = (claim: Claim) => {
    const isFull = underWay.size + 1 >= AT_ONCE;
    const visiting = work(claim).finally(() => {
      underWay.delete(visiting);
      if (isFull) loop.wake();
    });
    underWay.add(visiting);
  };

  const loop = startLoop(
    async () => {
      const room = AT_ONCE - underWay.size;
      const claims = room > 0 ? await store.claim(context.now(), claimMs, room) : [];
      for (const claim of claims) begin(claim);
    },
    {
      everyMs,
      atRestMs,
      whenFailed: onFirstFailure((error) =>
        log.error(
          { error: safeErrorFields(error) },
          'sandboxes cannot be reconciled because the database fails; it is retried',
        ),
      ),
    },
  );
  return {
    wake: loop.wake,
    stop: async () => {
      for (const timer of timers) clearTimeout(timer);
      await loop.stop();
      await Promise.allSettled(underWay);
    },
  };
}
