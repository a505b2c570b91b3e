import { asText, type JsonObject } from '../base/json-values';
import type { AnswerEvent, FinishReason } from '../catalog/answer';
import type { Usage } from '../catalog/usage';

/** The events that readers of several protocols make alike. */

export function beginOf({ id, model }: JsonObject): AnswerEvent {
  return { is: 'begin', id: asText(id) || undefined, model: asText(model) || undefined };
}

export function usageEvents(usage: Usage, isFinal = false): AnswerEvent[] {
  return usage.passes.length === 0 ? [] : [{ is: 'usage', usage, ...(isFinal && { isFinal }) }];
}

/** Returns the end that a vendor's word means. The word itself goes with it where it is no good end. */
export function finishOf(word: string, reasons: ReadonlyMap<string, FinishReason>, choice = 0) {
  const reason = reasons.get(word) ?? 'unknown';
  const isGood = reason !== 'unknown' && reason !== 'broken';
  return { is: 'finish' as const, choice, reason, ...(!isGood && { stop: word }) };
}
