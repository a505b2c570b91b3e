import type { JsonObject } from '../../base/json-values';
import type { Conversation } from '../../catalog/conversation';
import type { TranslatedCall } from '../../catalog/upstream';
import { budgetOf, effortOf, nearestEffort } from '../effort';
import { formsOf } from '../models';

interface Settings {
  readonly thinking?: JsonObject | undefined;
  /** The members of the request's `output_config` that set the reasoning effort. */
  readonly effort?: JsonObject | undefined;
}

const EFFORTS = ['low', 'medium', 'high', 'xhigh', 'max'] as const;
const OFF: JsonObject = { type: 'disabled' };

/**
 * Returns the settings of thinking and effort. Thinking stays off if the vendor would refuse it together with the request's sampling, tool
 * choice or last tool calls.
 */
export function writeReasoningSettings(call: TranslatedCall, messages: readonly Message[]): Settings {
  const { conversation, maxOutput, reasoning: setting } = call;
  const { reasoning } = conversation;
  if (reasoning === undefined || setting === undefined) return {};
  const word = effortOf(reasoning);
  if (word === 'none') {
    const { minThinking } = formsOf(call.model);
    if (minThinking?.effort !== undefined) call.weaken?.('reasoning');
    return minThinking ?? { thinking: OFF };
  }
  const mayThink = allowsThinking(conversation) && !wouldBeRefused(messages);
  const display = reasoning.isShown === undefined ? {} : { display: reasoning.isShown ? 'summarized' : 'omitted' };
  if (setting === 'budget') {
    const budget = budgetOf(reasoning, conversation.maxTokens ?? maxOutput);
    return mayThink && budget !== undefined ? { thinking: { type: 'enabled', budget_tokens: budget, ...display } } : {};
  }
  const effort = word && { effort: nearestEffort(word, EFFORTS) };
  return { thinking: mayThink ? { type: 'adaptive', ...display } : undefined, effort };
}

/** Returns whether the sampling and the tool choice permit thinking. */
function allowsThinking({ temperature = 1, topP = 1, topK, toolChoice }: Conversation): boolean {
  const isFree = toolChoice !== 'required' && typeof toolChoice !== 'object';
  return temperature === 1 && topP >= 0.95 && topK === undefined && isFree;
}

interface Message {
  readonly role: string;
  readonly content: readonly JsonObject[];
}

/** Returns whether the last assistant message calls tools without prior thinking, which the vendor refuses while thinking is on. */
function wouldBeRefused(messages: readonly Message[]): boolean {
  const content = messages.findLast(({ role }) => role === 'assistant')?.content ?? [];
  const [first] = content;
  const hasThought = first?.['type'] === 'thinking' || first?.['type'] === 'redacted_thinking';
  return !hasThought && content.some(({ type }) => type === 'tool_use');
}
