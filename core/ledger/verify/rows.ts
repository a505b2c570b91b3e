import type { Knex } from 'knex';
import { chainSql } from '../outbox/rows';
import { chainOf } from '../scopes';
import { isCompensated, type NamedScope, scopeDetail, type Violation, violation } from './invariants';

/** The last entry of an account that the verification has read, and the sums of the entries read so far. */
export interface Chain {
  readonly accountId: string;
  seq: number;
  postedE8: bigint;
  sumE8: bigint;
  entries: number;
  /** What the read entries charged, by the names of scopes: the account, its teams, its members and its keys. */
  readonly spentE8: Map<string, bigint>;
  /** Whether the chain (the account's entries read so far) begins with the account's first entry. Otherwise `spentE8` lacks earlier spending. */
  readonly isWhole: boolean;
}

/** Returns where the check of each account's entries starts: at its first entry, or at the checkpoint that replaced older entries. */
export async function startChains(database: Knex, accountIds: readonly string[]): Promise<readonly Chain[]> {
  const { rows } = await database.raw<{ rows: { accountId: string; seq: number; posted: string }[] }>(
    `SELECT DISTINCT ON (account_id) account_id::text AS "accountId", seq::float8 AS seq, posted_e8::text AS posted
     FROM ledger_checkpoints
     WHERE account_id IN (SELECT value::uuid FROM jsonb_array_elements_text(:accountIds::jsonb))
     ORDER BY account_id, seq DESC`,
    { accountIds: JSON.stringify(accountIds) },
  );
  const checkpoints = new Map(rows.map((row) => [row.accountId, row]));
  return accountIds.map((accountId) => {
    const { seq, posted } = checkpoints.get(accountId) ?? { seq: 0, posted: '0' };
    const postedE8 = BigInt(posted);
    return { accountId, seq, postedE8, sumE8: postedE8, entries: 0, spentE8: new Map(), isWhole: seq === 0 };
  });
}

/** How many entries of one account an SQL statement checks at most, so that no statement takes long. */
const ENTRIES_AT_ONCE = 20_000;

/** Begins an SQL statement with the entries to check: from the next unread entry of each account to the last one requested. */
const WANTED = `
  WITH wanted AS (
    SELECT * FROM jsonb_to_recordset(:wanted::jsonb) AS wanted ("accountId" uuid, seq bigint, posted bigint, upto bigint)
  ), entry AS (
    SELECT entry.*, wanted.seq AS from_seq, wanted.posted AS from_posted
    FROM wanted JOIN ledger_entries AS entry ON entry.account_id = wanted."accountId"
    WHERE entry.seq > wanted.seq AND entry.seq <= least(wanted.upto, wanted.seq + ${ENTRIES_AT_ONCE})
  )`;

const FOLLOW = `${WANTED}, chained AS (
    SELECT account_id, rid, kind, created_at, seq, amount_e8, posted_e8,
           coalesce(lag(seq) OVER chain, from_seq) AS seq_before,
           coalesce(lag(posted_e8) OVER chain, from_posted) AS posted_before
    FROM entry WINDOW chain AS (PARTITION BY account_id ORDER BY seq)
  )
  SELECT account_id::text AS "accountId", count(*)::int AS entries, sum(amount_e8)::text AS sum, max(seq)::float8 AS seq,
         (array_agg(posted_e8 ORDER BY seq DESC))[1]::text AS posted,
         (array_agg(ARRAY[seq, seq_before + 1] ORDER BY seq) FILTER (WHERE seq <> seq_before + 1))[1:1]::text AS gap,
         (array_agg(ARRAY[seq, posted_before + amount_e8, posted_e8] ORDER BY seq)
           FILTER (WHERE posted_e8 <> posted_before + amount_e8))[1:1]::text AS broken
  FROM chained GROUP BY account_id`;

const SPENT = `${WANTED}
  SELECT account_id::text AS "accountId", coalesce(scopes, '') AS scopes, key_id::text AS "keyId", (-sum(amount_e8))::text AS spent
  FROM entry WHERE kind = 'charge' GROUP BY account_id, scopes, key_id`;

/** Finds reservations that were closed twice, except those whose charge was refunded. */
const CLOSED_TWICE = `${WANTED}
  SELECT entry.account_id::text AS "accountId", entry.rid::text, entry.seq::float8 AS seq, entry.key_id::text AS "keyId",
         entry.kind, before.kind AS "kindBefore", before.seq::float8 AS "seqBefore"
  FROM entry JOIN ledger_entries AS before
    ON before.account_id = entry.account_id AND before.rid = entry.rid AND before.created_at = entry.created_at
   AND before.seq < entry.seq AND before.kind <> 'credit'
  WHERE entry.kind <> 'credit' AND NOT ${isCompensated('entry.account_id', 'entry.rid')}
  ORDER BY entry.seq LIMIT 100`;

