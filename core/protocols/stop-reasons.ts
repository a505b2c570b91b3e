import type { FinishReason } from '../catalog/answer';

/** Returns the end that a vendor's word means. The word itself goes with it where it is no good end. */
export function finishOf(word: string, reasons: ReadonlyMap<string, FinishReason>, choice = 0) {
  const reason = reasons.get(word) ?? 'unknown';
  const isGood = reason !== 'unknown' && reason !== 'broken';
  return { is: 'finish' as const, choice, reason, ...(!isGood && { stop: word }) };
}
