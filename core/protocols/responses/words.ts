import type { FinishReason } from '../../catalog/answer';

/** Maps the reason why a response is incomplete to a stop reason (developers.openai.com, "The response object", `incomplete_details`, 2026-11). */
export const INCOMPLETE_REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ['max_output_tokens', 'length'],
  ['content_filter', 'filter'],
]);

/** Maps each stop reason that leaves a translated answer incomplete to the reason in `incomplete_details`. */
export const WRITTEN_INCOMPLETE: Readonly<Partial<Record<FinishReason, string>>> = {
  length: 'max_output_tokens',
  context: 'max_output_tokens',
  filter: 'content_filter',
};
