import type { Knex } from 'knex';
import { fail, invalidParam } from '../../base/errors';
import { newId } from '../../base/ids';
import { writeEvents } from '../../events/raise';
import { writeAudit } from '../../storage/audit';
import { existing, idIs, newestPage, type Page, type PageRequest } from '../../storage/page';
import type { Configuration } from '../configuration';
import { applyRevision, newestRevision } from '../revisions';
import { appliableRows, withRows } from './apply-rows';
import type { ListFormat } from './list';
import type { GoneModel, ProposalRow } from './rows';

export const PROPOSAL_SOURCES = ['models.dev', 'litellm', 'file'] as const;

/** The prices that a public list has otherwise than the configuration at that time. */
export interface Proposal {
  readonly id: string;
  readonly source: (typeof PROPOSAL_SOURCES)[number];
  readonly format: ListFormat;
  readonly url: string | null;
  readonly status: 'open' | 'applied';
  readonly createdAt: Date;
  /** When the accepted rows are, or were, applied; null while the proposal is open. */
  readonly holdsFrom: Date | null;
  /** The number of the revision that applied them; null until then. */
  readonly number: number | null;
  readonly rows: readonly ProposalRow[];
  readonly gone: readonly GoneModel[];
}

interface ProposalRecord extends Pick<Proposal, 'id' | 'source' | 'format' | 'url' | 'rows' | 'gone' | 'number'> {
  readonly created_at: Date;
  readonly holds_from: Date | null;
  readonly actor: string | null;
  readonly note: string | null;
  readonly forced: readonly string[] | null;
}

function toProposal({ created_at, holds_from, ...record }: ProposalRecord): Proposal {
  const { id, source, format, url, rows, gone, number } = record;
  const status = holds_from === null ? 'open' : 'applied';
  return { id, source, format, url, status, createdAt: created_at, holdsFrom: holds_from, number, rows, gone };
}

type NewProposal = Pick<Proposal, 'source' | 'format' | 'url' | 'rows' | 'gone'>;

export function createProposal(database: Knex, given: NewProposal, actor: string): Promise<Proposal> {
  const { rows, gone, ...plain } = given;
  const id = newId();
  const record = { id, ...plain, rows: JSON.stringify(rows), gone: JSON.stringify(gone), created_at: new Date() };
  return database.transaction(async (transaction) => {
    await transaction('price_proposals').insert(record);
    const after = { ...plain, rows: rows.length, gone: gone.length };
    await writeAudit(transaction, { actor, action: 'proposal.create', subject: `proposal:${id}`, after });
    return toProposal(await readRecord(transaction, id));
  });
}

export function listProposals(database: Knex, page: PageRequest): Promise<Page<Proposal>> {
  return newestPage<ProposalRecord, Proposal>(database('price_proposals').select(), page, async (row) =>
    toProposal(row),
  );
}

/** @throws NOT_FOUND */
export async function findProposal(database: Knex, id: string): Promise<Proposal> {
  return toProposal(await readRecord(database, id));
}

/** Reads a proposal, and in a transaction locks it against other changes. @throws NOT_FOUND */
async function readRecord(database: Knex | Knex.Transaction, id: string): Promise<ProposalRecord> {
  const query = database('price_proposals').where(idIs(id));
  const found = (database.isTransaction ? query.forUpdate() : query).first<ProposalRecord | undefined>();
  return existing(await found, 'proposal');
}

interface Review {
  readonly accept: readonly string[];
  readonly refuse: readonly string[];
}

/**
 * Accepts and refuses rows. Rows that a guard has stopped stay stopped. While accepted rows wait for their time, they can still be
 * refused; without any the proposal is open again.
 * @throws NOT_FOUND, INVALID_FIELD for an unknown row, CONFLICT for a stopped row and for an applied proposal
 */
