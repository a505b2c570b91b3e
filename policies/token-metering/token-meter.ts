import type { Counted, Meter, ModelRequest, UsagePart } from '../../core/calls/call';
import type { Candidate } from '../../core/catalog/catalog';
import type { EventNote } from '../../core/catalog/upstream';
import {
  INPUT_METERS,
  mergeUsage,
  OUTPUT_METERS,
  outputTokens,
  type Pass,
  tokensOf,
  UNKNOWN_USAGE,
  type Usage,
  usageOf,
  withOutput,
} from '../../core/catalog/usage';

/** How many UTF-8 bytes of an answer are charged as one token when the upstream does not say; docs/contract.md, section 6. */
const BYTES_PER_TOKEN = 4;

const OUTPUTS: ReadonlySet<string> = new Set(OUTPUT_METERS);

/**
 * Counts the usage of one attempt.
 *
 * Reported counts are charged if input and output are both known. Otherwise the call is `estimated`. Output is then counted from
 * what was relayed, whatever was reported. Input stays as reported if it is known; otherwise it is the estimate that the hold
 * used.
 */
export class TokenMeter implements Meter {
  readonly #request: Pick<ModelRequest, 'inputTokensEstimate' | 'inputs'>;
  #candidate: Candidate | undefined;
  #usage: Usage = UNKNOWN_USAGE;
  #contentBytes = 0;
  /** The usage of earlier candidates whose answer this candidate continues. */
  #before: UsagePart[] = [];

  constructor(request: Pick<ModelRequest, 'inputTokensEstimate' | 'inputs'>) {
    this.#request = request;
  }

  begin(candidate: Candidate): void {
    this.#candidate = candidate;
    this.#usage = UNKNOWN_USAGE;
    this.#contentBytes = 0;
    this.#before = [];
  }

  /**
   * Begins to count a candidate that continues the answer. Input is charged once: as the first candidate reports it, or else as
   * the continuing one does, less the continued text.
   */
  goOn(candidate: Candidate): void {
    const beginner = this.#candidate ?? candidate;
    const input = !this.#hasInputBefore() && this.#isInputUsable() ? this.#input() : UNKNOWN_USAGE;
    const before = [...this.#before, { candidate: beginner, usage: withOutput(input, this.#relayed()) }];
    this.begin(candidate);
    this.#before = before;
  }

  note(event: EventNote): void {
    this.#contentBytes += event.contentBytes ?? 0;
    if (event.usage === undefined) return;
    this.#usage = mergeUsage(this.#usage, event.usage);
    // If the final count is invalid, an earlier running count does not replace it.
    if (event.finalUsage === true && outputTokens(event.usage) === undefined)
      this.#usage = withOutput(this.#usage, undefined);
  }

  noteBody(usage: Usage, contentBytes: number): void {
    this.#usage = usage;
    this.#contentBytes = contentBytes;
  }

  read(): Counted & { readonly billing: 'actual' | 'estimated' } {
    if (!this.#isInputUsable() || !this.#isOutputUsable()) {
      const usage = withOutput(this.#input(), this.#relayedTokens());
      return { isEstimate: true, billing: 'estimated', ...this.#inAll(usage) };
    }
    const billing = this.#before.length === 0 ? 'actual' : 'estimated';
    return { isEstimate: false, billing, ...this.#inAll(this.#input()) };
  }

  readPartial(hiddenTokens = 0): Counted {
    return { ...this.#inAll(withOutput(this.#input(), this.#relayed(hiddenTokens))), isEstimate: true };
  }

  attempted(): { readonly usage: Usage; readonly isReported: boolean } | undefined {
    if (this.#usage.passes.length === 0 && this.#contentBytes === 0) return undefined;
    const isInputUsable = this.#isInputUsable();
    if (isInputUsable && this.#isOutputUsable()) return { usage: this.#usage, isReported: true };
    const input = isInputUsable ? this.#usage : usageOf({ input: this.#request.inputTokensEstimate });
    return { usage: withOutput(input, this.#relayed()), isReported: false };
  }

  /** Adds the usage of earlier candidates. */
  #inAll(usage: Usage): Pick<Counted, 'usage' | 'parts'> {
    if (this.#candidate === undefined || this.#before.length === 0) return { usage };
    const own = this.#hasInputBefore() ? usageOf({ output: outputTokens(usage) }) : usage;
    const parts = [...this.#before, { candidate: this.#candidate, usage: own }];
    return { usage: { passes: parts.flatMap((part) => part.usage.passes) }, parts };
  }

  #hasInputBefore(): boolean {
    return this.#before.some(({ usage }) => tokensOf(usage, INPUT_METERS) !== undefined);
  }

  /**
   * Returns the relayed output, or the reported running count if that is larger, because it includes hidden reasoning. A first
   * event's placeholder of 1 must not make the rest free.
   */
  #relayed(hiddenTokens = 0): number {
    const reported = this.#isOutputUsable() ? (outputTokens(this.#usage) ?? 0) : 0;
    return Math.max(reported, this.#relayedTokens() + hiddenTokens);
  }

  /** Returns the input to charge. The continuing upstream reports the continued text as input. Subtract it: it was charged as output. */
  #input(): Usage {
    if (this.#isInputUsable()) {
      const said = this.#before.reduce((sum, { usage }) => sum + (outputTokens(usage) ?? 0), 0);
      return said === 0 ? this.#usage : lessInput(this.#usage, said);
    }
    const context = this.#candidate?.model.context ?? Number.POSITIVE_INFINITY;
    const { inputTokensEstimate, inputs = 1 } = this.#request;
    return usageOf({ input: Math.min(inputTokensEstimate, context * inputs) });
  }

  #relayedTokens(): number {
    return Math.ceil(this.#contentBytes / BYTES_PER_TOKEN);
  }

  #isInputUsable(): boolean {
    const { passes } = this.#usage;
    return passes.length > 0 && passes.every(isInputKnown);
  }

  #isOutputUsable(): boolean {
    const { passes } = this.#usage;
    return passes.length > 0 && passes.every(isOutputKnown);
  }
}

function isInputKnown(pass: Pass): boolean {
  if (pass.counts.get('input') === undefined) return false;
  for (const [meter, count] of pass.counts) if (!OUTPUTS.has(meter) && !isCountOrUnknown(count)) return false;
  return true;
}

function isOutputKnown(pass: Pass): boolean {
  for (const meter of OUTPUT_METERS) if (!isCountOrUnknown(pass.counts.get(meter))) return false;
  return outputTokens({ passes: [pass] }) !== undefined;
}

function isCountOrUnknown(count: number | undefined): boolean {
  return count === undefined || (Number.isSafeInteger(count) && count >= 0);
}

function lessInput({ passes }: Usage, tokens: number): Usage {
  const [first, ...others] = passes as readonly [Pass, ...Pass[]];
  const input = Math.max(0, (first.counts.get('input') ?? 0) - tokens);
  return { passes: [{ ...first, counts: new Map(first.counts).set('input', input) }, ...others] };
}
