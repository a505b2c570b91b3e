import { CACHE_READ_METERS, outputTokens, tokensOf, totalInputTokens, type Usage } from '../catalog/usage';
import { MovingEstimate } from './moving-estimate';

/** About twenty calls are remembered. */
const WEIGHT = 0.05;

/** What a call asks for, as far as it tells what the call uses. */
export interface AskedFor {
  /** How many answers (`n`). */
  readonly choices: number;
  /** About how many input tokens it has, rather too many than too few. */
  readonly inputTokensEstimate: number;
  /** The session that it belongs to, as the client names it; undefined where it names none. */
  readonly session?: string | undefined;
}

/** Returns the share of its input tokens that a call read from the vendor's cache; undefined where it had no input. */
export function cacheReadShareOf(usage: Usage): number | undefined {
  const inputTokens = totalInputTokens(usage);
  return inputTokens > 0 ? (tokensOf(usage, CACHE_READ_METERS) ?? 0) / inputTokens : undefined;
}

/** How calls of one model use it, whoever serves them: what an expected price is made of. */
export class ModelUse {
  readonly #outputTokens = new MovingEstimate(WEIGHT);
  readonly #inputShare = new MovingEstimate(WEIGHT);
  readonly #sessionReads = new MovingEstimate(WEIGHT);

  /** Output tokens of one answer; undefined while nothing was seen. */
  get outputTokens(): number | undefined {
    return this.#outputTokens.value;
  }

  /** Input tokens that were charged per token of the estimate, which is an upper one; 1 while nothing was seen. */
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
