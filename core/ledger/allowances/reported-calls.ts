/**
 * Calls that an allowance paid for and that have ended, as the text of one report. Each line is `<reservation id> <ending> <cost>
 * <record>`.
 *
 * The cost is the charged amount in E8, followed by `+` and the uncharged rest if there is one. A record is JSON on one line, so the ledger
 * passes it on without parsing it.
 */

export type CallEnding = 'settled' | 'released' | 'expired';

export interface ReportedCall {
  readonly rid: string;
  readonly ending: CallEnding;
  /** The charged part of the call's cost, in E8 (1e-8 USD). */
  readonly costE8: bigint;
  /** The part of the call's cost that no money covered; it is not part of `costE8`. */
  readonly shortfallE8: bigint;
  /** The JSON of the usage record without its cost, or of the facts of an expired call; empty if there is neither. */
  readonly record: string;
}

export function writeCalls(calls: readonly ReportedCall[]): string {
  return calls.map((call) => `${headOf(call)} ${call.record}`).join('\n');
}

/** Returns the part of a call's line in an allowance report that affects charges: its id, ending, cost and uncharged rest. */
export function headOf({ rid, ending, costE8, shortfallE8 }: ReportedCall): string {
  return shortfallE8 === 0n ? `${rid} ${ending} ${costE8}` : `${rid} ${ending} ${costE8}+${shortfallE8}`;
}

/** Parses the lines that `writeCalls` wrote. `shortfalls` names the calls that were not charged in full, one per line: `<index of the call, from 0> <E8>`. */
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
