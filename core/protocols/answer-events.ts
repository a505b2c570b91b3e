import { asText, type JsonObject } from '../base/json-values';
import type { AnswerEvent, FinishReason } from '../catalog/answer';
import type { Usage } from '../catalog/usage';

/** Returns the event that begins an answer, for the readers of several protocols. */

export function beginOf({ id, model }: JsonObject): AnswerEvent {
  return { kind: 'begin', id: asText(id) || undefined, model: asText(model) || undefined };
}

export function usageEvents(usage: Usage, isFinal = false): AnswerEvent[] {
  return usage.passes.length === 0 ? [] : [{ kind: 'usage', usage, ...(isFinal && { isFinal }) }];
}

/** Returns the stop event for a vendor's stop reason. It includes the vendor's word unless the answer ended normally. */
export function finishOf(word: string, reasons: ReadonlyMap<string, FinishReason>, choice = 0) {
  const reason = reasons.get(word) ?? 'unknown';
  const isGood = reason !== 'unknown' && reason !== 'broken';
  return { kind: 'finish' as const, choice, reason, ...(!isGood && { stop: word }) };
}
