import type { UsageRecord } from './usage-record';

/** So many refused calls of one key, code and second have a record each; the record after them counts all the others. */
const RECORDED_SINGLY = 5;

interface Group {
  readonly second: number;
  recorded: number;
  sum: UsageRecord | undefined;
}

/** Adds up refused calls by key, code and second, so that what is written of them does not grow with their rate. */
export class SummedRefusals {
  readonly #groups = new Map<string, Group>();

  /** Groups at a time at most. */
  constructor(private readonly maxGroups: number) {}

  /** What becomes of a record that came in this second: it is written as it is, counted in the sum of its group, or there is no room for one more group. */
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
    // No upstream was asked, so there is no time to a first token that could be counted several times. The calls may be of several sessions.
    const unlike = { firstTokenMs: undefined, sessionId: undefined, agentId: undefined };
    group.sum = { ...(group.sum ?? record), ...unlike, calls: (group.sum?.calls ?? 0) + 1 };
    return 'summed';
  }

  /** Takes the sums of seconds before this one, and forgets their groups; without it all. */
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
