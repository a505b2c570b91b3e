import { fail } from '../../core/base/errors';
import { newId } from '../../core/base/ids';
import { andThen } from '../../core/base/maybe-later';
import { word } from '../../core/base/setting-schemas';
import { DETACHED_CALLS, MAX_DETACHED_CALLS } from '../../core/calls/open-calls';
import { definePolicy } from '../../core/gateway/policy';
import { intentOf, type PayingCall, reserve } from './reserve';
import { openReservation } from './settle';
import { answerKeeper, sendStored } from './stored-answer';

export default definePolicy({
  contract: 'policy/1',
  name: 'reserve-settle',
  summary: 'Can the account pay for the call? Settles when the call ends.',
  schema: {
    type: 'object',
    properties: {
      onClientAbort: word(
        'When the client leaves a stream after the upstream took the request: `settle` reads the upstream on for 10 s at most, then cancels it and charges what is known; `drain` reads it to its end, for 15 minutes at most, and charges that.',
        ['settle', 'drain'],
        { default: 'settle' },
      ),
      onInsufficient: word(
        'If the balance is too low: `reject` answers 402; `clamp` holds half of what is left, at least the input and 1,024 output tokens, and lowers the limit of output to that.',
        ['reject', 'clamp'],
        { default: 'reject' },
      ),
      withoutLimit: word(
        "When a call names no limit, the model's `maxOutput` is held. `insert` also writes it into the forwarded body.",
        ['hold', 'insert'],
        { default: 'hold' },
      ),
    },
  },
  needs: ['key', 'request', 'candidates'],
  provides: ['request', 'reservation'],
  boundsItself: true,
  prepare:
    ({ onClientAbort, ...settings }, gateway) =>
    (call, message, response) => {
      if (gateway.isOutboxFull()) throw fail('LEDGER_UNAVAILABLE', { retryAfterSeconds: 5 });
      refuseBesideDetached(call);
      const rid = newId();
      call.facts.routing.intent = intentOf(call, message);
      const keepAnswer = call.facts.routing.intent && answerKeeper(gateway, call, rid);
      return andThen(reserve(gateway, call, rid, settings), (covered) => {
        if ('stored' in covered) return sendStored(gateway, call, response, covered.stored).then(() => undefined);
        call.facts.reservationId = rid;
        const opened = openReservation(gateway, call, rid, covered, onClientAbort);
        const reservation = keepAnswer?.(opened) ?? opened;
        call.onEnd(() => reservation.settle({ billing: 'released' }));
        return { request: covered.request, reservation };
      });
    },
});

/**
 * Refuses an unstreamed call if too many calls of the account still run although their clients have disconnected.
 * @throws CONCURRENCY_LIMIT
 */
function refuseBesideDetached({ request, key }: PayingCall): void {
  if (request.stream || !DETACHED_CALLS.isFull(key.accountId)) return;
  throw fail('CONCURRENCY_LIMIT', {
    retryAfterSeconds: 1,
    message: 'Too many unstreamed calls of this account still run although their clients disconnected. Retry later.',
    details: { of: 'account', limit: MAX_DETACHED_CALLS },
  });
}
