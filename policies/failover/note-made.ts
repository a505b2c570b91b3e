import { type MadeAttempt, upstreamRequestId } from '../../core/calls/made-attempt';
import type { Attempted } from './attempt';

/** Records the result of an attempt. The usage of an answer becomes known only when the call is settled. */
export function noteMade(making: MadeAttempt, attempted: Attempted, ms: number): void {
  making.ms = ms;
  if ('answer' in attempted) {
    const { kind, status, headers } = attempted.answer;
    if (kind !== 'abandoned') making.outcome = 'answered';
    making.status = status;
    making.upstreamRequestId = upstreamRequestId(headers);
    return;
  }
  const { failure, headers, usage } = attempted;
  making.outcome = failure.outcome;
  making.status = failure.status;
  making.usage = usage;
  if (headers !== undefined) making.upstreamRequestId = upstreamRequestId(headers);
}