interface Followed {
  readonly accountId: string;
  readonly entries: number;
  readonly sum: string;
  readonly seq: number;
  readonly posted: string;
  readonly gap: string | null;
  readonly broken: string | null;
}

/**
 * Checks the entries of each account in Postgres in their order, at most up to the entry number in `upto`. Rows never change, so a
 * concurrent write cannot disturb this check.
 */
export async function followChains(
  database: Knex,
  chains: readonly Chain[],
  upto: ReadonlyMap<string, number>,
): Promise<readonly Violation[]> {
  const found: Violation[] = [];
  let open = chains.filter((chain) => chain.seq < (upto.get(chain.accountId) ?? 0));
  while (open.length > 0) {
    const { rows } = await database.raw<{ rows: Followed[] }>(FOLLOW, { wanted: wantedOf(open, upto) });
    if (rows.length === 0) return found;
    // The following checks cover only the entries that this run of the loop has read, because the ledger may have written more meanwhile.
    const wanted = wantedOf(open, new Map(rows.map(({ accountId, seq }) => [accountId, seq])));
    found.push(...(await closedTwice(database, wanted)));
    await addSpending(database, wanted, open);
    const byId = new Map(rows.map((row) => [row.accountId, row]));
    open = open.filter((chain) => {
      const row = byId.get(chain.accountId);
      if (row === undefined) return false;
      found.push(...advance(chain, row));
      return chain.seq < (upto.get(chain.accountId) ?? 0);
    });
  }
  return found;
}

function wantedOf(chains: readonly Chain[], upto: ReadonlyMap<string, number>): string {
  return JSON.stringify(
    chains.map(({ accountId, seq, postedE8 }) => ({
      accountId,
      seq,
      posted: postedE8.toString(),
      upto: upto.get(accountId) ?? 0,
    })),
  );
}

function advance(chain: Chain, row: Followed): Violation[] {
  const { accountId } = chain;
  chain.seq = row.seq;
  chain.postedE8 = BigInt(row.posted);
  chain.sumE8 += BigInt(row.sum);
  chain.entries += row.entries;
  const [gapAt, next] = numbers(row.gap);
  const [brokenAt, expected, posted] = numbers(row.broken);
  return [
    ...(gapAt === undefined ? [] : [violation('chain_gap', { accountId, seq: Number(gapAt) }, next, gapAt)]),
    ...(brokenAt === undefined
      ? []
      : [violation('chain_broken', { accountId, seq: Number(brokenAt) }, expected, posted)]),
  ];
}

/** Parses the numbers of an array as Postgres prints it: `{{2,5,7}}`. */
function numbers(text: string | null): readonly bigint[] {
  return (text?.match(/-?\d+/g) ?? []).map(BigInt);
}

interface ChargedRow {
  readonly accountId: string;
  readonly scopes: string;
  readonly keyId: string;
  readonly spent: string;
}

async function addSpending(database: Knex, wanted: string, chains: readonly Chain[]): Promise<void> {
  const { rows } = await database.raw<{ rows: ChargedRow[] }>(SPENT, { wanted });
  const byId = new Map(chains.map((chain) => [chain.accountId, chain]));
  for (const { accountId, scopes, keyId, spent } of rows)
    addCharge(byId.get(accountId), chainOf(accountId, scopes, keyId), BigInt(spent));
}

/** Adds a charge to what the entries of an account have charged to each scope. */
export function addCharge(chain: Chain | undefined, scopes: readonly string[], chargedE8: bigint): void {
  for (const scope of scopes) chain?.spentE8.set(scope, (chain.spentE8.get(scope) ?? 0n) + chargedE8);
}

interface ClosedTwice {
  readonly accountId: string;
  readonly rid: string;
  readonly seq: number;
  readonly keyId: string;
  readonly kind: string;
  readonly kindBefore: string;
  readonly seqBefore: number;
}

async function closedTwice(database: Knex, wanted: string): Promise<readonly Violation[]> {
  const { rows } = await database.raw<{ rows: ClosedTwice[] }>(CLOSED_TWICE, { wanted });
  return rows.map(({ kind, kindBefore, seqBefore, ...at }) =>
    violation('closed_twice', at, `only the ${kindBefore} ${seqBefore}`, `a ${kind} too`),
  );
}

