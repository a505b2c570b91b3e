import { countTokens } from 'gpt-tokenizer/encoding/cl100k_base';
import { embeddingsBody, inputsOf } from '../../../demo/dialects/embeddings';
import type { Json } from '../../../demo/prompt';
import { type Response, respond } from './respond';
import type { Script } from './script';

export interface Embedded {
  /** Replaces the whole `usage` member, however wrong; null omits it. */
  readonly rawUsage?: unknown;
  /** The dimensions of each vector. The value of the call has priority. */
  readonly dimensions?: number;
}

/** Counts the tokens that a vendor charges for the `input` of a call. */
export function embeddedTokens(input: unknown): number {
  const inputs = inputsOf({ input });
  if (typeof inputs === 'string') throw new Error(inputs);
  return usageOf(inputs).total_tokens;
}

function usageOf(inputs: readonly (string | readonly number[])[]) {
  const tokens = inputs.reduce((sum, each) => sum + (typeof each === 'string' ? countTokens(each) : each.length), 0);
  return { prompt_tokens: tokens, total_tokens: tokens };
}

/** Makes an answer for all inputs of the call, in the requested format, with the token count of the vendor's tokenizer. */
export function embeddingsAnswer(
  { rawUsage, dimensions = 4 }: Embedded = {},
  response: Omit<Response, 'body'> = {},
): Script {
  return {
    answer: (exchange) => {
      const asked = { dimensions, ...(exchange.call.json as Json) };
      const inputs = inputsOf(asked);
      if (typeof inputs === 'string') throw new Error(inputs);
      const { usage: _, ...body } = embeddingsBody(asked, inputs);
      const usage = rawUsage === undefined ? usageOf(inputs) : rawUsage;
      const said = usage === null ? body : { ...body, usage };
      return respond({ ...response, body: { ...said, model: 'test-model' } }).answer(exchange);
    },
  };
}
