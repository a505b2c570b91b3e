/**
 * Calls that ended on an allowance, as one report carries them: a line each, `<reservation id> <ending> <cost> <record>`. The cost is
 * what is charged in E8, with `+` and what is missing beyond it where that is not all. A record is JSON on one line, so nobody has to
 * parse it on its way to Postgres.
 */

export type CallEnding = 'settled' | 'released' | 'expired';

export interface ReportedCall {
  readonly rid: string;
  readonly ending: CallEnding;
  /** What is charged. */
  readonly costE8: bigint;
  /** What money was missing for: `costE8` is without it. */
  readonly shortfallE8: bigint;
  /** JSON of the usage record but for its cost; empty for none. */
  readonly record: string;
}

export function writeCalls(calls: readonly ReportedCall[]): string {
  return calls.map((call) => `${headOf(call)} ${call.record}`).join('\n');
}

/** What of a call decides about money. */
export function headOf({ rid, ending, costE8, shortfallE8 }: ReportedCall): string {
  return shortfallE8 === 0n ? `${rid} ${ending} ${costE8}` : `${rid} ${ending} ${costE8}+${shortfallE8}`;
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
  const [charged = '0', missing = '0'] = cost.split('+');
  return {
    rid,
    ending: ending as CallEnding,
    costE8: BigInt(charged) - shortfallE8,
    shortfallE8: BigInt(missing) + shortfallE8,
    record,
  };
}
