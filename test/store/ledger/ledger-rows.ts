import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { newId } from '../../../core/base/ids';
import type { KeySettings, Payer, SetScopeRequest } from '../../../core/ledger/ledger';
import { readScopeRow } from '../../../core/ledger/scope-rows';
import { type LimitWindow, tagScope } from '../../../core/ledger/scopes';
import { hashOf } from './ledger-fixture';

/** Writes account and key to Postgres as the operator interface does. */
export async function insertPayer(database: Knex, payer: Payer, limitE8?: bigint): Promise<void> {
  await database('accounts').insert({ id: payer.accountId, name: 'an account' });
  await database('api_keys').insert({
    id: payer.keyId,
    account_id: payer.accountId,
    name: 'a key',
    hash: hashOf(payer),
    prefix: 'tg',
    suffix: 'abcd',
  });
  if (limitE8 === undefined) return;
  const budget = { id: newId(), account_id: payer.accountId, scope: `k:${payer.keyId}`, window: 'total' };
  await database('budgets').insert({ ...budget, limit_e8: limitE8.toString() });
}

/** Writes a team and a member of an account to Postgres, and makes the calls of the payer's key theirs. Returns their scopes. */
export async function insertTeam(
  database: Knex,
  payer: Payer,
  { teamId, memberId }: Required<Pick<KeySettings, 'teamId' | 'memberId'>>,
): Promise<{ readonly team: string; readonly member: string }> {
  const { accountId, keyId } = payer;
  await database('teams').insert({ id: teamId, account_id: accountId, name: 'a team' });
  await database('scopes').insert({ scope: `t:${teamId}`, account_id: accountId });
  const user = { id: memberId, account_id: accountId, email: `${memberId}@example.com`, password_hash: '' };
  await database('users').insert(user);
  await database('api_keys').where({ id: keyId }).update({ team_id: teamId, member_id: memberId });
  return { team: `t:${teamId}`, member: `m:${memberId}` };
}

/** Writes a budget of a tag to Postgres as the operator interface does. Returns what the ledger is told. */
export async function insertTagBudget(
  database: Knex,
  accountId: string,
  { tag, value, window, limitE8 }: { tag: string; value?: string; window: LimitWindow; limitE8: bigint },
): Promise<readonly SetScopeRequest[]> {
  const name = tagScope(accountId, tag);
  const scopes = value === undefined ? [name] : [name, `${name}=${value}`];
  const budget = { id: newId(), account_id: accountId, scope: scopes.at(-1), tag, value, window };
  await database('budgets').insert({ ...budget, limit_e8: limitE8.toString() });
  const requests: SetScopeRequest[] = [];
  for (const scope of scopes) {
    await database('scopes').insert({ scope, account_id: accountId }).onConflict('scope').ignore();
    await database('scopes').where({ scope }).increment('rev', 1);
    const request = await readScopeRow(database, scope);
    if (request !== undefined) requests.push(request);
  }
  return requests;
}

/** Returns what Postgres says that scopes have spent, by scope and day. */
export async function readSums(database: Knex, scopes: readonly string[]): Promise<Readonly<Record<string, bigint>>> {
  const rows: { scope: string; day: string; spent: bigint }[] = await database('scope_spending')
    .whereIn('scope', [...scopes])
    .select('scope', database.raw('day::text AS day'), 'spent_e8 as spent');
  return Object.fromEntries(rows.map(({ scope, day, spent }) => [`${scope} ${day}`, spent]));
}

export async function insertCredit(database: Knex, accountId: string, id: string, amountE8: bigint): Promise<void> {
  await database('credits').insert({
    id,
    account_id: accountId,
    amount_e8: amountE8.toString(),
    idempotency_key: id,
  });
}

export interface EntryRow {
  readonly seq: number;
  readonly kind: string;
  readonly rid: string;
  readonly amount: bigint;
  readonly posted: bigint;
}

/** Returns an account's entries in order and asserts that each continues the previous one. */
export async function readChain(database: Knex, accountId: string): Promise<readonly EntryRow[]> {
  const rows = await database('ledger_entries').where({ account_id: accountId }).orderBy('seq');
  const entries = rows.map((row) => ({
    seq: Number(row.seq),
    kind: String(row.kind),
    rid: String(row.rid),
    amount: BigInt(row.amount_e8),
    posted: BigInt(row.posted_e8),
  }));
  entries.forEach((entry, index) => {
    const before = entries[index - 1];
    assert.equal(entry.seq, index + 1, 'a gap or a duplicate');
    assert.equal(entry.posted, (before?.posted ?? 0n) + entry.amount);
  });
  return entries;
}
