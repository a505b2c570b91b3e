import type { Knex } from 'knex';
import { writeAudit } from '../storage/audit';
import { decodeCursor, type Page, type PageRequest, toPage } from '../storage/page';

/** A configuration that an operator or a first process applied; the newest is in force. Its text still contains its variables as `${NAME}`. */
export interface AppliedRevision {
  /** The number of this application. A configuration that is applied again gets a new number but has the same revision hash. */
  readonly number: number;
  readonly revision: string;
  readonly text: string;
  readonly createdAt: Date;
  readonly actor: string;
  readonly note: string | null;
  /** The number of the earlier revision that this one restores; null if it restores none. */
  readonly restores: number | null;
}

interface NewRevision extends Pick<AppliedRevision, 'revision' | 'text' | 'actor' | 'note' | 'restores'> {
  /** The objections that the operator overrode by force, for the audit log. */
  readonly objections: readonly string[];
  /** The permitted numbers of the newest revision; at any other number nothing is applied. 0: no revision yet; undefined: any number. */
  readonly onlyAfter: readonly number[] | undefined;
}

type Applied =
  | { readonly outcome: 'applied' | 'unchanged'; readonly number: number }
  | { readonly outcome: 'overtaken'; readonly by: Omit<AppliedRevision, 'text'> | undefined };

const COLUMNS = ['number', 'revision', 'created_at as createdAt', 'actor', 'note', 'restores'];

/** Stores a revision with its audit row in one transaction. Once the promise resolves, the revision is applied, even if the process is then killed. */
export function applyRevision(database: Knex, given: NewRevision): Promise<Applied> {
  const { revision, text, actor, note, restores, objections, onlyAfter } = given;
  return database.transaction(async (transaction): Promise<Applied> => {
    // The table lock makes processes apply revisions one at a time, because two revisions must not get the same number. Readers do not wait.
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

export async function newestRevision(database: Knex): Promise<AppliedRevision | undefined> {
  return database('config_revisions').select(COLUMNS).select('text').orderBy('number', 'desc').first();
}

/** Finds a revision by its number, or the newest revision with this hash. */
export async function findRevision(database: Knex, name: string): Promise<AppliedRevision | undefined> {
  const which = /^\d{1,9}$/.test(name) ? { number: Number(name) } : { revision: name };
  return database('config_revisions').select(COLUMNS).select('text').where(which).orderBy('number', 'desc').first();
}

/** Returns revisions without their texts, newest first. */
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
