import type { FinishReason } from '../../catalog/answer';

/** The stop reasons of Converse (docs.aws.amazon.com, "Converse", `stopReason`, 2026-11). */
export const CONVERSE_STOP_REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ['end_turn', 'end'],
  ['tool_use', 'tool_calls'],
  ['max_tokens', 'length'],
  ['stop_sequence', 'stop'],
  ['guardrail_intervened', 'filter'],
  ['content_filtered', 'filter'],
  ['model_context_window_exceeded', 'context'],
  ['malformed_model_output', 'broken'],
  ['malformed_tool_use', 'broken'],
]);
