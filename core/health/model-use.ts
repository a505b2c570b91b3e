import { CACHE_READ_METERS, outputTokens, tokensOf, totalInputTokens, type Usage } from '../catalog/usage';
import { MovingEstimate } from './gauge';

/** The weight of the newest call in a moving average; the average spans about twenty calls. */
const WEIGHT = 0.05;

/** The parts of a call on which its token use depends. */
export interface AskedFor {
  /** How many answers the call requests (`n`). */
  readonly choices: number;
  /** The estimated input tokens. The estimate is an upper bound. */
  readonly inputTokensEstimate: number;
  /** The session that the client names for the call; undefined if the client names none. */
  readonly session?: string | undefined;
}

/** Returns the share of a call's input tokens that was read from the vendor's cache, 0 to 1; undefined if it had no input. */
export function cacheReadShareOf(usage: Usage): number | undefined {
  const inputTokens = totalInputTokens(usage);
  return inputTokens > 0 ? (tokensOf(usage, CACHE_READ_METERS) ?? 0) / inputTokens : undefined;
}

/** The token use of a model's calls, regardless of the upstream. Expected prices are computed from it. */
export class ModelUse {
  readonly #outputTokens = new MovingEstimate(WEIGHT);
  readonly #inputShare = new MovingEstimate(WEIGHT);
  readonly #sessionReads = new MovingEstimate(WEIGHT);

  /** The mean output tokens of one answer; undefined before the first observation. */
  get outputTokens(): number | undefined {
    return this.#outputTokens.value;
  }

  /** The charged input tokens per estimated input token, at most 1 because the estimate is an upper bound; 1 before the first observation. */
  get inputShare(): number {
    return this.#inputShare.value ?? 1;
  }

  /** The share of input tokens that was read from the vendor's cache, for calls that name a session; 0 before the first observation. */
  get sessionReadShare(): number {
    return this.#sessionReads.value ?? 0;
  }

  note(usage: Usage, { choices, inputTokensEstimate, session }: AskedFor): void {
    const output = outputTokens(usage);
    if (output !== undefined) this.#outputTokens.note(output / choices, 0);
    const inputTokens = totalInputTokens(usage);
    if (inputTokens > 0 && inputTokensEstimate > 0) {
      this.#inputShare.note(Math.min(1, inputTokens / inputTokensEstimate), 0);
    }
    const readShare = cacheReadShareOf(usage);
    if (session !== undefined && readShare !== undefined) this.#sessionReads.note(readShare, 0);
  }
}
