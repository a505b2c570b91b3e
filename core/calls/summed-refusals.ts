import type { UsageRecord } from './usage-record';

/** How many refused calls of one key, code and second have a record each. The next record counts all the others. */
const RECORDED_SINGLY = 5;

interface Group {
  readonly second: number;
  recorded: number;
  sum: UsageRecord | undefined;
}

/** Adds up refused calls by key, code and second, so that the number of records does not grow with their rate. */
export class SummedRefusals {
  readonly #groups = new Map<string, Group>();

  /** `maxGroups`: the most groups at a time. */
  constructor(private readonly maxGroups: number) {}

  /**
   * Adds a record of this second. Returns whether to write it as it is, whether the sum of its group counts it, or whether there
   * is no room for its group.
   */
  add(record: UsageRecord, second: number): 'single' | 'summed' | 'dropped' {
    const id = `${record.keyId} ${record.errorCode ?? ''} ${second}`;
    const group = this.#groups.get(id) ?? { second, recorded: 0, sum: undefined };
    if (group.recorded === 0) {
      if (this.#groups.size >= this.maxGroups) return 'dropped';
      this.#groups.set(id, group);
    }
    if (group.recorded < RECORDED_SINGLY) {
      group.recorded += 1;
      return 'single';
    }
    // The sum has no time to a first token, which would count several times, and no session, because the calls may belong to several.
    const unlike = { firstTokenMs: undefined, sessionId: undefined, agentId: undefined };
    group.sum = { ...(group.sum ?? record), ...unlike, calls: (group.sum?.calls ?? 0) + 1 };
    return 'summed';
  }

  get isEmpty(): boolean {
    return this.#groups.size === 0;
  }

  /** Takes the sums of the seconds before this one and forgets their groups; without an argument takes all. */
  take(second = Number.POSITIVE_INFINITY): readonly UsageRecord[] {
    const sums: UsageRecord[] = [];
    for (const [id, group] of this.#groups) {
      if (group.second >= second) continue;
      this.#groups.delete(id);
      if (group.sum !== undefined) sums.push(group.sum);
    }
    return sums;
  }
}
