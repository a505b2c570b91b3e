import { formatUsd } from '../base/money';
import type { Schema } from '../base/settings';
import { listOf, mapOf, object, objectWith, oneOf, orNull, shape } from '../http/shape';
import { PROTOCOL_NAMES } from './protocols';

/** The TypeScript types of a value by the type of its Postgres column: in JSON, and as Postgres returns it. */
interface SqlTypes {
  text: { json: string; row: string };
  uuid: { json: string; row: string };
  timestamptz: { json: string; row: Date };
  int: { json: number; row: number };
  bigint: { json: number; row: bigint };
  boolean: { json: boolean; row: boolean };
  jsonb: { json: object; row: object };
}

type Sql = keyof SqlTypes;

/** Where a field is shown. `all`: everywhere; `operators`: to operators, also in the CSV; `operator-details`: to operators, but not in the CSV. */
type Audience = 'all' | 'operators' | 'operator-details';

interface Field {
  readonly column: string;
  readonly sql: Sql;
  readonly shape: Schema;
  readonly isOptional: boolean;
  readonly audience: Audience;
  /** Where the field's value comes from: the record that a call writes, the ledger's entry, or (`read`) another table, joined when a record is read. */
  readonly from: 'record' | 'ledger' | 'read';
  /** The value of a field that is absent from the record. */
  readonly fallback?: number | undefined;
}

interface Made<C, S, T, M> extends Field {
  readonly column: C & string;
  readonly sql: S & Sql;
  readonly shape: T & Schema;
  readonly isOptional: M extends { isOptional: true } ? true : false;
  readonly audience: M extends { audience: infer A extends Audience } ? A : 'all';
  readonly from: M extends { from: infer F extends Field['from'] } ? F : 'record';
  readonly fallback: M extends { fallback: number } ? number : undefined;
}

function field<const C extends string, const S extends Sql, const T extends Schema, const M extends Partial<Field>>(
  column: C,
  sql: S,
  its: T,
  more: M,
): Made<C, S, T, M> {
  const usual = { isOptional: false, audience: 'all', from: 'record' } as const;
  return { ...usual, ...more, column, sql, shape: its } as unknown as Made<C, S, T, M>;
}

const MAYBE = { isOptional: true } as const;
const NOTHING_MORE = {} as const;
const OPERATORS = { audience: 'operators', isOptional: true } as const;

/** The schema of one run of a model inside a call: its counts, and model, tier, speed and region if they differ from the requested ones. */
export const PASS = mapOf({ anyOf: [shape.integer, shape.text] });

/** The schema of a call's `RoutingFacts` in stored form. */
const ROUTING = objectWith(
  {
    of: { ...shape.integer, description: 'How many candidates there were.' },
    candidates: listOf(object({ upstream: shape.text, score: shape.number })),
    attempts: listOf(
      objectWith(
        { upstream: shape.text, outcome: shape.text, ms: shape.number },
        { status: orNull(shape.integer), why: orNull(shape.text) },
      ),
    ),
  },
  {
    clientRetry: shape.integer,
    intent: { type: 'object' },
    excluded: listOf(object({ upstream: shape.text, fact: shape.text, demanded: shape.text, has: shape.text })),
  },
);

/**
 * The fields of a usage record (docs/contract.md, section 6), in the order of the CSV's columns. This table defines the types of the record
 * and of its row, the INSERT, the answers to clients, the CSV and the OpenAPI document.
 */
