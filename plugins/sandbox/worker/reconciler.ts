import type { Logger } from 'pino';
import { type Loop, onFirstFailure, startLoop } from '../../../core/loop';
import { describeFault } from '../../../core/thrown';
import type { Books, Claim } from '../books/books';
import { nextVisit, plan, type Seen } from '../life/plan';
import { isFinal } from '../life/states';
import { apply } from './apply';
import type { World } from './world';

/** The most steps of one visit. The next visit continues. */
const STEPS_AT_MOST = 30;
const FAILED_VISIT_AGAIN_MS = 5_000;
const MONEY_AGAIN_MS = 2_000;

/** The most visits at once. */
const AT_ONCE = 32;

interface ReconcilerOptions {
  readonly books: Books;
  readonly world: Omit<World, 'commit' | 'chargeOf'>;
  readonly log: Logger;
  /** The pause between two rounds. */
  readonly everyMs: () => number;
  /** The least pause while the process rests. */
  readonly atRestMs?: () => number;
}

/** Runs the due actions of one claimed sandbox. It may be interrupted at any point. Returns when to visit again. */
export async function visit(
  { books, world: given }: Pick<ReconcilerOptions, 'books' | 'world'>,
  claim: Claim,
): Promise<number | undefined> {
  const first = await books.load(claim.id);
  if (first === undefined || first.sandbox.leaseEpoch !== claim.epoch) return undefined;
  let aggregate = first;
  let seen: Seen = {};
  const world: World = {
    ...given,
    chargeOf: (period) => books.chargeOf(period),
    commit: async (before, change) => {
      const written = await books.commit(before, change, given.now());
      if (written !== undefined) return written;
      // The sandbox has changed outside this visit. While the claim holds, decide anew from its current state.
      const there = await books.load(claim.id);
      return there?.sandbox.leaseEpoch === claim.epoch ? there : undefined;
    },
  };
  for (let step = 0; step < STEPS_AT_MOST; step += 1) {
    const [action] = plan(aggregate, seen, given.now(), given.timings);
    if (action === undefined) break;
    const next = await apply(world, aggregate, action, seen);
    if (next === undefined) return undefined;
    ({ aggregate, seen } = next);
  }
  const nowMs = given.now();
  const nextAtMs = isFinal(aggregate.sandbox.observedState) ? nowMs : nextVisit(aggregate, nowMs, given.timings);
  const soonestMs = seen.moneyWaits === 'ledger' ? Math.min(nextAtMs, nowMs + MONEY_AGAIN_MS) : nextAtMs;
  await books.release(claim, aggregate.sandbox.revision, soonestMs);
  return soonestMs;
}

export const LOOK_EVERY_MS = 1_000;

/** Starts one of any number of workers. It claims due sandboxes, visits a few at once, and sleeps until the next is due. */
export function startReconciler(options: ReconcilerOptions): Loop {
  const { books, world, log, everyMs, atRestMs = () => 0 } = options;
  const { leaseMs: claimMs } = world.timings;
  const underWay = new Set<Promise<void>>();
  const timers = new Set<NodeJS.Timeout>();
  const wakeAt = (atMs: number) => {
    const timer = setTimeout(
      () => {
        timers.delete(timer);
        loop.wake();
      },
      Math.max(0, atMs - world.now()),
    );
    timers.add(timer);
  };

  const work = async (claim: Claim) => {
    const keep = setInterval(() => {
      books.keep(claim, world.now() + claimMs).catch(() => undefined);
    }, claimMs / 3);
    try {
      const againAtMs = await visit(options, claim);
      if (againAtMs !== undefined && againAtMs < world.now() + LOOK_EVERY_MS) wakeAt(againAtMs);
    } catch (error) {
      log.error(
        { sandboxId: claim.id, error: describeFault(error) },
        'a sandbox could not be reconciled; it is retried',
      );
      await books.release(claim, undefined, world.now() + FAILED_VISIT_AGAIN_MS).catch(() => undefined);
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
      const claims = room > 0 ? await books.claim(world.now(), claimMs, room) : [];
      for (const claim of claims) begin(claim);
    },
    {
      everyMs,
      atRestMs,
      whenFailed: onFirstFailure((error) =>
        log.error(
          { error: describeFault(error) },
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
