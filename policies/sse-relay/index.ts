import { definePolicy } from '../../core/policy';
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
    },
  },
  needs: ['request', 'reservation', 'meter', 'answer'],
  provides: [],
  answers: true,
  boundsItself: true,
  prepare: ({ annotateStreamCost, exposeAccountHeaders }, gateway) => {
    return (call, _request, response) => {
      const { answer } = call;
      switch (answer.kind) {
        case 'body':
          return sendBody(call, answer, response, exposeAccountHeaders);
        case 'relay':
          return sendRelay(call, answer, response, exposeAccountHeaders);
        case 'stream':
          return sendStream(call, answer, response, { annotateStreamCost, exposeAccountHeaders, gateway });
      }
    };
  },
});