export function reviewProposal(database: Knex, id: string, review: Review, actor: string): Promise<Proposal> {
  return database.transaction(async (transaction) => {
    const before = await readRecord(transaction, id);
    checkReview(before, review);
    if (before.number !== null || (before.holds_from !== null && review.accept.length > 0)) throw appliedBefore();
    const rows = before.rows.map((row): ProposalRow => {
      if (review.accept.includes(row.id)) return { ...row, state: 'accepted' };
      return review.refuse.includes(row.id) && row.state !== 'stopped' ? { ...row, state: 'refused' } : row;
    });
    const isWaiting = before.holds_from !== null && rows.some(({ state }) => state === 'accepted');
    const holds_from = isWaiting ? before.holds_from : null;
    await update(transaction, id, { rows, holds_from });
    const after = { accept: review.accept, refuse: review.refuse };
    await writeAudit(transaction, { actor, action: 'proposal.review', subject: `proposal:${id}`, after });
    return toProposal({ ...before, rows, holds_from });
  });
}

function checkReview({ rows }: ProposalRecord, { accept, refuse }: Review): void {
  const known = new Map(rows.map((row) => [row.id, row]));
  for (const [field, ids] of Object.entries({ accept, refuse })) {
    const wrong = ids.findIndex((each) => !known.has(each) || (field === 'refuse' && accept.includes(each)));
    if (wrong !== -1)
      throw invalidParam(`${field}[${wrong}]`, 'expected the id of a row of this proposal, once in all');
  }
  const stopped = accept.find((each) => known.get(each)?.state === 'stopped');
  if (stopped === undefined) return;
  const guard = known.get(stopped)?.guard;
  throw fail('CONFLICT', { message: `Row ${stopped} is stopped by the guard "${guard}" and cannot be accepted.` });
}

function appliedBefore() {
  return fail('CONFLICT', { message: 'The proposal was applied before. Make a new one from the list.' });
}

async function update(
  transaction: Knex.Transaction,
  id: string,
  { rows, ...plain }: Partial<ProposalRecord>,
): Promise<void> {
  const change = { ...plain, ...(rows !== undefined && { rows: JSON.stringify(rows) }) };
  await transaction('price_proposals').where({ id }).update(change);
}

export function acceptedRows({ rows }: Pick<Proposal, 'rows'>): readonly ProposalRow[] {
  return rows.filter(({ state }) => state === 'accepted');
}

/** @throws CONFLICT if no row is accepted, or the proposal was applied before */
export function checkAppliable(proposal: Proposal): void {
  if (proposal.status === 'applied') throw appliedBefore();
  if (acceptedRows(proposal).length === 0)
    throw fail('CONFLICT', { message: 'No row of the proposal is accepted. Review it first.' });
}

interface Application {
  /** The accepted rows that were checked. */
  readonly rows: readonly ProposalRow[];
  /** When the rows are to be applied; undefined for now. */
  readonly from: Date | undefined;
  readonly actor: string;
  readonly note: string | null;
  readonly objections: readonly string[];
}

/** Makes the accepted rows wait for their time. @returns that time, by the database's clock. @throws CONFLICT as `checkAppliable`, and if other rows are accepted meanwhile */
export function scheduleProposal(
  database: Knex,
  id: string,
  { rows: checked, from, actor, note, objections }: Application,
): Promise<Date> {
  return database.transaction(async (transaction) => {
    const proposal = toProposal(await readRecord(transaction, id));
    checkAppliable(proposal);
    const ids = (of: readonly ProposalRow[]) => of.map((row) => row.id).join();
    if (ids(acceptedRows(proposal)) !== ids(checked))
      throw fail('CONFLICT', { message: 'The accepted rows have just changed. Look at the proposal again.' });
    const { rows } = await transaction.raw<{ rows: { at: Date }[] }>(
      'UPDATE price_proposals SET holds_from = greatest(:from::timestamptz, clock_timestamp()), actor = :actor, note = :note, forced = :forced WHERE id = :id RETURNING holds_from AS at',
      { id, from: from ?? null, actor, note, forced: JSON.stringify(objections) },
    );
    const [{ at } = { at: new Date() }] = rows;
    const after = { holdsFrom: at.toISOString(), ...(note !== null && { note }) };
    await writeAudit(transaction, { actor, action: 'proposal.apply', subject: `proposal:${id}`, after });
    return at;
  });
}

