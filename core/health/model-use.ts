import { CACHE_READ_METERS, outputTokens, tokensOf, totalInputTokens, type Usage } from '../catalog/usage';
import { MovingEstimate } from './gauge';

/** The weight of the newest call: about twenty calls are remembered. */
const WEIGHT = 0.05;

/** The parts of a call that its token use depends on. */
export interface AskedFor {
  /** How many answers the call asks for (`n`). */
  readonly choices: number;
  /** Estimated input tokens, rather too many than too few. */
  readonly inputTokensEstimate: number;
  /** The session that the client names for the call; undefined if it names none. */
  readonly session?: string | undefined;
}

/** Returns the share of its input tokens that a call read from the vendor's cache; undefined where it had no input. */
export function cacheReadShareOf(usage: Usage): number | undefined {
  const inputTokens = totalInputTokens(usage);
  return inputTokens > 0 ? (tokensOf(usage, CACHE_READ_METERS) ?? 0) / inputTokens : undefined;
}

/** The token use of a model's calls, whichever upstream serves them. Expected prices are computed from it. */
export class ModelUse {
  readonly #outputTokens = new MovingEstimate(WEIGHT);
  readonly #inputShare = new MovingEstimate(WEIGHT);
  readonly #sessionReads = new MovingEstimate(WEIGHT);

  /** Output tokens of one answer; undefined while nothing was seen. */
  get outputTokens(): number | undefined {
    return this.#outputTokens.value;
  }

  /** Charged input tokens per estimated input token, at most 1 because the estimate is an upper bound; 1 while nothing was seen. */
  get inputShare(): number {
    return this.#inputShare.value ?? 1;
  }

  /** Share of their input tokens that calls of sessions read from caches; 0 while nothing was seen. */
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
