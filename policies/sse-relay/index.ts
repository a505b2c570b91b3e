import { definePolicy } from '../../core/gateway/policy';
import { DURATION, parseDuration } from '../../core/settings';
import { chargeAbandoned } from './abandoned';
import { sendBody } from './body';
import { sendRelay } from './relay';
import { sendStream } from './stream';

export default definePolicy({
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
      stalledAfter: {
        ...DURATION,
        description:
          'A client that has taken nothing of its stream for so long pays for what it was given when the upstream breaks off or a stop of the process ends it; any other pays nothing.',
        default: '30s',
      },
    },
  },
  needs: ['request', 'reservation', 'meter', 'answer'],
  provides: [],
  answers: true,
  boundsItself: true,
  prepare: ({ annotateStreamCost, exposeAccountHeaders, stalledAfter }, gateway) => {
    const stream = { annotateStreamCost, exposeAccountHeaders, stalledAfterMs: parseDuration(stalledAfter), gateway };
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
