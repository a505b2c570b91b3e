import { bounded, free } from '../request-rows';
import type { RequestTable } from '../request-table';

/** The members of Embeddings requests: those of the npm package openai. These requests are never translated. */
export const EMBEDDINGS_TABLE: RequestTable = {
  members: {
    model: free('chooses the price'),
    stream: {
      ...free('only `false` is accepted'),
      is: {
        expected: 'false or nothing: embeddings are not streamed',
        accepts: (value) => value === false,
      },
    },
    input: { ...bounded('the texts, or their tokens'), isRequired: true },
    dimensions: free('says how long the vectors are'),
    encoding_format: free('says how the vectors are written'),
    user: free('is not read by the model'),
    priority: free('reserved for the gateway and not forwarded'),
  },
  roles: [],
  nullIsAbsent: true,
  parts: {},
  tools: {},
  nested: {},
  kept: {},
};
