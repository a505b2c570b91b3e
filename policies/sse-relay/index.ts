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
  summary: 'Gives the answer to the caller and feeds the meter.',
  schema: {
    type: 'object',
    properties: {
      annotateStreamCost: {
        description: "Adds `cost` (USD) inside a stream's final usage.",
        type: 'boolean',
        default: true,
      },
      exposeAccountHeaders: {
        description: "Passes headers of upstreams that tell of the platform's own account, and their request ids.",
        type: 'boolean',
        default: false,
      },
      keepAlive: {
        description:
          'After so long without a byte of the upstream the client of a stream gets a sign of life: `ping` in Messages, a comment in the other protocols. `off` for none.',
        type: 'string',
        pattern: '^([1-9][0-9]*(ms|s|m|h)|off)$',
        'x-expected': 'a duration such as 15s, or off',
        default: '15s',
      },
      stalledAfter: {
        ...DURATION,
        description:
          'A client that has taken nothing of its stream for so long pays for what it was given when the upstream breaks off or a stop of the process ends it; any other pays nothing.',
        default: '30s',
      },
      usageWithin: {
        ...DURATION,
        description:
          'How long is waited for the usage behind a stop reason. So long at most the chunk with `finish_reason` of a Chat stream is held back, whose client did not ask for usage.',
        default: '10s',
      },
    },
  },
  needs: ['request', 'reservation', 'meter', 'answer'],
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
