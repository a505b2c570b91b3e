import { bounded, type Dialect, free } from '../dialect';

/** The members of Embeddings requests: those of the package openai. */
export const EMBEDDINGS_DIALECT: Dialect = {
  members: {
    model: free('chooses the price'),
    input: bounded('the texts, or their tokens'),
    dimensions: free('says how long the vectors are'),
    encoding_format: free('says how the vectors are written'),
    user: free('is not read by the model'),
    stream: free('only `false` is accepted'),
    priority: free('reserved for the gateway and not forwarded'),
  },
  parts: {},
  tools: {},
  kept: {},
};
