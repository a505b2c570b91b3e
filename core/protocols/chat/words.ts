import type { FinishReason } from '../../catalog/answer';

/** The stop reasons that Chat clients know (developers.openai.com, "Create chat completion", `finish_reason`, 2026-11). */
export const CHAT_WRITTEN_REASONS: Readonly<Record<FinishReason, string>> = {
  end: 'stop',
  stop: 'stop',
  pause: 'stop',
  broken: 'stop',
  unknown: 'stop',
  length: 'length',
  context: 'length',
  tool_calls: 'tool_calls',
  filter: 'content_filter',
};

/** The stop reasons of Chat, and those that its vendors have added. */
export const CHAT_STOP_REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ['stop', 'end'],
  ['length', 'length'],
  ['tool_calls', 'tool_calls'],
  ['function_call', 'tool_calls'],
  ['content_filter', 'filter'],
  // The stop reason of xAI (docs.x.ai) and older servers for a reached output limit.
  ['max_tokens', 'length'],
  // The stop reason of Z.AI for an answer that a content filter stopped (docs.z.ai, "Chat Completion", 2026-11).
  ['sensitive', 'filter'],
  // The stop reason of Mistral for a full context window (docs.mistral.ai, "Chat", 2026-11).
  ['model_length', 'context'],
  // The stop reason for a failed answer: openrouter.ai/docs "Errors and Debugging"; docs.z.ai "Chat Completion"; api-docs.deepseek.com "Create Chat
  // Completion", 2026-11.
  ['error', 'broken'],
  ['network_error', 'broken'],
  ['insufficient_system_resource', 'broken'],
]);
