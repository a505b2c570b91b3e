import { FairQueue } from '../../core/base/fair-queue';
import type { MaybeLater } from '../../core/base/maybe-later';
import type { Upstream } from '../../core/catalog/catalog';
import type { FailoverCall } from './attempts';

export interface QueueSettings {
  readonly maxQueued: number;
  readonly queueWaitMs: number;
}

type GiveBack = () => void;

interface Slots {
  taken: number;
  /** The value of `maxConcurrent` in the newest configuration. */
  most: number;
  readonly queue: FairQueue<(slot: GiveBack) => void>;
}

/** Counts the calls that each upstream with `maxConcurrent` has under way in this process, and queues the calls above the limit. */
export class UpstreamSlots {
  readonly #byUpstream = new Map<string, Slots>();

  /** Takes one of an upstream's `maxConcurrent` slots. Returns the function that frees it; undefined if none becomes free or the client leaves. */
  take(
    { name, maxConcurrent }: Pick<Upstream, 'name' | 'maxConcurrent'>,
    call: FailoverCall,
    { maxQueued, queueWaitMs }: QueueSettings,
  ): MaybeLater<GiveBack | undefined> {
    if (maxConcurrent === undefined) return NOTHING_TO_GIVE_BACK;
    const slots = this.#slotsOf(name, maxQueued);
    slots.most = maxConcurrent;
    if (slots.taken < slots.most && slots.queue.length === 0) return occupy(slots);
    return waitFor(slots, call, queueWaitMs);
  }

  #slotsOf(upstream: string, maxQueued: number): Slots {
    const known = this.#byUpstream.get(upstream) ?? { taken: 0, most: 0, queue: new FairQueue(maxQueued) };
    this.#byUpstream.set(upstream, known);
    return known;
  }
}

const NOTHING_TO_GIVE_BACK = () => undefined;

/** Takes one slot of an upstream and returns the function that frees it. The slot then passes to the next call in the queue. */
function occupy(slots: Slots): GiveBack {
  slots.taken += 1;
  let isTaken = true;
  return () => {
    if (!isTaken) return;
    isTaken = false;
    slots.taken -= 1;
    if (slots.taken < slots.most) slots.queue.shift()?.(occupy(slots));
  };
}

function waitFor({ queue }: Slots, call: FailoverCall, queueWaitMs: number): Promise<GiveBack | undefined> {
  const { accountId } = call.key;
  return new Promise((resolve) => {
    const stop = (slot: GiveBack | undefined) => {
      clearTimeout(timer);
      stopListening();
      resolve(slot);
    };
    const giveUp = () => {
      queue.remove(accountId, stop);
      stop(undefined);
    };
    const timer = setTimeout(giveUp, queueWaitMs);
    let stopListening = () => undefined as void;
    if (!queue.push(accountId, stop)) return stop(undefined);
    stopListening = call.onLeave(giveUp);
  });
}