const USAGE_FIELDS = {
  requestId: field('request_id', 'text', shape.text, NOTHING_MORE),
  createdAt: field('created_at', 'timestamptz', shape.time, NOTHING_MORE),
  keyId: field('key_id', 'uuid', shape.uuid, NOTHING_MORE),
  keyName: field('key_name', 'text', shape.text, { isOptional: true, from: 'read' }),
  protocol: field('protocol', 'text', oneOf(...PROTOCOL_NAMES), NOTHING_MORE),
  path: field('path', 'text', shape.text, NOTHING_MORE),
  strategy: field('strategy', 'text', shape.text, MAYBE),
  modelRequested: field('model_requested', 'text', shape.text, MAYBE),
  model: field('model', 'text', shape.text, MAYBE),
  upstream: field('upstream', 'text', shape.text, MAYBE),
  attempts: field('attempts', 'int', shape.integer, NOTHING_MORE),
  fallback: field('fallback', 'boolean', shape.yes, NOTHING_MORE),
  stream: field('stream', 'boolean', shape.yes, NOTHING_MORE),
  status: field('status', 'int', shape.integer, NOTHING_MORE),
  source: field('source', 'text', oneOf('provider', 'platform'), NOTHING_MORE),
  errorCode: field('error_code', 'text', shape.text, MAYBE),
  inputTokens: field('input_tokens', 'bigint', shape.integer, MAYBE),
  outputTokens: field('output_tokens', 'bigint', shape.integer, MAYBE),
  totalTokens: field('total_tokens', 'bigint', shape.integer, MAYBE),
  cacheCreationTokens: field('cache_creation_tokens', 'bigint', shape.integer, MAYBE),
  cacheReadTokens: field('cache_read_tokens', 'bigint', shape.integer, MAYBE),
  cost: field('cost_e8', 'bigint', shape.usd, { from: 'ledger' }),
  billing: field('billing', 'text', oneOf('actual', 'estimated', 'released', 'partial', 'expired'), NOTHING_MORE),
  responseTimeMs: field('response_time_ms', 'int', shape.integer, NOTHING_MORE),
  firstTokenMs: field('first_token_ms', 'int', shape.integer, MAYBE),
  configRevision: field('config_revision', 'text', shape.text, NOTHING_MORE),
  // How many calls one usage record stands for.
  calls: field('calls', 'int', shape.integer, { fallback: 1 }),
  passes: field('passes', 'jsonb', listOf(PASS), MAYBE),
  flags: field(
    'flags',
    'jsonb',
    listOf(oneOf('unknown', 'unpriced', 'suspect', 'translated', 'weakened', 'region')),
    MAYBE,
  ),
  // The session and the agent that the client names, in the form of `SessionIds.recorded`.
  sessionId: field('session_id', 'text', shape.text, MAYBE),
  agentId: field('agent_id', 'text', shape.text, MAYBE),
  // The end user for whom the call was.
  endUserId: field('end_user_id', 'text', shape.text, MAYBE),
  // The team and the member of the key at the time of the call.
  teamId: field('team_id', 'uuid', shape.uuid, MAYBE),
  memberId: field('member_id', 'uuid', shape.uuid, MAYBE),
  // The tags that the caller gave the call (core/calls/tags.ts).
  tags: field('tags', 'jsonb', mapOf(shape.text), MAYBE),
  // The region that was declared of the upstream that answered, and what held for the call (see `Demands`).
  region: field('region', 'text', shape.text, MAYBE),
  demands: field('demands', 'text', shape.text, MAYBE),
  accountId: field('account_id', 'uuid', shape.uuid, { audience: 'operators' }),
  // The rollout that includes the call, its stage at that time, and the call's group.
  rollout: field('rollout', 'text', shape.text, OPERATORS),
  rolloutStage: field('rollout_stage', 'int', shape.integer, OPERATORS),
  rolloutGroup: field('rollout_group', 'text', oneOf('control', 'treatment'), OPERATORS),
  // The upstream's charge above the hold, which the platform pays; absent if there is none.
  excess: field('excess_e8', 'bigint', shape.usd, OPERATORS),
  // The cost of the call's attempts at the prices of their upstreams; absent if the gateway called no upstream.
  upstreamCost: field('upstream_cost_e8', 'bigint', shape.usd, OPERATORS),
  routing: field('routing', 'jsonb', ROUTING, { isOptional: true, audience: 'operator-details' }),
} as const;

type Fields = typeof USAGE_FIELDS;
type UsageField = keyof Fields;
type OrNull<F extends Field, T> = F['isOptional'] extends true ? T | null : T;

/** A row of usage_records with the current name of its API key. */
export type UsageRecordRow = {
  readonly [K in UsageField as Fields[K]['column']]: OrNull<Fields[K], SqlTypes[Fields[K]['sql']]['row']>;
};

