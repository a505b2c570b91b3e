import { newId, timeOfId } from '../../../core/base/ids';
import type { UsageRecord } from '../../../core/calls/usage-record';
import type { ReportedCall } from '../../../core/ledger/allowances/reported-calls';
import type { OutboxEntry, Payer } from '../../../core/ledger/ledger';
import { MemoryLedger } from '../../../core/ledger/memory-ledger';
import { shardOf } from '../../../core/ledger/shard';
import { usageRecord } from './ledger-fixture';

let made = 0;

/** Makes a call of this payer that a report charges for. */
export function reportedCall(
  payer: Payer,
  costE8: bigint,
  { record = {}, ...changes }: Partial<Omit<ReportedCall, 'record'>> & { record?: Partial<UsageRecord> | string } = {},
): ReportedCall {
  const rid = newId();
  const createdAt = new Date(timeOfId(rid)).toISOString();
  const requestId = `req_${String(made++).padStart(9, '0')}`;
  const text =
    typeof record === 'string' ? record : JSON.stringify(usageRecord(payer, { requestId, createdAt, ...record }));
  return { rid, ending: 'settled', costE8, shortfallE8: 0n, ...changes, record: text };
}

/** Makes the entry of a report that charges for these calls, with the next number and balance. */
export function reportEntry(
  { accountId, keyId }: Payer,
  calls: readonly ReportedCall[],
  before: { readonly seq: number; readonly postedE8: bigint },
): OutboxEntry {
  const amountE8 = -calls.reduce((sum, { costE8 }) => sum + costE8, 0n);
  const shortfallE8 = calls.reduce((sum, call) => sum + call.shortfallE8, 0n);
  const entry = { id: `${Date.now()}-0`, kind: 'charge', accountId, keyId, rid: newId(), record: undefined } as const;
  return { ...entry, calls, seq: before.seq + 1, amountE8, postedE8: before.postedE8 + amountE8, shortfallE8 };
}

/** A ledger whose outbox has these entries until they are trimmed. */
export class ReportingLedger extends MemoryLedger {
  waiting: readonly OutboxEntry[] = [];

  override async readOutbox(shards: readonly number[], limit: number) {
    const own = new Map(await super.readOutbox(shards, limit));
    for (const shard of shards) {
      const reports = this.waiting.filter(({ accountId }) => shardOf(accountId) === shard);
      if (reports.length > 0) own.set(shard, [...(own.get(shard) ?? []), ...reports]);
    }
    return own;
  }

  override async trimOutbox(shard: number, entries: readonly OutboxEntry[]) {
    this.waiting = this.waiting.filter((entry) => !entries.includes(entry));
    await super.trimOutbox(shard, entries);
  }
}
