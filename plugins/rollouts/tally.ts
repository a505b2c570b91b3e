import type { SeenCall } from '../../core/rollouts/live-rollouts';
import { addCounts, bucketOf, type GroupCounts, type SlotCounts } from './counts';

/** One group in one stage of a run. */
export interface StageGroup {
  readonly run: string;
  readonly stage: number;
  readonly group: SeenCall['group'];
}

export interface SeenGroup extends StageGroup {
  readonly counts: GroupCounts;
}

/** The counts of this process that are not written yet. */
export class Tally {
  #groups = new Map<string, StageGroup & { readonly counts: Growing }>();
  #givenBack: readonly SeenGroup[] = [];

  note(seen: SeenCall): void {
    if (!seen.isDrawn) return;
    const { run, stage, group } = seen;
    const key = keyOf(seen);
    let counted = this.#groups.get(key);
    if (counted === undefined) {
      counted = { run, stage, group, counts: new Growing() };
      this.#groups.set(key, counted);
    }
    counted.counts.note(seen);
  }

  /** Takes all counts out of the tally. The caller must write them or give them back. */
  take(): readonly SeenGroup[] {
    const all = new Map<string, SeenGroup>(this.#groups);
    for (const group of this.#givenBack) {
      const known = all.get(keyOf(group));
      all.set(keyOf(group), known === undefined ? group : { ...group, counts: addCounts(group.counts, known.counts) });
    }
    this.#groups = new Map();
    this.#givenBack = [];
    return [...all.values()];
  }

  giveBack(groups: readonly SeenGroup[]): void {
    this.#givenBack = groups;
  }
}

function keyOf({ run, stage, group }: StageGroup): string {
  return `${run} ${stage} ${group}`;
}

/** The counts of a group, updated in place because every call is counted. */
class Growing implements GroupCounts {
  calls = 0;
  errors = 0;
  hurt = 0;
  costE8 = 0n;
  charged = 0;
  logCost = 0;
  logCostSquares = 0;
  readonly firstTokens = new Map<number, number>();
  readonly wholeAnswers = new Map<number, number>();
  readonly slots = new Map<number, GrowingSlot>();

  note(seen: SeenCall): void {
    const { isError, isHurt, costE8, firstTokenMs, wholeMs } = seen;
    const logCost = costE8 > 0n ? Math.log(Number(costE8)) : 0;
    this.calls += 1;
    if (isError) this.errors += 1;
    if (isHurt) this.hurt += 1;
    this.costE8 += costE8;
    if (costE8 > 0n) this.charged += 1;
    this.logCost += logCost;
    this.logCostSquares += logCost ** 2;
    noteTime(this.firstTokens, firstTokenMs);
    noteTime(this.wholeAnswers, wholeMs);
    if (seen.group === 'control') this.#slot(seen.slot).note(seen, logCost);
  }

  #slot(slot: number): GrowingSlot {
    const known = this.slots.get(slot) ?? new GrowingSlot();
    this.slots.set(slot, known);
    return known;
  }
}

function noteTime(times: Map<number, number>, ms: number | undefined): void {
  if (ms === undefined) return;
  const bucket = bucketOf(ms);
  times.set(bucket, (times.get(bucket) ?? 0) + 1);
}

class GrowingSlot implements SlotCounts {
  calls = 0;
  errors = 0;
  charged = 0;
  logCost = 0;
  streams = 0;
  logFirstToken = 0;
  answers = 0;
  logWhole = 0;

  note({ isError, costE8, firstTokenMs, wholeMs }: SeenCall, logCost: number): void {
    this.calls += 1;
    if (isError) this.errors += 1;
    if (costE8 > 0n) this.charged += 1;
    this.logCost += logCost;
    if (firstTokenMs !== undefined) {
      this.streams += 1;
      this.logFirstToken += Math.log(Math.max(firstTokenMs, 1));
    }
    if (wholeMs === undefined) return;
    this.answers += 1;
    this.logWhole += Math.log(Math.max(wholeMs, 1));
  }
}
