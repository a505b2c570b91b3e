import { definePolicy } from '../../core/gateway/policy';
import { DURATION, parseDuration } from '../../core/settings';
import { chargeAbandoned } from './abandoned';
import { sendBody } from './body';
import { KeepAlive } from './keep-alive';
import { sendRelay } from './relay';
import { sendStream } from './stream';

export default definePolicy({
  contract: 'policy/1',
  name: 'sse-relay',
  summary: 'Relays the answer to the caller and counts its usage.',
  schema: {
    type: 'object',
    properties: {
      annotateStreamCost: {
        description: "Adds `cost` (USD) inside a stream's final usage.",
        type: 'boolean',
        default: true,
      },
      exposeAccountHeaders: {
        description: "Relays headers of upstreams about the platform's own account, and their request ids.",
        type: 'boolean',
        default: false,
      },
      keepAlive: {
        description:
          'After this time without a byte of the upstream the client of a stream gets a keep-alive: `ping` in Messages, a comment in the other protocols. `off` sends none.',
        type: 'string',
        pattern: '^([1-9][0-9]*(ms|s|m|h)|off)$',
        'x-expected': 'a duration such as 15s, or off',
        default: '15s',
      },
      stalledAfter: {
        ...DURATION,
        description:
          'A client that has read nothing of its stream for this long pays for what it was sent if the upstream or a stop of the process ends the stream early. Other clients pay nothing then.',
        default: '30s',
      },
      usageWithin: {
        ...DURATION,
        description:
          'How long to wait for the usage after a stop reason. The chunk with `finish_reason` of a Chat stream waits as long if its client did not ask for usage.',
        default: '10s',
      },
    },
  },
  needs: ['key', 'request', 'reservation', 'meter', 'answer'],
  provides: [],
  answers: true,
  boundsItself: true,
  prepare: ({ annotateStreamCost, exposeAccountHeaders, keepAlive: after, stalledAfter, usageWithin }, gateway) => {
    const keepAlive = after === 'off' ? undefined : new KeepAlive(parseDuration(after));
    const stalledAfterMs = parseDuration(stalledAfter);
    const usageWithinMs = parseDuration(usageWithin);
    const stream = { annotateStreamCost, exposeAccountHeaders, stalledAfterMs, usageWithinMs, keepAlive, gateway };
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
          return chargeAbandoned(call, answer);
      }
    };
  },
});
