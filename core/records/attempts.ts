import type { Knex } from 'knex';
import { ATTEMPT_CAUSES } from '../catalog/attempt-fields';
import { listOf, object, oneOf, orNull, shape } from '../http/shape';
import { divideRoundingUp, E14_PER_E8, formatUsd } from '../money';

interface AttemptRow {
  readonly number: number;
  readonly created_at: Date;
  readonly upstream: string;
  readonly credential: string;
  readonly model: string;
  readonly cause: string;
  readonly outcome: string;
  readonly status: number | null;
  readonly ms: number;
  readonly upstream_request_id: string | null;
  readonly passes: object | null;
  readonly is_reported: boolean;
  readonly cost_e14: string;
}

/** An attempt as operators are shown it. */
export const ATTEMPT = object({
  number: { ...shape.integer, description: 'Its place in the call; 0: a mirror, which a rollout sent after the call.' },
  createdAt: shape.time,
  upstream: shape.text,
  credential: { ...shape.text, description: 'The name of the credential, not its value.' },
  model: { ...shape.text, description: 'As the upstream names it.' },
  cause: oneOf(...ATTEMPT_CAUSES),
  outcome: shape.text,
  status: orNull(shape.integer),
  ms: shape.integer,
  upstreamRequestId: orNull(shape.text),
  passes: orNull(listOf({ type: 'object' })),
  isReported: shape.yes,
  upstreamCost: { ...shape.usd, description: "At the upstream's price; not what the customer paid." },
});

export type ShownAttempt = ReturnType<typeof showAttempt>;

/** The attempts of one call, in order; none for a call that was refused before any upstream was asked. */
export async function listAttempts(database: Knex, requestId: string) {
  const rows: AttemptRow[] = await database('upstream_attempts')
    .where({ request_id: requestId })
    .orderBy(['created_at', 'number']);
  return rows.map(showAttempt);
}

function showAttempt(row: AttemptRow) {
  const { number, upstream, credential, model, cause, outcome, status, ms, passes } = row;
  const shown = {
    number,
    createdAt: row.created_at.toISOString(),
    upstream,
    credential,
    model,
    cause,
    outcome,
    status,
  };
  const upstreamCost = formatUsd(divideRoundingUp(BigInt(row.cost_e14), E14_PER_E8));
  const isReported = row.is_reported;
  return { ...shown, ms, upstreamRequestId: row.upstream_request_id, passes, isReported, upstreamCost };
}
