import type { Knex } from 'knex';
import { newId } from '../base/ids';
import { newestPage, type Page, type PageRequest } from './page';

/** The actor of every change made with ADMIN_TOKEN. */
export const ADMIN = 'admin';

/** The actor of a change by a route of operators: an operator, or a user where the console has the route too. */
export type OperatorActor = typeof ADMIN | `token:${string}` | `user:${string}`;

/** The record of one change, written in the transaction of the change itself. */
export interface AuditEntry {
  /** `ADMIN` for the holder of ADMIN_TOKEN, `token:<name>` for a named token, `user:<id>` for a person of the console. */
  readonly actor: string;
  /** The noun and verb of the change, such as `key.revoke`. */
  readonly action: string;
  /** The changed thing, such as `key:<id>`. */
  readonly subject: string;
  readonly before?: object;
  readonly after?: object;
}

interface AuditRow extends Required<AuditEntry> {
  readonly id: string;
  readonly createdAt: Date;
}

export async function writeAudit(transaction: Knex.Transaction, entry: AuditEntry): Promise<void> {
  await transaction('audit_log').insert({
    id: newId(),
    created_at: new Date(),
    actor: entry.actor,
    action: entry.action,
    subject: entry.subject,
    before: entry.before === undefined ? null : JSON.stringify(entry.before),
    after: entry.after === undefined ? null : JSON.stringify(entry.after),
  });
}

interface AuditFilters {
  readonly subject: string | undefined;
  readonly actor: string | undefined;
  readonly action: string | undefined;
  /** The time from which audit entries are listed, inclusive. */
  readonly from: Date | undefined;
  /** The time before which audit entries are listed, exclusive. */
  readonly to: Date | undefined;
}

/** Returns a page of audit entries, newest first. */
export async function listAudit(
  database: Knex,
  { subject, actor, action, from, to }: AuditFilters,
  asked: PageRequest,
): Promise<Page<AuditRow>> {
  const columns = ['id', 'created_at as createdAt', 'actor', 'action', 'subject', 'before', 'after'];
  const query = database('audit_log').select(columns);
  for (const [column, value] of Object.entries({ subject, actor, action })) {
    if (value !== undefined) query.where(column, value);
  }
  if (from !== undefined) query.where('created_at', '>=', from);
  if (to !== undefined) query.where('created_at', '<', to);
  return newestPage(query, asked, async (row: AuditRow) => row);
}
