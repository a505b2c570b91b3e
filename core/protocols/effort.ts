import type { Reasoning } from '../catalog/conversation';

/** A level of effort: how much a model should reason. */
type Effort = NonNullable<Reasoning['effort']>;

/** The levels from least to most, each with its budget in tokens for a dialect that expects a number. */
export const TOKENS: Readonly<Record<Effort, number>> = {
  none: 0,
  minimal: 1_024,
  low: 2_048,
  medium: 8_192,
  high: 16_384,
  xhigh: 32_768,
  max: 65_536,
};
export const EFFORTS = Object.keys(TOKENS) as readonly Effort[];

/** The smallest reasoning budget that vendors accept, in tokens. */
const MIN_BUDGET = 1_024;

/** Returns how much a call wants the model to reason, as a level of effort; undefined if the call does not set it. */
export function effortOf({ effort, budgetTokens }: Reasoning): Effort | undefined {
  if (effort !== undefined || budgetTokens === undefined) return effort;
  return EFFORTS.find((word) => budgetTokens <= TOKENS[word]) ?? 'max';
}

/**
 * Returns a call's budget of reasoning tokens, which is below the output limit. Returns undefined if the call sets no reasoning or the
 * limit leaves no room. A level of effort gets at most half of the output limit, because its number of tokens is a guess.
 */
export function budgetOf({ effort, budgetTokens }: Reasoning, maxTokens: number): number | undefined {
  const wanted = budgetTokens ?? Math.min((effort && TOKENS[effort]) ?? 0, Math.floor(maxTokens / 2));
  if (wanted === 0 || effort === 'none' || maxTokens <= MIN_BUDGET) return undefined;
  return Math.min(Math.max(wanted, MIN_BUDGET), maxTokens - 1);
}

/** Returns the dialect's level nearest to `effort`; the lower one if two are equally near. */
export function nearestEffort<Word extends Effort>(effort: Effort, words: readonly Word[]): Word | undefined {
  const distance = (word: Effort) => Math.abs(EFFORTS.indexOf(word) - EFFORTS.indexOf(effort));
  return [...words]
    .sort((one, other) => EFFORTS.indexOf(one) - EFFORTS.indexOf(other))
    .reduce<Word | undefined>(
      (best, word) => (best === undefined || distance(word) < distance(best) ? word : best),
      undefined,
    );
}
