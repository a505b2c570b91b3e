import type { Counted, Meter, ModelRequest, UsagePart } from '../../core/call';
import type { Candidate } from '../../core/catalog';
import { totalInputTokens } from '../../core/price';
import type { EventNote } from '../../core/upstream';
import { addUsage, mergeUsage, UNKNOWN_USAGE, type Usage } from '../../core/usage';

/** How many UTF-8 bytes of an answer are charged as one token when the upstream does not say; contract section 6. */
const BYTES_PER_TOKEN = 4;

/**
 * What one attempt has used.
 *
 * Reported counts are charged when input and output are both known and possible. Otherwise the call is `estimated`:
 * output is counted from what was relayed, whatever was reported; input stays as reported when it is possible, and is
 * else the estimate the call was admitted with.
 */
export class TokenMeter implements Meter {
  readonly #request: Pick<ModelRequest, 'inputTokensEstimate' | 'choices'>;
  #candidate: Candidate | undefined;
  #usage: Usage = UNKNOWN_USAGE;
  #contentBytes = 0;
  /** What others have answered before, when this candidate goes on from it. */
  #before: UsagePart[] = [];

  constructor(request: Pick<ModelRequest, 'inputTokensEstimate' | 'choices'>) {
    this.#request = request;
  }

  begin(candidate: Candidate): void {
    this.#candidate = candidate;
    this.#usage = UNKNOWN_USAGE;
    this.#contentBytes = 0;
    this.#before = [];
  }

  /** Input is charged once: as the first reports it, and only otherwise as who goes on does, less what had been said. */
  goOn(candidate: Candidate): void {
    const beginner = this.#candidate ?? candidate;
    const input = !this.#hasInputBefore() && this.#isInputUsable() ? this.#input() : UNKNOWN_USAGE;
    const before = [...this.#before, { candidate: beginner, usage: { ...input, outputTokens: this.#relayed() } }];
    this.begin(candidate);
    this.#before = before;
  }

  note(event: EventNote): void {
    this.#contentBytes += event.contentBytes ?? 0;
    if (event.usage === undefined) return;
    this.#usage = mergeUsage(this.#usage, event.usage);
    // A running count from before does not stand in for a final one that makes no sense.
    if (event.finalUsage === true) this.#usage = { ...this.#usage, outputTokens: event.usage.outputTokens };
  }

  noteBody(usage: Usage, contentBytes: number): void {
    this.#usage = usage;
    this.#contentBytes = contentBytes;
  }

  read(): Counted & { readonly billing: 'actual' | 'estimated' } {
    if (!this.#isInputUsable() || !this.#isOutputUsable()) {
      const usage = { ...this.#input(), outputTokens: this.#relayedTokens() };
      return { isEstimate: true, billing: 'estimated', ...this.#inAll(usage) };
    }
    const billing = this.#before.length === 0 ? 'actual' : 'estimated';
    const usage = { ...this.#input(), outputTokens: this.#usage.outputTokens };
    return { isEstimate: false, billing, ...this.#inAll(usage) };
  }

  readPartial(): Counted {
    return { ...this.#inAll({ ...this.#input(), outputTokens: this.#relayed() }), isEstimate: true };
  }

  /** With what was answered before. */
  #inAll(usage: Usage): Pick<Counted, 'usage' | 'parts'> {
    if (this.#candidate === undefined || this.#before.length === 0) return { usage };
    const own = this.#hasInputBefore() ? { ...UNKNOWN_USAGE, outputTokens: usage.outputTokens } : usage;
    const parts = [...this.#before, { candidate: this.#candidate, usage: own }];
    return { usage: parts.map((part) => part.usage).reduce(addUsage), parts };
  }

  #hasInputBefore(): boolean {
    return this.#before.some(({ usage }) => usage.inputTokens !== undefined);
  }

  /**
   * Output is what has been relayed, or the running count the upstream reported when that is possible and larger: it
   * knows of reasoning that is not shown. (A first event's placeholder of 1 must not make the rest free.)
   */
  #relayed(): number {
    const reported = this.#isOutputUsable() ? (this.#usage.outputTokens ?? 0) : 0;
    return Math.max(reported, this.#relayedTokens());
  }

  /** Who goes on counts the text it went on from as input; that has been charged as the output it was. */
  #input(): Usage {
    if (this.#isInputUsable()) {
      const said = this.#before.reduce((sum, { usage }) => sum + (usage.outputTokens ?? 0), 0);
      return said === 0
        ? this.#usage
        : { ...this.#usage, inputTokens: Math.max(0, (this.#usage.inputTokens ?? 0) - said) };
    }
    const context = this.#candidate?.model.context ?? Number.POSITIVE_INFINITY;
    return { ...UNKNOWN_USAGE, inputTokens: Math.min(this.#request.inputTokensEstimate, context) };
  }

  #relayedTokens(): number {
    return Math.ceil(this.#contentBytes / BYTES_PER_TOKEN);
  }

  #isInputUsable(): boolean {
    const { inputTokens, cacheReadTokens, cacheWriteTokens, cacheWrite1hTokens } = this.#usage;
    if (inputTokens === undefined) return false;
    const counts = [inputTokens, cacheReadTokens, cacheWriteTokens, cacheWrite1hTokens];
    return counts.every(isCountOrUnknown) && totalInputTokens(this.#usage) <= this.#mostTokens();
  }

  #isOutputUsable(): boolean {
    const { outputTokens } = this.#usage;
    if (outputTokens === undefined) return false;
    return isCountOrUnknown(outputTokens) && outputTokens <= this.#mostTokens() * this.#request.choices;
  }

  /** More than a model can read and write is not believed. */
  #mostTokens(): number {
    const model = this.#candidate?.model;
    return model === undefined ? 0 : model.context + model.maxOutput;
  }
}

function isCountOrUnknown(count: number | undefined): boolean {
  return count === undefined || (Number.isSafeInteger(count) && count >= 0);
}
