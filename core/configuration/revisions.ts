import type { Knex } from 'knex';
import { writeAudit } from '../storage/audit';
import { decodeCursor, type Page, type PageRequest, toPage } from '../storage/page';

/** A configuration as it was applied; the newest is in force. Its variables stand in it as they are written. */
export interface AppliedRevision {
  /** Counts what was applied. A configuration that is applied again has another number and the same revision. */
  readonly number: number;
  readonly revision: string;
  readonly text: string;
  readonly createdAt: Date;
  readonly actor: string;
  readonly note: string | null;
  /** The number of the one that was brought back. */
  readonly restores: number | null;
}

export interface NewRevision extends Pick<AppliedRevision, 'revision' | 'text' | 'actor' | 'note' | 'restores'> {
  /** What was done although something spoke against it; for the audit log. */
  readonly objections: readonly string[];
  /** Only if the newest is still of one of these numbers; 0 is none. */
  readonly onlyAfter: readonly number[] | undefined;
}

export type Applied =
  | { readonly outcome: 'applied' | 'unchanged'; readonly number: number }
  | { readonly outcome: 'overtaken'; readonly by: Omit<AppliedRevision, 'text'> | undefined };

const COLUMNS = ['number', 'revision', 'created_at as createdAt', 'actor', 'note', 'restores'];

/** Stores it, with its audit row, in one transaction: when this resolves the configuration is applied, whoever is killed. */
export function applyRevision(database: Knex, given: NewRevision): Promise<Applied> {
  const { revision, text, actor, note, restores, objections, onlyAfter } = given;
  return database.transaction(async (transaction): Promise<Applied> => {
    // One at a time, or two would have the same number; those who read do not wait.
    await transaction.raw('LOCK TABLE config_revisions IN SHARE ROW EXCLUSIVE MODE');
    const newest = await newestRevision(transaction);
    if (newest?.revision === revision) return { outcome: 'unchanged', number: newest.number };
    if (onlyAfter !== undefined && !onlyAfter.includes(newest?.number ?? 0))
      return { outcome: 'overtaken', by: newest };
    const number = (newest?.number ?? 0) + 1;
    const row = { number, revision, text, created_at: new Date(), actor, note, restores };
    await transaction('config_revisions').insert(row);
    await writeAudit(transaction, {
      actor,
      action: restores === null ? 'config.apply' : 'config.rollback',
      subject: 'config',
      ...(newest !== undefined && { before: { number: newest.number, revision: newest.revision } }),
      after: {
        number,
        revision,
        ...(note !== null && { note }),
        ...(restores !== null && { restores }),
        ...(objections.length > 0 && { forced: objections }),
      },
    });
    return { outcome: 'applied', number };
  });
}

export async function newestNumber(database: Knex): Promise<number | undefined> {
  const row = await database('config_revisions')
    .select<{ number: number }[]>('number')
    .orderBy('number', 'desc')
    .first();
  return row?.number;
}

export async function newestRevision(database: Knex): Promise<AppliedRevision | undefined> {
  return database('config_revisions').select(COLUMNS).select('text').orderBy('number', 'desc').first();
}

/** By its number; by its revision the newest of that. */
export async function findRevision(database: Knex, name: string): Promise<AppliedRevision | undefined> {
  const which = /^\d{1,9}$/.test(name) ? { number: Number(name) } : { revision: name };
  return database('config_revisions').select(COLUMNS).select('text').where(which).orderBy('number', 'desc').first();
}

/** Newest first, without their texts. */
export async function listRevisions(
  database: Knex,
  { limit, cursor }: PageRequest,
): Promise<Page<Omit<AppliedRevision, 'text'>>> {
  const query = database('config_revisions')
    .select(COLUMNS)
    .orderBy('number', 'desc')
    .limit(limit + 1);
  if (cursor !== undefined) query.where('number', '<', Number(decodeCursor(cursor, [/^\d{1,9}$/])[0]));
  const rows: AppliedRevision[] = await query;
  return toPage(
    rows,
    limit,
    ({ number }) => [String(number)],
    (row) => row,
  );
}
