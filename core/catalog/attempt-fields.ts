import { listOf, oneOf, orNull, shape } from '../http/shape';
import { mapValues } from '../map-values';
import { divideRoundingUp, E14_PER_E8, formatUsd } from '../money';
import type { Schema } from '../settings';
import { PASS } from './usage-fields';

/**
 * What an attempt was for, or how it ended, where that can be why a vendor's invoice differs from what customers were charged:
 * `answered`: its usage was reported and charged.
 * `unknown`: the same, and the request or the report had something that no table has.
 * `estimated`: it answered without a usable report, and what it used was counted.
 * `left`: the client disconnected before the usage was reported.
 * `failed`: it did not answer, or broke off.
 * `continuation`: it went on from an answer that broke off, and read a second prompt.
 * `mirror`: a rollout sent it a call that another upstream answered.
 * `test`: an operator tested the upstream.
 */
export const ATTEMPT_CAUSES = [
  'answered',
  'unknown',
  'estimated',
  'left',
  'failed',
  'continuation',
  'mirror',
  'test',
] as const;
export type AttemptCause = (typeof ATTEMPT_CAUSES)[number];

/** One request to an upstream as it is recorded, in JSON, once or more per call: what is as usual, or not known, is absent. */
export interface RecordedAttempt {
  /** Milliseconds since 1970. */
  readonly startedAtMs: number;
  /** Place among those of its call, from 1; 0 for a mirror. Absent: its place in the list. */
  readonly number?: number | undefined;
  readonly upstream: string;
  /** The name of the credential it was asked with, never its value. Absent: the upstream's name. */
  readonly credential?: string | undefined;
  /** As the upstream names it. */
  readonly model: string;
  /** Absent: `answered`. */
  readonly cause?: AttemptCause | undefined;
  /** Why there was no answer. Absent: `answered`. */
  readonly outcome?: string | undefined;
  readonly status?: number | undefined;
  /** Until it answered or failed. */
  readonly ms: number;
  readonly upstreamRequestId?: string | undefined;
  /** What it used, as in a usage record; absent where nothing is known of it. */
  readonly passes?: readonly Readonly<Record<string, string | number | undefined>>[] | undefined;
  /** The upstream reported all of it itself. */
  readonly isReported: boolean;
  /** In 1e-14 USD: a decimal integer. */
  readonly costE14: string;
}

interface AttemptField {
  readonly column: string;
  readonly sql: 'text' | 'int' | 'timestamptz' | 'boolean' | 'jsonb' | 'numeric';
  readonly recorded: keyof RecordedAttempt;
  readonly shape: Schema;
  /** What the column has where the record has nothing: the attempt's place in the list, its upstream's name, or this word. */
  readonly otherwise: 'place' | 'upstream' | 'answered' | undefined;
}

function field(
  column: string,
  sql: AttemptField['sql'],
  recorded: AttemptField['recorded'],
  its: Schema,
  otherwise?: AttemptField['otherwise'],
): AttemptField {
  return { column, sql, recorded, shape: its, otherwise };
}

const NUMBER = 'Its place in the call; 0: a mirror, which a rollout sent after the call.';
const CREDENTIAL = 'The name of the credential, never its value.';
const COST = "At the upstream's price; not what the customer paid.";

/**
 * The fields of an attempt as operators are shown them. The INSERT, what is copied, the list of a call's attempts and the OpenAPI
 * document are made of this table.
 */
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
  passes: field('passes', 'jsonb', 'passes', orNull(listOf(PASS))),
  isReported: field('is_reported', 'boolean', 'isReported', shape.yes),
  upstreamCost: field('cost_e14', 'numeric', 'costE14', { ...shape.usd, description: COST }),
};

/** What `showAttempt` answers, as the OpenAPI document says it. */
export const ATTEMPT_SHAPES = mapValues(ATTEMPT_FIELDS, (field) => field.shape);

/** A row of upstream_attempts as operators are shown it. */
export function showAttempt(row: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return mapValues(ATTEMPT_FIELDS, ({ column, sql }) => {
    const value = row[column];
    if (sql === 'numeric') return formatUsd(divideRoundingUp(BigInt(value as string), E14_PER_E8));
    return value instanceof Date ? value.toISOString() : value;
  });
}

/** How the INSERT of attempts that come as JSON names them: columns, values, and the names and types in the JSON. */
export const ATTEMPT_SQL = {
  columns: inserted(({ column }) => column),
  values: inserted(({ recorded, sql, otherwise }) => {
    if (sql === 'timestamptz') return `timestamptz 'epoch' + "${recorded}" * interval '1 millisecond'`;
    if (otherwise === undefined) return `"${recorded}"`;
    return `coalesce("${recorded}", ${otherwise === 'answered' ? `'${otherwise}'` : otherwise})`;
  }),
  names: inserted(({ recorded }) => `"${recorded}"`),
  types: inserted(({ recorded, sql }) => `"${recorded}" ${sql === 'timestamptz' ? 'bigint' : sql}`),
};

/** The same columns for COPY. */
export const ATTEMPT_COPY: readonly AttemptField[] = Object.values(ATTEMPT_FIELDS);

function inserted(text: (field: AttemptField) => string): string {
  return Object.values(ATTEMPT_FIELDS).map(text).join(', ');
}
