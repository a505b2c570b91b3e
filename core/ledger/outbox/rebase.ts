import type { Knex } from 'knex';
import type { ReportedCall } from '../allowances/reported-calls';
import { smallest } from '../amount';
import type { OutboxEntry } from '../ledger';

interface Chain {
  readonly accountId: string;
  readonly seq: bigint;
  readonly posted: string;
}

/**
 * Appends entries of a ledger that was restored to an older state to the end of their account's chain. Their calls were served and their
 * credits granted, but Postgres already has newer entries with their numbers. If the balance no longer covers a charge, the platform bears
 * the loss, because a balance is never below zero.
 */
export async function continueChains(trx: Knex, entries: readonly OutboxEntry[]): Promise<readonly OutboxEntry[]> {
  const chains = new Map((await readChains(trx, entries)).map((chain) => [chain.accountId, chain]));
  const written = await readWritten(trx, entries);
  const ends = new Map<string, { seq: number; postedE8: bigint }>();
  return entries.map((entry) => {
    const { accountId, seq } = entry;
    const chain = chains.get(accountId);
    if (chain === undefined || written.has(placeOf(entry))) return entry;
    const end = ends.get(accountId) ?? (seq <= Number(chain.seq) ? endOf(chain) : undefined);
    if (end === undefined) return entry;
    const moved = append(entry, end);
    ends.set(accountId, { seq: moved.seq, postedE8: moved.postedE8 });
    return moved;
  });
}

function endOf({ seq, posted }: Chain): { seq: number; postedE8: bigint } {
  return { seq: Number(seq), postedE8: BigInt(posted) };
}

function append(entry: OutboxEntry, end: { seq: number; postedE8: bigint }): OutboxEntry {
  const isCovered = end.postedE8 + entry.amountE8 >= 0n;
  const amountE8 = isCovered ? entry.amountE8 : -end.postedE8;
  const missingE8 = amountE8 - entry.amountE8;
  return {
    ...entry,
    seq: end.seq + 1,
    amountE8,
    postedE8: end.postedE8 + amountE8,
    shortfallE8: entry.shortfallE8 + missingE8,
    calls: entry.calls && cutCalls(entry.calls, missingE8),
  };
}

/** Lowers the charges of the last calls of an allowance report by the missing amount. The sum of the charges then equals what the report's entry charges. */
function cutCalls(calls: readonly ReportedCall[], missingE8: bigint): readonly ReportedCall[] {
  let restE8 = missingE8;
  const cut = calls.toReversed().map((call) => {
    const cutE8 = smallest(restE8, call.costE8);
    restE8 -= cutE8;
    return { ...call, costE8: call.costE8 - cutE8, shortfallE8: call.shortfallE8 + cutE8 };
  });
  return cut.toReversed();
}

async function readChains(trx: Knex, entries: readonly OutboxEntry[]): Promise<readonly Chain[]> {
  const accountIds = JSON.stringify([...new Set(entries.map(({ accountId }) => accountId))]);
  const { rows } = await trx.raw<{ rows: Chain[] }>(
    `SELECT account_id::text AS "accountId", seq, posted_e8::text AS posted FROM ledger_accounts
     JOIN jsonb_array_elements_text(:accountIds::jsonb) AS account ON account_id = account.value::uuid`,
    { accountIds },
  );
  return rows;
}

/** Returns the entries that Postgres already has, possibly under other numbers. They were shipped earlier, but a restored ledger has them again. */
async function readWritten(trx: Knex, entries: readonly OutboxEntry[]): Promise<ReadonlySet<string>> {
  const wanted = entries.map(({ accountId, rid, kind }) => ({ accountId, rid, kind }));
  const { rows } = await trx.raw<{ rows: { rid: string; kind: string }[] }>(
    `SELECT entry.rid::text AS rid, entry.kind FROM ledger_entries AS entry
     JOIN jsonb_to_recordset(:wanted::jsonb) AS wanted ("accountId" uuid, rid uuid, kind text)
       ON entry.account_id = wanted."accountId" AND entry.rid = wanted.rid AND entry.kind = wanted.kind`,
    { wanted: JSON.stringify(wanted) },
  );
  return new Set(rows.map(placeOf));
}

function placeOf({ rid, kind }: { readonly rid: string; readonly kind: string }): string {
  return `${rid} ${kind}`;
}
