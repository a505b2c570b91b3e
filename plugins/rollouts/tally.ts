import type { SeenCall } from '../../core/live-rollouts';
import { type ArmCounts, addCounts, bucketOf, NOTHING_SEEN, type SlotCounts, type Times } from './counts';

/** Which group of which stage of which run. */
export interface Group {
  readonly run: string;
  readonly stage: number;
  readonly arm: SeenCall['arm'];
}

export interface SeenGroup extends Group {
  readonly counts: ArmCounts;
}

/** What this process has seen and has not written down yet. */
export class Tally {
  #groups = new Map<string, SeenGroup>();

  note(seen: SeenCall): void {
    if (seen.isDrawn) this.#add(seen, countsOf(seen));
  }

  /** All of it; it is the taker's to write down, or to give back. */
  take(): readonly SeenGroup[] {
    const groups = [...this.#groups.values()];
    this.#groups = new Map();
    return groups;
  }

  giveBack(groups: readonly SeenGroup[]): void {
    for (const group of groups) this.#add(group, group.counts);
  }

  #add({ run, stage, arm }: Group, counts: ArmCounts): void {
    const key = `${run} ${stage} ${arm}`;
    const before = this.#groups.get(key)?.counts ?? NOTHING_SEEN;
    this.#groups.set(key, { run, stage, arm, counts: addCounts(before, counts) });
  }
}

function countsOf(seen: SeenCall): ArmCounts {
  const { isError, isHurt, costE8, firstTokenMs, wholeMs } = seen;
  const logCost = costE8 > 0n ? Math.log(Number(costE8)) : 0;
  return {
    calls: 1,
    errors: isError ? 1 : 0,
    hurt: isHurt ? 1 : 0,
    costE8,
    charged: costE8 > 0n ? 1 : 0,
    logCost,
    logCostSquares: logCost ** 2,
    firstTokens: timesOf(firstTokenMs),
    wholeAnswers: timesOf(wholeMs),
    slots: seen.arm === 'control' ? new Map([[seen.slot, slotCountsOf(seen, logCost)]]) : NOTHING_SEEN.slots,
  };
}

function slotCountsOf({ isError, costE8, firstTokenMs, wholeMs }: SeenCall, logCost: number): SlotCounts {
  return {
    calls: 1,
    errors: isError ? 1 : 0,
    charged: costE8 > 0n ? 1 : 0,
    logCost,
    streams: firstTokenMs === undefined ? 0 : 1,
    logFirstToken: logOf(firstTokenMs),
    answers: wholeMs === undefined ? 0 : 1,
    logWhole: logOf(wholeMs),
  };
}

function logOf(ms: number | undefined): number {
  return ms === undefined ? 0 : Math.log(Math.max(ms, 1));
}

function timesOf(ms: number | undefined): Times {
  return ms === undefined ? NOTHING_SEEN.firstTokens : new Map([[bucketOf(ms), 1]]);
}
