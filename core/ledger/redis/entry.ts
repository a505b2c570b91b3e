import { readCalls } from '../allowances/reported-calls';
import type { EntryKind, OutboxEntry } from '../ledger';

/** An entry as XRANGE returns it: its id, then field, value, field, value. */
export type StreamEntry = [id: string, fields: string[]];

/** Reads an outbox entry from the fields that the scripts write with XADD. */
export function readEntry([id, fields]: StreamEntry): OutboxEntry {
  const value: Record<string, string | undefined> = {};
  for (let index = 0; index < fields.length; index += 2) value[fields[index] ?? ''] = fields[index + 1];
  return {
    id,
    kind: value['kind'] as EntryKind,
    accountId: value['account'] ?? '',
    keyId: value['key'] || undefined,
    rid: value['rid'] ?? '',
    seq: Number(value['seq']),
    amountE8: BigInt(value['amount'] ?? ''),
    postedE8: BigInt(value['posted'] ?? ''),
    shortfallE8: BigInt(value['shortfall'] ?? ''),
    record: value['record'] || undefined,
    ...(value['calls'] === undefined ? {} : { calls: readCalls(value['calls'], value['shortfalls']) }),
  };
}

/** Returns the smallest stream id above this one. */
export function firstIdAfter(id: string): string {
  const [time, sequence] = id.split('-');
  return `${time}-${BigInt(sequence ?? '0') + 1n}`;
}
