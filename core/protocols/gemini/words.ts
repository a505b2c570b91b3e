import type { FinishReason } from '../../catalog/answer';

/** The stop reasons of generateContent (ai.google.dev, "GenerateContentResponse", `FinishReason`, 2026-11). */
export const GEMINI_STOP_REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ['STOP', 'end'],
  ['MAX_TOKENS', 'length'],
  ...[
    'SAFETY',
    'RECITATION',
    'BLOCKLIST',
    'PROHIBITED_CONTENT',
    'SPII',
    'MODEL_ARMOR',
    'IMAGE_SAFETY',
    'IMAGE_PROHIBITED_CONTENT',
    'IMAGE_RECITATION',
  ].map((word) => [word, 'filter'] as const),
  // Stop reasons for a mistake of the model. A retry may succeed.
  ...[
    'MALFORMED_FUNCTION_CALL',
    'MALFORMED_RESPONSE',
    'MISSING_THOUGHT_SIGNATURE',
    'TOO_MANY_TOOL_CALLS',
    'UNEXPECTED_TOOL_CALL',
  ].map((word) => [word, 'broken'] as const),
]);
