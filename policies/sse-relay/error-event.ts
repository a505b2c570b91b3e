import type { AttemptOutcome } from '../../core/call';
import { errorEnvelope, fail } from '../../core/errors';
import type { AnsweredCall } from './headers';

/** Our envelope as the protocol's own error event, for a stream that broke off; Chat clients look for `error` alone. */
export function brokenOff({ protocol, id }: AnsweredCall, outcome: AttemptOutcome | undefined): Buffer {
  const code = outcome === 'timeout' ? 'UPSTREAM_TIMEOUT' : 'ALL_PROVIDERS_FAILED';
  const envelope = errorEnvelope(fail(code, { message: 'The upstream broke off its answer.' }), id);
  return Buffer.from(
    protocol === 'messages'
      ? `event: error\ndata: ${JSON.stringify(envelope)}\n\n`
      : `data: ${JSON.stringify({ error: envelope.error })}\n\n`,
  );
}
