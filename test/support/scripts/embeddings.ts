import { countTokens } from 'gpt-tokenizer/encoding/cl100k_base';
import { embeddingsBody, inputsOf } from '../../../demo/dialects/embeddings';
import type { Json } from '../../../demo/prompt';
import { type Response, respond } from './respond';
import type { Script } from './script';

export interface Embedded {
  /** In place of the whole `usage` member, however wrong; null leaves it out. */
  readonly rawUsage?: unknown;
  /** Of each vector; what the call says comes first. */
  readonly dimensions?: number;
}

/** What a vendor counts, and charges, for the `input` of a call. */
export function embeddedTokens(input: unknown): number {
  const inputs = inputsOf({ input });
  if (typeof inputs === 'string') throw new Error(inputs);
  return usageOf(inputs).total_tokens;
}

function usageOf(inputs: readonly (string | readonly number[])[]) {
  const tokens = inputs.reduce((sum, each) => sum + (typeof each === 'string' ? countTokens(each) : each.length), 0);
  return { prompt_tokens: tokens, total_tokens: tokens };
}

/** Answers whatever inputs the call has, in the format that it asks for, with the tokens that the vendor's tokenizer counts. */
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