/** The condition of proposals whose rows are to be applied now. */
export const IS_DUE = 'number IS NULL AND holds_from IS NOT NULL AND holds_from <= clock_timestamp()';

type Check = (text: string) => Configuration;

/**
 * Applies the accepted rows of every proposal whose time has come to the newest revision; one process does it. A row whose old price is no
 * longer the reviewed one, or whose new price the configuration does not take any more, stops. A proposal without a row to apply is open again.
 * @throws the first error, after all proposals: ConfigurationError if this node cannot read the configuration
 */
export async function applyDue(database: Knex, check: Check): Promise<void> {
  const due: string[] = await database('price_proposals').whereRaw(IS_DUE).orderBy(['holds_from', 'id']).pluck('id');
  const errors: unknown[] = [];
  for (const id of due) {
    try {
      await database.transaction((transaction) => applyOne(transaction, id, check));
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}

async function applyOne(transaction: Knex.Transaction, id: string, check: Check): Promise<void> {
  // Locks the revisions first, as every other process does that applies one. Readers do not wait.
  await transaction.raw('LOCK TABLE config_revisions IN SHARE ROW EXCLUSIVE MODE');
  const due = transaction<ProposalRecord>('price_proposals').where({ id }).whereRaw(IS_DUE);
  const proposal = (await due.forUpdate().first()) as ProposalRecord | undefined;
  const newest = await newestRevision(transaction);
  if (proposal === undefined || newest === undefined) return;
  const { actor, note, forced } = proposal;
  const current = check(newest.text);
  const accepted = acceptedRows(proposal);
  const kept = appliableRows(current, accepted, check);
  const changed = accepted.filter((row) => !kept.includes(row));
  const by = actor ?? 'admin';
  if (changed.length > 0) await stopRows(transaction, proposal, changed, by);
  if (kept.length === 0) await update(transaction, id, { holds_from: null });
  else {
    const { text, revision } = withRows(current, kept, check);
    const more = { actor: by, note: note ?? `proposal ${id}`, restores: null, objections: forced ?? [] };
    const { number } = await applyAlways(transaction, { revision, text, ...more });
    await update(transaction, id, { number });
  }
  const events = changed.map(({ id: row, upstream, model, meter, old, new: wanted }) => {
    const data = { proposalId: id, row, upstream, model, meter, old, new: wanted };
    return { type: 'price.stopped', once: `${id} ${row}`, data } as const;
  });
  await writeEvents(transaction, events);
}

async function applyAlways(
  transaction: Knex.Transaction,
  given: Omit<Parameters<typeof applyRevision>[1], 'onlyAfter'>,
) {
  const applied = await applyRevision(transaction, { ...given, onlyAfter: undefined });
  if (applied.outcome === 'overtaken') throw new Error('a revision was overtaken in spite of the lock of its table');
  return applied;
}

/** Stops rows whose old price has changed since the review. */
async function stopRows(
  transaction: Knex.Transaction,
  { id, rows }: ProposalRecord,
  changed: readonly ProposalRow[],
  actor: string,
): Promise<void> {
  const stopped = rows.map((row): ProposalRow => {
    return changed.includes(row) ? { ...row, state: 'stopped', guard: 'changed' } : row;
  });
  await update(transaction, id, { rows: stopped });
  const after = {
    rows: changed.map(({ id: row, upstream, model, meter, old }) => ({ id: row, upstream, model, meter, old })),
  };
  await writeAudit(transaction, { actor, action: 'proposal.stop', subject: `proposal:${id}`, after });
}