type Of<A extends Audience> = { [K in UsageField]: Fields[K]['audience'] extends A ? K : never }[UsageField];
type Json<F extends Field> = F['shape'] extends { readonly enum: readonly (infer W)[] }
  ? W
  : F['shape'] extends Usd
    ? string
    : SqlTypes[F['sql']]['json'];
type Usd = typeof shape.usd;
type Shown<K extends UsageField> = OrNull<Fields[K], Json<Fields[K]>>;

type Recorded = { [K in UsageField]: Fields[K]['from'] extends 'record' ? K : never }[UsageField];
type Absent = {
  [K in Recorded]: true extends Fields[K]['isOptional'] ? K : Fields[K]['fallback'] extends number ? K : never;
}[Recorded];
/** The JSON name of a field in a record. Amounts are in units of 1e-8 USD there and have the suffix `E8`. */
type JsonName<K extends UsageField> = Fields[K]['shape'] extends Usd ? `${K}E8` : K;

/** The fields that a call writes, in JSON; a field without a value is absent. */
export type RecordedFields = { readonly [K in Exclude<Recorded, Absent> as JsonName<K>]: Json<Fields[K]> } & {
  readonly [K in Absent as JsonName<K>]?: Json<Fields[K]> | undefined;
};

/** A usage record with the fields that these audiences (clients or operators) see. */
type ShownUsage<A extends Audience> = { readonly [K in Of<A>]: Shown<K> };

const ENTRIES = Object.entries(USAGE_FIELDS) as [UsageField, Field][];

/** Returns the names of the usage record's fields that these audiences (clients or operators) see, in the order of the table. */
export function usageFieldsOf<A extends Audience>(...audiences: readonly A[]): readonly Of<A>[] {
  const wanted: readonly Audience[] = audiences;
  return ENTRIES.filter(([, { audience }]) => wanted.includes(audience)).map(([name]) => name) as Of<A>[];
}

/** Returns a function that converts a row of usage_records to the form that these audiences (clients or operators) see. */
export function usageShower<A extends Audience>(...audiences: readonly A[]): (row: UsageRecordRow) => ShownUsage<A> {
  const names = usageFieldsOf(...audiences) as readonly UsageField[];
  return (row) =>
    Object.fromEntries(names.map((name) => [name, shownValue(name, row[USAGE_FIELDS[name].column])])) as ShownUsage<A>;
}

/** Converts a value to its JSON form. Counts become plain numbers, because they stay far below 2^53. */
function shownValue(name: UsageField, value: UsageRecordRow[keyof UsageRecordRow]): unknown {
  if (value instanceof Date) return value.toISOString();
  if (typeof value !== 'bigint') return value;
  return isMoney(name) ? formatUsd(value) : Number(value);
}

/** Returns the schemas of the fields that `usageShower` shows, for the OpenAPI document. */
export function usageShapes(...audiences: readonly Audience[]): Readonly<Record<string, Schema>> {
  const shown = ENTRIES.filter(([, { audience }]) => audiences.includes(audience));
  return Object.fromEntries(shown.map(([name, each]) => [name, each.isOptional ? orNull(each.shape) : each.shape]));
}

const WRITTEN = ENTRIES.filter(([, { from }]) => from !== 'read');

/** The SQL texts for inserting usage records from JSON: the column names, their values, and the names and types of the JSON members. */
export const USAGE_SQL = {
  columns: inserted(([, { column }]) => column),
  values: inserted(([name, { fallback }]) =>
    fallback === undefined ? `"${jsonName(name)}"` : `coalesce("${jsonName(name)}", ${fallback})`,
  ),
  types: inserted(([name, { sql }]) => `"${jsonName(name)}" ${sql}`),
};

/** The columns of usage records for a COPY into Postgres. Each has the name of its value in the JSON record. */
export const USAGE_COPY = WRITTEN.map(([name, { column, sql, fallback }]) => {
  return { name: jsonName(name), column, sql, fallback };
});

function inserted(text: (entry: [UsageField, Field]) => string): string {
  return WRITTEN.map(text).join(', ');
}

function jsonName(name: UsageField): string {
  return isMoney(name) ? `${name}E8` : name;
}

function isMoney(name: UsageField): boolean {
  return USAGE_FIELDS[name].shape === shape.usd;
}
