import type { Knex } from 'knex';
import type { CallTags } from '../calls/tags';

/** The conditions on usage records, which must all hold. `from` is inclusive, `to` exclusive. */
export interface UsageFilters {
  /** The account whose records are selected; undefined: the records of all accounts. */
  readonly account?: string | undefined;
  readonly from?: Date | undefined;
  readonly to?: Date | undefined;
  readonly key?: string | undefined;
  /** The names that usage records may have for the selected model; undefined: the records of all models. */
  readonly model?: readonly string[] | undefined;
  readonly upstream?: string | undefined;
  /** The regions that were declared of the upstream that answered, as records have them. */
  readonly region?: string | undefined;
  readonly status?: number | undefined;
  readonly session?: string | undefined;
  readonly agent?: string | undefined;
  readonly team?: string | undefined;
  readonly member?: string | undefined;
  readonly endUser?: string | undefined;
  /** Tags that the calls have, by name. */
  readonly tags?: CallTags | undefined;
  /** The member whose records alone may be selected, whatever the other filters are; undefined: those of all members. */
  readonly memberId?: string | undefined;
}

/** Adds the filters to a query, in a form that can use the indexes of migrations/0003-usage-records.ts. */
export function narrow(
  query: Knex.QueryBuilder,
  {
    account,
    from,
    to,
    key,
    model,
    upstream,
    region,
    status,
    session,
    agent,
    team,
    member,
    endUser,
    tags,
    memberId,
  }: UsageFilters,
): void {
  if (account !== undefined) query.where('usage.account_id', account);
  if (from !== undefined) query.where('usage.created_at', '>=', from);
  if (to !== undefined) query.where('usage.created_at', '<', to);
  if (key !== undefined) query.where('usage.key_id', key);
  if (upstream !== undefined) query.where('usage.upstream', upstream);
  if (region !== undefined) query.where('usage.region', region);
  if (status !== undefined) query.where('usage.status', status);
  if (status !== undefined && status !== 200) query.whereRaw('usage.status <> 200');
  if (session !== undefined) query.where('usage.session_id', session);
  if (agent !== undefined) query.where('usage.agent_id', agent);
  if (team !== undefined) query.where('usage.team_id', team);
  for (const id of [member, memberId]) if (id !== undefined) query.where('usage.member_id', id);
  if (endUser !== undefined) query.where('usage.end_user_id', endUser);
  if (tags !== undefined) query.whereRaw('usage.tags @> ?::jsonb', JSON.stringify(tags));
  // The filter compares the model name that a usage record shows. The record of a refused call has only the name from the request.
  if (model !== undefined) {
    const names = model.map(() => '?').join();
    query.whereRaw(`coalesce(usage.model, usage.model_requested) IN (${names})`, model);
  }
}
