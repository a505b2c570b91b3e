import { andThen, type MaybeLater } from '../../core/base/maybe-later';
import { duration, flag, text } from '../../core/base/setting-schemas';
import { parseDuration } from '../../core/base/settings';
import type { Answer } from '../../core/calls/call';
import { endingOfUnanswered } from '../../core/calls/unfinished';
import type { Gateway } from '../../core/gateway/gateway';
import { definePolicy } from '../../core/gateway/policy';
import { ClientLeft } from '../../core/http/client-left';
import { type AnsweredCall, noteAnswer } from './headers';
import { KeepAlive } from './keep-alive';
import { sendStream } from './stream-relay';
import { sendBody, sendRelay } from './whole-answers';

export default definePolicy({
  contract: 'policy/1',
  name: 'sse-relay',
  summary: 'Relays the answer to the caller and counts its usage.',
  schema: {
    type: 'object',
    properties: {
      annotateStreamCost: flag("Adds `cost` (USD) inside a stream's final usage.", { default: true }),
      exposeAccountHeaders: flag(
        "Relays headers of upstreams about the platform's own account, and their request ids.",
        { default: false },
      ),
      keepAlive: text(
        'After this time without a byte of the upstream the client of a stream gets a keep-alive: `ping` in Messages, a comment in the other protocols. `off` sends none.',
        { pattern: '^([1-9][0-9]*(ms|s|m|h)|off)$', 'x-expected': 'a duration such as 15s, or off', default: '15s' },
      ),
      usageWithin: duration(
        'How long to wait for the usage after a stop reason. The chunk with `finish_reason` of a Chat stream waits as long if its client did not ask for usage.',
        { default: '10s' },
      ),
    },
  },
  needs: ['key', 'request', 'reservation', 'meter', 'answer'],
  provides: [],
  answers: true,
  boundsItself: true,
  prepare: ({ annotateStreamCost, exposeAccountHeaders, keepAlive: after, usageWithin }, gateway) => {
    const keepAlive = after === 'off' ? undefined : new KeepAlive(parseDuration(after));
    const usageWithinMs = parseDuration(usageWithin);
    const stream = { annotateStreamCost, exposeAccountHeaders, usageWithinMs, keepAlive, gateway };
    return (call, _request, response) => {
      const { answer } = call;
      switch (answer.kind) {
        case 'body':
          return sendBody(call, answer, response, exposeAccountHeaders);
        case 'relay':
          return sendRelay(call, answer, response, exposeAccountHeaders);
        case 'stream':
          return sendStream(call, answer, response, stream);
        case 'abandoned':
          noteAnswer(call, answer);
          return settleAbandoned(call, answer, gateway);
      }
    };
  },
});

/** Charges a call whose client disconnected before its answer. */
function settleAbandoned(
  call: AnsweredCall,
  { candidate, sentAtMs }: Answer & { kind: 'abandoned' },
  { health }: Gateway,
): MaybeLater<never> {
  return andThen(call.reservation.settle(endingOfUnanswered(call, candidate, sentAtMs, health)), () => {
    throw new ClientLeft();
  });
}