/**
 * Sums what scopes have spent by the rows that recovery reads, up to the last checked entry of each account. It subtracts the charges that
 * were written after that entry.
 */
const SUMMED = `
  WITH wanted AS (SELECT * FROM jsonb_to_recordset(:wanted::jsonb) AS wanted ("accountId" uuid, seq bigint)),
  later AS (
    SELECT unnest(${chainSql('entry')}) AS scope, amount_e8
    FROM wanted JOIN ledger_entries AS entry ON entry.account_id = wanted."accountId" AND entry.seq > wanted.seq
    WHERE entry.kind = 'charge')
  SELECT named.value AS scope,
    (coalesce((SELECT sum(spent_e8) FROM scope_spending WHERE scope = named.value), 0)
     + coalesce((SELECT sum(amount_e8) FROM later WHERE scope = named.value), 0))::text AS spent
  FROM jsonb_array_elements_text(:scopes::jsonb) AS named`;

/** How many scopes one statement sums. */
const SUMMED_AT_ONCE = 2_000;

/**
 * Compares the spending of scopes in the checked entries with the sums that recovery reads. If an account's entries begin at a checkpoint,
 * it adopts those sums, because earlier spending is recorded nowhere else.
 */
export async function compareSpending(
  database: Knex,
  chains: readonly Chain[],
  scopes: readonly NamedScope[],
): Promise<readonly Violation[]> {
  const wanted = JSON.stringify(chains.map(({ accountId, seq }) => ({ accountId, seq })));
  const byId = new Map(chains.map((chain) => [chain.accountId, chain]));
  const summed = new Map<string, bigint>();
  for (let first = 0; first < scopes.length; first += SUMMED_AT_ONCE) {
    const some = JSON.stringify(scopes.slice(first, first + SUMMED_AT_ONCE).map(({ scope }) => scope));
    const { rows } = await database.raw<{ rows: { scope: string; spent: string }[] }>(SUMMED, { wanted, scopes: some });
    for (const { scope, spent } of rows) summed.set(scope, BigInt(spent));
  }
  return scopes.flatMap((named) => {
    const chain = byId.get(named.accountId);
    if (chain === undefined) return [];
    const spentE8 = chain.spentE8.get(named.scope) ?? 0n;
    const sumE8 = summed.get(named.scope) ?? 0n;
    if (!chain.isWhole) chain.spentE8.set(named.scope, sumE8);
    else if (spentE8 !== sumE8) return [violation('scope_sum_differs', scopeDetail(named, chain.seq), spentE8, sumE8)];
    return [];
  });
}

/** Returns violations for accounts whose last entry differs from the copy of its number and posted amount in `ledger_accounts`. Recovery reads that table. */
export async function compareEnds(database: Knex, accountIds: readonly string[]): Promise<readonly Violation[]> {
  const { rows } = await database.raw<{
    rows: { accountId: string; last: string; noted: string | null; seq: number }[];
  }>(
    `SELECT wanted.value AS "accountId", last.seq::float8 AS seq, last.seq || ': ' || last.posted_e8 AS last,
            noted.seq || ': ' || noted.posted_e8 AS noted
     FROM jsonb_array_elements_text(:accountIds::jsonb) AS wanted
     JOIN LATERAL (
       SELECT seq, posted_e8 FROM ledger_entries WHERE account_id = wanted.value::uuid ORDER BY seq DESC LIMIT 1
     ) AS last ON true
     LEFT JOIN ledger_accounts AS noted ON noted.account_id = wanted.value::uuid
     WHERE (noted.seq, noted.posted_e8) IS DISTINCT FROM (last.seq, last.posted_e8)`,
    { accountIds: JSON.stringify(accountIds) },
  );
  return rows.map(({ accountId, seq, last, noted }) =>
    violation('chain_end_differs', { accountId, seq }, last, noted ?? 'none'),
  );
}

/** Returns the number of each account's last entry in Postgres. The map leaves out accounts without entries. */
export async function lastSeqs(database: Knex, accountIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
  const { rows } = await database.raw<{ rows: { id: string; seq: number }[] }>(
    `SELECT wanted.value AS id, last.seq::float8 AS seq
     FROM jsonb_array_elements_text(:accountIds::jsonb) AS wanted
     JOIN LATERAL (
       SELECT seq FROM ledger_entries WHERE account_id = wanted.value::uuid ORDER BY seq DESC LIMIT 1
     ) AS last ON true`,
    { accountIds: JSON.stringify(accountIds) },
  );
  return new Map(rows.map(({ id, seq }) => [id, seq]));
}
