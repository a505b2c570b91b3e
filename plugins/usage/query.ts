import type { Knex } from 'knex';
import { fail } from '../../core/base/errors';
import { parseTags, TAG_NAME, tagValue } from '../../core/calls/tags';
import type { Catalog } from '../../core/catalog/catalog';
import type { UsageRecordRow } from '../../core/catalog/usage-fields';
import type { PluginGateway } from '../../core/gateway/plugin-gateway';
import { integerReader, isStorable, type Reader, reader, readText, readTime, readUuid } from '../../core/http/query';
import { narrow, type UsageFilters } from '../../core/records/usage-filters';
import type { GroupedBy } from '../../core/records/usage-sums';
import { decodeCursor, type Page, type PageRequest, toPage } from '../../core/storage/page';

/** The parts of the gateway that the endpoints of usage records use. */
export type UsageQueryContext = Pick<PluginGateway, 'database' | 'catalog' | 'sessionIds'>;

/** The query parameters that filter lists and CSV; docs/contract.md, section 6. `from` is inclusive, `to` is exclusive. */
export function filterReaders(gateway: Pick<UsageQueryContext, 'catalog' | 'sessionIds'>) {
  // Usage records may contain only a hash of the session or agent id, but the client filters by the id itself.
  const readId = reader(readText.schema ?? {}, (text) => gateway.sessionIds.recorded(readText(text)));
  return {
    from: readTime,
    to: readTime,
    key: readUuid,
    model: reader(readText.schema ?? {}, (text) => modelNames(gateway.catalog, readText(text))),
    upstream: readText,
    region: readText,
    status: integerReader(100, 599),
    session: readId,
    agent: readId,
    team: readUuid,
    member: readUuid,
    endUser: reader(readText.schema ?? {}, (text) => tagValue(readText(text))),
    tags: reader(TAGS_SCHEMA, (text) => parseTags(readText(text), 'tags')),
  };
}

const TAGS_SCHEMA = { ...readText.schema, description: 'Tags that the calls have, such as `customer=4711,project=a`.' };

/** What totals and charts can be grouped by, besides `tag:NAME`. */
const GROUPED_BY = ['model', 'key', 'upstream', 'region', 'team', 'member', 'session', 'agent', 'endUser'] as const;
const BY = new RegExp(`^(?:${GROUPED_BY.join('|')}|tag:${TAG_NAME.slice(1, -1)})$`);

export const readGroupedBy: Reader<GroupedBy> = reader(
  { type: 'string', pattern: BY.source, description: `${GROUPED_BY.join(', ')}, or a tag such as \`tag:customer\`.` },
  (text) => {
    if (!BY.test(text)) throw new RangeError(`expected one of ${GROUPED_BY.join(', ')}, or a tag such as tag:customer`);
    return text as GroupedBy;
  },
);

/** Returns the names under which records may list a model. Records have the model's own name, so a filter by an alias includes it. */
function modelNames(catalog: Catalog, name: string): readonly string[] {
  const lookup = catalog.find(name);
  return 'found' in lookup && lookup.found.name !== name ? [name, lookup.found.name] : [name];
}

/** Lists records, newest first. Records of one millisecond are sorted by request id, so that a cursor has exactly one position. */
export async function listRecords<T>(
  database: Knex,
  filters: UsageFilters,
  { limit, cursor }: PageRequest,
  toItem: (row: UsageRecordRow) => T,
): Promise<Page<T>> {
  const query = selectRecords(database)
    .orderBy([
      { column: 'usage.created_at', order: 'desc' },
      { column: 'usage.request_id', order: 'desc' },
    ])
    .limit(limit + 1);
  narrow(query, filters);
  if (cursor !== undefined) {
    const [createdAt, requestId] = decodeCursor(cursor, [CREATED_AT, REQUEST_ID]);
    query.whereRaw('(usage.created_at, usage.request_id) < (?::timestamptz, ?::text)', [
      createdAt ?? '',
      requestId ?? '',
    ]);
  }
  const rows: UsageRecordRow[] = await query;
  return toPage(rows, limit, (row) => [row.created_at.toISOString(), row.request_id], toItem);
}

const CREATED_AT = {
  test: (text: string) => {
    const time = new Date(text);
    return isStorable(time) && time.toISOString() === text;
  },
};
const REQUEST_ID = /^[\x21-\x7e]{1,200}$/;

/** Finds the record of one request; with `account`, only among that account's records, and with `memberId` only among that member's. @throws NOT_FOUND */
export async function requireRecord(
  database: Knex,
  requestId: string | undefined,
  { account, memberId }: Pick<UsageFilters, 'account' | 'memberId'> = {},
): Promise<UsageRecordRow> {
  const row = await findRecord(database, requestId ?? '', { account, memberId });
  if (row === undefined) throw fail('NOT_FOUND', { message: 'No usage record exists for this request.' });
  return row;
}

async function findRecord(database: Knex, requestId: string, owner: UsageFilters) {
  if (!REQUEST_ID.test(requestId)) return undefined;
  const query = selectRecords(database).where({ 'usage.request_id': requestId }).limit(1);
  narrow(query, owner);
  const [row]: UsageRecordRow[] = await query;
  return row;
}

function selectRecords(database: Knex): Knex.QueryBuilder {
  return database('usage_records as usage')
    .leftJoin('api_keys as key', 'key.id', 'usage.key_id')
    .select('usage.*', 'key.name as key_name');
}
