import { mapValues } from '../base/collections';
import { divideRoundingUp, E14_PER_E8, formatUsd } from '../base/money';
import type { Schema } from '../base/settings';
import { listOf, oneOf, orNull, shape } from '../http/shape';
import type { RecordedDeclaration } from './demands';
import { PASS } from './usage-fields';

/**
 * Why an attempt was made, or how it ended, to explain why a vendor's invoice differs from what customers were charged. `answered`: the
 * attempt's usage was reported and charged. `unknown`: as `answered`, but the request or the usage report had something that the gateway
 * does not know. `estimated`: the upstream answered without a usable report, and the gateway counted the usage. `left`: the client
 * disconnected before the usage was reported. `failed`: the upstream did not answer, or broke off. `mirror`: a rollout sent the upstream a
 * copy of a call that another upstream answered. `test`: an operator tested the upstream.
 */
export const ATTEMPT_CAUSES = ['answered', 'unknown', 'estimated', 'left', 'failed', 'mirror', 'test'] as const;
export type AttemptCause = (typeof ATTEMPT_CAUSES)[number];

/** One request to an upstream, as recorded in JSON; a call has one or more. Members with the usual or an unknown value are absent. */
export interface RecordedAttempt {
  /** When the attempt began, in milliseconds since 1970. */
  readonly startedAtMs: number;
  /** The attempt's number within its call, from 1; 0 for a mirror. Absent: its position in the list. */
  readonly number?: number | undefined;
  readonly upstream: string;
  /** The name of the credential that the gateway used, never its value. Absent: the upstream's name. */
  readonly credential?: string | undefined;
  /** The upstream's own name of the model. */
  readonly model: string;
  /** Why the attempt was made or how it ended; absent for `answered`. */
  readonly cause?: AttemptCause | undefined;
  /** Why there was no answer; absent if the upstream answered. */
  readonly outcome?: string | undefined;
  readonly status?: number | undefined;
  /** Milliseconds until the upstream answered or failed. */
  readonly ms: number;
  readonly upstreamRequestId?: string | undefined;
  /** The usage of the attempt: a list of passes (model runs), in the form of a usage record; absent if unknown. */
  readonly passes?: readonly Readonly<Record<string, string | number | undefined>>[] | undefined;
  /** The region in which the upstream says it processed the attempt; absent if it says none. */
  readonly region?: string | undefined;
  /** What was declared of the upstream's model when the attempt was made, as far as demands concern it. */
  readonly declared?: RecordedDeclaration | undefined;
  /** Whether the upstream reported the whole usage of the attempt. */
  readonly isReported: boolean;
  /** The cost in 1e-14 USD: a decimal integer. */
  readonly costE14: string;
}

interface AttemptField {
  readonly column: string;
  readonly sql: 'text' | 'int' | 'timestamptz' | 'boolean' | 'jsonb' | 'numeric';
  readonly recorded: keyof RecordedAttempt;
  readonly shape: Schema;
  /** What the column gets if the recorded attempt lacks the value: the attempt's position in the list, its upstream's name, or the word `answered`. */
  readonly fallback: 'place' | 'upstream' | 'answered' | undefined;
}

function field(
  column: string,
  sql: AttemptField['sql'],
  recorded: AttemptField['recorded'],
  its: Schema,
  fallback?: AttemptField['fallback'],
): AttemptField {
  return { column, sql, recorded, shape: its, fallback };
}

const NUMBER = 'Its place in the call; 0: a mirror, which a rollout sent after the call.';
const CREDENTIAL = 'The name of the credential, never its value.';
const REGION = 'The region in which the upstream says it processed the attempt.';
const DECLARED = 'What the configuration declared of the model then, as far as demands concern it.';
const COST = "At the upstream's price; not what the customer paid.";

/** The fields of an attempt as operators see them. The INSERT, the COPY, the list of attempts and the OpenAPI document derive from this table. */
const ATTEMPT_FIELDS = {
  number: field('number', 'int', 'number', { ...shape.integer, description: NUMBER }, 'place'),
  createdAt: field('created_at', 'timestamptz', 'startedAtMs', shape.time),
  upstream: field('upstream', 'text', 'upstream', shape.text),
  credential: field('credential', 'text', 'credential', { ...shape.text, description: CREDENTIAL }, 'upstream'),
  model: field('model', 'text', 'model', { ...shape.text, description: 'As the upstream names it.' }),
  cause: field('cause', 'text', 'cause', oneOf(...ATTEMPT_CAUSES), 'answered'),
  outcome: field('outcome', 'text', 'outcome', shape.text, 'answered'),
  status: field('status', 'int', 'status', orNull(shape.integer)),
  ms: field('ms', 'int', 'ms', shape.integer),
  upstreamRequestId: field('upstream_request_id', 'text', 'upstreamRequestId', orNull(shape.text)),
  region: field('region', 'text', 'region', { ...orNull(shape.text), description: REGION }),
  declared: field('declared', 'jsonb', 'declared', { ...orNull({ type: 'object' }), description: DECLARED }),
  passes: field('passes', 'jsonb', 'passes', orNull(listOf(PASS))),
  isReported: field('is_reported', 'boolean', 'isReported', shape.yes),
  upstreamCost: field('cost_e14', 'numeric', 'costE14', { ...shape.usd, description: COST }),
};

/** The schemas of the fields that `showAttempt` returns, for the OpenAPI document. */
export const ATTEMPT_SHAPES = mapValues(ATTEMPT_FIELDS, (field) => field.shape);

/** Converts a row of upstream_attempts to the form that operators see. */
export function showAttempt(row: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return mapValues(ATTEMPT_FIELDS, ({ column, sql }) => {
    const value = row[column];
    if (sql === 'numeric') return formatUsd(divideRoundingUp(BigInt(value as string), E14_PER_E8));
    return value instanceof Date ? value.toISOString() : value;
  });
}

/** The SQL texts for the INSERT of attempts from JSON: columns, values, and the names and types of the JSON members. */
export const ATTEMPT_SQL = {
  columns: inserted(({ column }) => column),
  values: inserted(({ recorded, sql, fallback }) => {
    if (sql === 'timestamptz') return `timestamptz 'epoch' + "${recorded}" * interval '1 millisecond'`;
    if (fallback === undefined) return `"${recorded}"`;
    return `coalesce("${recorded}", ${fallback === 'answered' ? `'${fallback}'` : fallback})`;
  }),
  names: inserted(({ recorded }) => `"${recorded}"`),
  types: inserted(({ recorded, sql }) => `"${recorded}" ${sql === 'timestamptz' ? 'bigint' : sql}`),
};

/** The fields of an attempt for COPY, in the order of the columns. */
export const ATTEMPT_COPY: readonly AttemptField[] = Object.values(ATTEMPT_FIELDS);

function inserted(text: (field: AttemptField) => string): string {
  return Object.values(ATTEMPT_FIELDS).map(text).join(', ');
}
