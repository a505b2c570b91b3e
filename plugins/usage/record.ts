import { formatUsd } from '../../core/money';
import { object, oneOf, orNull, shape } from '../../core/shape';

/** A row of usage_records with the name its key has now. */
export interface RecordRow {
  readonly request_id: string;
  readonly created_at: Date;
  readonly account_id: string;
  readonly key_id: string;
  readonly key_name: string | null;
  readonly protocol: string;
  readonly path: string;
  readonly strategy: string | null;
  readonly model_requested: string | null;
  readonly model: string | null;
  readonly upstream: string | null;
  readonly attempts: number;
  readonly fallback: boolean;
  readonly stream: boolean;
  readonly status: number;
  readonly source: string;
  readonly error_code: string | null;
  readonly input_tokens: bigint | null;
  readonly output_tokens: bigint | null;
  readonly total_tokens: bigint | null;
  readonly cache_creation_tokens: bigint | null;
  readonly cache_read_tokens: bigint | null;
  readonly cost_e8: bigint;
  readonly billing: string;
  readonly response_time_ms: number;
  readonly first_token_ms: number | null;
  readonly config_revision: string;
  readonly calls: number;
  readonly routing: object | null;
  readonly rollout: string | null;
  readonly rollout_stage: number | null;
  readonly rollout_arm: string | null;
}

/** A record as it is shown: the fields of contract section 6 in their order, which is the order of the CSV's columns. */
export function toRecord(row: RecordRow) {
  return {
    requestId: row.request_id,
    createdAt: row.created_at.toISOString(),
    keyId: row.key_id,
    keyName: row.key_name,
    protocol: row.protocol,
    path: row.path,
    strategy: row.strategy,
    modelRequested: row.model_requested,
    model: row.model,
    upstream: row.upstream,
    attempts: row.attempts,
    fallback: row.fallback,
    stream: row.stream,
    status: row.status,
    source: row.source,
    errorCode: row.error_code,
    inputTokens: toNumber(row.input_tokens),
    outputTokens: toNumber(row.output_tokens),
    totalTokens: toNumber(row.total_tokens),
    cacheCreationTokens: toNumber(row.cache_creation_tokens),
    cacheReadTokens: toNumber(row.cache_read_tokens),
    cost: formatUsd(row.cost_e8),
    billing: row.billing,
    responseTimeMs: row.response_time_ms,
    firstTokenMs: row.first_token_ms,
    configRevision: row.config_revision,
    calls: row.calls,
  };
}

export type ShownRecord = ReturnType<typeof toRecord>;

/** For operators, who see several accounts at once, and what goes out in stages. */
export function toRecordOfAccount(row: RecordRow) {
  return {
    ...toRecord(row),
    accountId: row.account_id,
    rollout: row.rollout,
    rolloutStage: row.rollout_stage,
    rolloutArm: row.rollout_arm,
  };
}

/** With why the call went where it went, which has no place in a table. */
export function toExplainedRecord(row: RecordRow) {
  return { ...toRecordOfAccount(row), routing: row.routing };
}

/** Token counts stay far below 2^53. */
function toNumber(count: bigint | null): number | null {
  return count === null ? null : Number(count);
}

/** What `toRecord` answers, as the OpenAPI document says it. */
const RECORD_FIELDS = {
  requestId: shape.text,
  createdAt: shape.time,
  keyId: shape.uuid,
  keyName: orNull(shape.text),
  protocol: oneOf('messages', 'chat'),
  path: shape.text,
  strategy: orNull(shape.text),
  modelRequested: orNull(shape.text),
  model: orNull(shape.text),
  upstream: orNull(shape.text),
  attempts: shape.integer,
  fallback: shape.yes,
  stream: shape.yes,
  status: shape.integer,
  source: oneOf('provider', 'platform'),
  errorCode: orNull(shape.text),
  inputTokens: orNull(shape.integer),
  outputTokens: orNull(shape.integer),
  totalTokens: orNull(shape.integer),
  cacheCreationTokens: orNull(shape.integer),
  cacheReadTokens: orNull(shape.integer),
  cost: shape.usd,
  billing: oneOf('actual', 'estimated', 'released', 'partial', 'expired'),
  responseTimeMs: shape.integer,
  firstTokenMs: orNull(shape.integer),
  configRevision: shape.text,
  calls: shape.integer,
} satisfies Record<keyof ShownRecord, object>;

export const RECORD = object(RECORD_FIELDS);

export const EXPLAINED_RECORD = object({
  ...RECORD_FIELDS,
  accountId: shape.uuid,
  rollout: orNull(shape.text),
  rolloutStage: orNull(shape.integer),
  rolloutArm: orNull(oneOf('control', 'candidate')),
  routing: orNull({ type: 'object', description: 'Why the call went where it went.' }),
});
