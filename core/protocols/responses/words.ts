import type { FinishReason } from '../../catalog/answer';

/** Why a response is incomplete (developers.openai.com, "The response object", `incomplete_details`, 2026-11), in both directions. */
export const INCOMPLETE_REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ['max_output_tokens', 'length'],
  ['content_filter', 'filter'],
]);

/** The same for each stop reason of which clients must know that the answer is not whole. */
export const WRITTEN_INCOMPLETE: Readonly<Partial<Record<FinishReason, string>>> = {
  length: 'max_output_tokens',
  context: 'max_output_tokens',
  filter: 'content_filter',
};
