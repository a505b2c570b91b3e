import type { AttemptOutcome } from '../../core/call';
import { type ErrorCode, errorEnvelope, fail } from '../../core/errors';
import type { AnsweredCall } from './headers';

/** Our envelope as the protocol's own error event, for a stream that broke off; Chat clients look for `error` alone. */
export function brokenOff({ protocol, id, isCutOff }: AnsweredCall, outcome: AttemptOutcome | undefined): Buffer {
  const envelope = errorEnvelope(isCutOff ? fail('DRAINING') : fail(codeOf(outcome), { message: BROKEN_OFF }), id);
  return Buffer.from(
    protocol === 'messages'
      ? `event: error\ndata: ${JSON.stringify(envelope)}\n\n`
      : `data: ${JSON.stringify({ error: envelope.error })}\n\n`,
  );
}

const BROKEN_OFF = 'The upstream broke off its answer.';

export function codeOf(outcome: AttemptOutcome | undefined): ErrorCode {
  return outcome === 'timeout' ? 'UPSTREAM_TIMEOUT' : 'ALL_PROVIDERS_FAILED';
}
