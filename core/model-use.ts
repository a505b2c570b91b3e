import type { ModelRequest } from './call';
import { MovingEstimate } from './moving-estimate';
import { totalInputTokens } from './price';
import type { Usage } from './usage';

/** About twenty calls are remembered. */
const WEIGHT = 0.05;

export type AskedFor = Pick<ModelRequest, 'choices' | 'inputTokensEstimate'>;

/** How calls of one model use it, whoever serves them: what an expected price is made of. */
export class ModelUse {
  readonly #outputTokens = new MovingEstimate(WEIGHT);
  readonly #inputShare = new MovingEstimate(WEIGHT);

  /** Output tokens of one answer; undefined while nothing was seen. */
  get outputTokens(): number | undefined {
    return this.#outputTokens.value;
  }

  /** Input tokens that were charged per token of the estimate, which is an upper one; 1 while nothing was seen. */
  get inputShare(): number {
    return this.#inputShare.value ?? 1;
  }

  note(usage: Usage, { choices, inputTokensEstimate }: AskedFor): void {
    if (usage.outputTokens !== undefined) this.#outputTokens.note(usage.outputTokens / choices, 0);
    const inputTokens = totalInputTokens(usage);
    if (inputTokens > 0 && inputTokensEstimate > 0) {
      this.#inputShare.note(Math.min(1, inputTokens / inputTokensEstimate), 0);
    }
  }
}
