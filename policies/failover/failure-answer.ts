import type { Attempt } from '../../core/calls/call';
import { fail, type GatewayError } from '../../core/errors';
import type { Failure } from './decide';

const TOO_LONG = 'The answer has more than 64 MB. Send fewer inputs in one call, or ask for base64.';

/** Returns the error for a call that no candidate answered, chosen by what all its attempts have in common. */
export function errorOfAll(attempts: readonly Attempt[], failures: readonly Failure[]): GatewayError {
  const refusal = failures.every(({ outcome }) => outcome === 'not_translatable') ? failures[0]?.refusal : undefined;
  if (refusal !== undefined) return fail('NOT_TRANSLATABLE', refusal);
  const details = { attempts };
  if (attempts.every(({ status }) => status === 429)) {
    const retryAfterSeconds = soonest(failures);
    return fail(
      'UPSTREAM_RATE_LIMITED',
      retryAfterSeconds === undefined ? { details } : { details, retryAfterSeconds },
    );
  }
  if (attempts.every(({ outcome }) => outcome === 'timeout')) return fail('UPSTREAM_TIMEOUT', { details });
  // The gateway cannot relay this answer, because it gave up reading it as too long.
  if (failures.at(-1)?.verdict === 'relay')
    return fail('ALL_PROVIDERS_FAILED', { details, message: TOO_LONG, retryable: false });
  return fail('ALL_PROVIDERS_FAILED', { details });
}

/** Returns after how many seconds the first of the upstreams may answer again. */
function soonest(failures: readonly Failure[]): number | undefined {
  const waits = failures.flatMap(({ retryAfterMs }) => (retryAfterMs === undefined ? [] : [retryAfterMs]));
  return waits.length === 0 ? undefined : Math.ceil(Math.min(...waits) / 1_000);
}
