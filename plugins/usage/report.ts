import type { Knex } from 'knex';
import {
  DEMAND_NAMES,
  type DemandName,
  type Demands,
  exclusionOf,
  isOutside,
  type RecordedDeclaration,
  readDeclaration,
} from '../../core/catalog/demands';
import { UNKNOWN } from '../../core/catalog/facts';
import { listOf, object, objectWith, oneOf, shape } from '../../core/http/shape';
import { narrow } from '../../core/records/usage-filters';

/** The calls of an account in a period, and what must be true of each attempt at an upstream. */
interface ReportQuery {
  readonly account: string;
  readonly from?: Date | undefined;
  readonly to?: Date | undefined;
  readonly where: Demands;
}

/** How many attempts and calls a report names at most. */
const MAX_NAMED = 10_000;

const DAY_MS = 86_400_000;

/** The schema of a report, for the OpenAPI document. */
export const REPORT = objectWith(
  {
    holds: { ...shape.yes, description: 'Whether every call has recorded attempts, and each attempt meets `where`.' },
    calls: shape.integer,
    attempts: shape.integer,
    unrecorded: { ...shape.integer, description: 'Calls that asked an upstream and have no recorded attempt.' },
    outside: {
      ...listOf(object({ requestId: shape.text, upstream: shape.text, fact: oneOf(...DEMAND_NAMES), has: shape.text })),
      description: `The attempts that break \`where\`, oldest first, ${MAX_NAMED} at most.`,
    },
  },
  {
    unrecordedCalls: {
      ...shape.texts,
      description: `The ids of the calls without recorded attempts, oldest first, ${MAX_NAMED} at most; absent if there are none.`,
    },
  },
);

/** Attempts of which the same was declared and reported. */
interface Alike {
  readonly declared: RecordedDeclaration | null;
  readonly region: string | null;
  readonly attempts: bigint;
}

/**
 * Compares each attempt of an account's calls with demands: by what the configuration declared when the attempt was made, and by the region
 * that the upstream reported. Attempts of which the same was declared are compared once.
 */
export async function readProof(database: Knex, { where, ...period }: ReportQuery) {
  const records = () => {
    const query = database('usage_records as usage');
    narrow(query, period);
    return query;
  };
  const attempts = () => {
    const query = database('upstream_attempts as attempt')
      .whereIn('attempt.request_id', records().select('usage.request_id'))
      .where('attempt.account_id', period.account);
    // An attempt is made after its call began, and no call lasts for a day. Postgres reads only the rows of this time.
    if (period.from !== undefined) query.where('attempt.created_at', '>=', period.from);
    if (period.to !== undefined) query.where('attempt.created_at', '<', new Date(period.to.getTime() + DAY_MS));
    return query;
  };
  const [counted] = await records().select(database.raw('coalesce(sum(usage.calls), 0)::bigint AS calls'));
  const alike: Alike[] = await attempts()
    .select('attempt.declared', 'attempt.region', database.raw('count(*)::bigint AS attempts'))
    .groupBy('attempt.declared', 'attempt.region');
  const missing = () =>
    records()
      .whereRaw(`(usage.attempts > 0 OR usage.billing = 'expired')`)
      .whereNotExists(
        database('upstream_attempts as attempt').whereRaw(
          'attempt.request_id = usage.request_id AND attempt.account_id = usage.account_id',
        ),
      );
  const unrecorded = Number((await missing().count('* as calls'))[0]?.['calls']);
  const unrecordedCalls: string[] =
    unrecorded === 0 ? [] : await missing().orderBy('usage.created_at').limit(MAX_NAMED).pluck('usage.request_id');
  const outside = alike.flatMap((each) => {
    const broken = brokenBy(where, each);
    return broken === undefined ? [] : [{ ...each, broken }];
  });
  const named = outside.length === 0 ? [] : await nameAttempts(database, attempts(), outside);
  return {
    holds: outside.length === 0 && unrecorded === 0,
    calls: Number(counted.calls),
    attempts: Number(alike.reduce((sum, each) => sum + each.attempts, 0n)),
    unrecorded,
    outside: named,
    ...(unrecorded > 0 && { unrecordedCalls }),
  };
}

interface Broken {
  readonly fact: DemandName;
  readonly has: string;
}

/** Returns the first demand that an attempt breaks, and what was declared or reported instead. */
function brokenBy(where: Demands, { declared, region }: Omit<Alike, 'attempts'>): Broken | undefined {
  if (declared === null) {
    const [fact = 'region'] = DEMAND_NAMES.filter((name) => where.text.includes(`${name}=`));
    return { fact, has: UNKNOWN };
  }
  if (isOutside(where, region ?? undefined)) return { fact: 'region', has: region ?? UNKNOWN };
  const exclusion = exclusionOf(where, readDeclaration(declared));
  return exclusion && { fact: exclusion.fact, has: exclusion.has };
}

interface AttemptRow {
  readonly request_id: string;
  readonly upstream: string;
  readonly place: number;
}

/** Names the attempts of which one of these was declared and reported, oldest first. */
async function nameAttempts(
  database: Knex,
  attempts: Knex.QueryBuilder,
  outside: readonly (Alike & { readonly broken: Broken })[],
) {
  const given = JSON.stringify(outside.map(({ declared, region }, place) => ({ declared, region, place })));
  const on = ['declared', 'region'].map((name) => `given.${name} IS NOT DISTINCT FROM attempt.${name}`);
  const rows: AttemptRow[] = await attempts
    .joinRaw(
      database.raw(
        `JOIN jsonb_to_recordset(?::jsonb) AS given (declared jsonb, region text, place int) ON ${on.join(' AND ')}`,
        [given],
      ) as never,
    )
    .select('attempt.request_id', 'attempt.upstream', 'given.place')
    .orderBy(['attempt.created_at', 'attempt.request_id', 'attempt.number'])
    .limit(MAX_NAMED);
  return rows.map(({ request_id: requestId, upstream, place }) => ({ requestId, upstream, ...outside[place]?.broken }));
}
