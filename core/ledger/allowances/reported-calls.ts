/**
 * Calls that ended on an allowance, as one report carries them: a line each, `<reservation id> <ending> <cost in E8> <record>`.
 * A record is JSON on one line, so nobody has to parse it on its way to Postgres.
 */

export type CallEnding = 'settled' | 'released' | 'expired';

export interface EndedCall {
  readonly rid: string;
  readonly ending: CallEnding;
  readonly costE8: bigint;
  /** JSON of the usage record but for its cost; empty for none. */
  readonly record: string;
}

/** A call of a report with what was charged for it. */
export interface ReportedCall extends EndedCall {
  /** What money was missing for: `costE8` is without it. */
  readonly shortfallE8: bigint;
}

export function writeCalls(calls: readonly EndedCall[]): string {
  return calls.map(({ rid, ending, costE8, record }) => `${rid} ${ending} ${costE8} ${record}`).join('\n');
}

/** Reads the lines of `writeCalls`; `shortfalls` names those that were not charged in full: `<place of the call, from 0> <E8>`, one a line. */
export function readCalls(text: string, shortfalls = ''): readonly ReportedCall[] {
  const missing = new Map(shortfalls === '' ? [] : shortfalls.split('\n').map(readShortfall));
  return text === '' ? [] : text.split('\n').map((line, place) => readCall(line, missing.get(place) ?? 0n));
}

function readShortfall(line: string): [number, bigint] {
  const [place, amount = '0'] = line.split(' ');
  return [Number(place), BigInt(amount)];
}

function readCall(line: string, shortfallE8: bigint): ReportedCall {
  const [rid = '', ending, cost = '0'] = line.split(' ', 3);
  const record = line.slice(rid.length + (ending?.length ?? 0) + cost.length + 3);
  return { rid, ending: ending as CallEnding, costE8: BigInt(cost) - shortfallE8, shortfallE8, record };
}
