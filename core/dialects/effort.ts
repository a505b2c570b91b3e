import type { Reasoning } from '../catalog/conversation';

/** How much a model is to reason, in words. */
export type Effort = NonNullable<Reasoning['effort']>;

/** The words, from least to most, and the tokens that each stands for where a dialect has numbers instead. */
const TOKENS: Readonly<Record<Effort, number>> = {
  none: 0,
  minimal: 1_024,
  low: 2_048,
  medium: 8_192,
  high: 16_384,
  xhigh: 32_768,
  max: 65_536,
};
const WORDS = Object.keys(TOKENS) as readonly Effort[];

/** The least that vendors take. */
const LEAST_BUDGET = 1_024;

/** Returns how much a call wants the model to reason, in a word; undefined where it does not say. */
export function effortOf({ effort, budgetTokens }: Reasoning): Effort | undefined {
  if (effort !== undefined || budgetTokens === undefined) return effort;
  return WORDS.find((word) => budgetTokens <= TOKENS[word]) ?? 'max';
}

/**
 * Returns how many tokens a call wants the model to reason, below the limit of its answer; undefined where it does not say, wants none,
 * or leaves no room.
 */
export function budgetOf({ effort, budgetTokens }: Reasoning, maxTokens: number): number | undefined {
  const wanted = budgetTokens ?? (effort && TOKENS[effort]);
  if (!wanted || maxTokens <= LEAST_BUDGET) return undefined;
  return Math.min(Math.max(wanted, LEAST_BUDGET), maxTokens - 1);
}

/** Returns the word of a dialect that is nearest to one of ours; of two as near, the one that wants less. */
export function nearestEffort<Word extends Effort>(effort: Effort, words: readonly Word[]): Word | undefined {
  const distance = (word: Effort) => Math.abs(WORDS.indexOf(word) - WORDS.indexOf(effort));
  return [...words]
    .sort((one, other) => WORDS.indexOf(one) - WORDS.indexOf(other))
    .reduce<Word | undefined>(
      (best, word) => (best === undefined || distance(word) < distance(best) ? word : best),
      undefined,
    );
}
