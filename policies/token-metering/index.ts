import type { Counted, ModelRequest, UsageCounter } from '../../core/calls/call';
import { estimatedInput } from '../../core/calls/candidates';
import type { Candidate } from '../../core/catalog/catalog';
import type { EventNote } from '../../core/catalog/upstream';
import {
  estimatedOutput,
  mergeUsage,
  OUTPUT_METERS,
  outputTokens,
  type Pass,
  totalInputTokens,
  UNKNOWN_USAGE,
  type Usage,
  usageOf,
  withOutput,
} from '../../core/catalog/usage';
import { definePolicy } from '../../core/gateway/policy';

const OUTPUTS: ReadonlySet<string> = new Set(OUTPUT_METERS);

/**
 * Counts the usage of one attempt.
 *
 * The gateway charges the reported counts if input and output are both known. Otherwise the call is `estimated`. The output is then counted
 * from the relayed bytes, whatever the upstream reported. One exception: if the only fault is an input of 0 beside an output, the reported
 * output counts. The input stays as reported if it is known; otherwise it is the estimate that the hold used.
 */
export class TokenUsageCounter implements UsageCounter {
  #candidate: Candidate | undefined;
  #usage: Usage = UNKNOWN_USAGE;
  #contentBytes = 0;

  constructor(private readonly request: Pick<ModelRequest, 'inputTokensEstimate' | 'inputs'>) {}

  begin(candidate: Candidate): void {
    this.#candidate = candidate;
    this.#usage = UNKNOWN_USAGE;
    this.#contentBytes = 0;
  }

  note(event: EventNote): void {
    this.#contentBytes += event.contentBytes ?? 0;
    if (event.usage === undefined) return;
    this.#usage = mergeUsage(this.#usage, event.usage);
    // If the final count is invalid, an earlier intermediate count must not replace it.
    if (event.finalUsage === true && outputTokens(event.usage) === undefined)
      this.#usage = withOutput(this.#usage, undefined);
  }

  noteBody(usage: Usage, contentBytes: number): void {
    this.#usage = usage;
    this.#contentBytes = contentBytes;
  }

  read(): Counted & { readonly billing: 'actual' | 'estimated' } {
    const isOutputUsable = this.#isOutputUsable();
    if (this.#isInputUsable() && isOutputUsable) return { isEstimate: false, billing: 'actual', usage: this.#usage };
    const reported = isOutputUsable && this.#isInputKnown() ? outputTokens(this.#usage) : undefined;
    const output = reported || this.#relayedTokens();
    return { isEstimate: true, billing: 'estimated', usage: withOutput(this.#input(), output) };
  }

  readPartial(atLeastTokens = 0): Counted {
    return { usage: withOutput(this.#input(), Math.max(this.#relayed(), atLeastTokens)), isEstimate: true };
  }

  attempted(): { readonly usage: Usage; readonly isReported: boolean } | undefined {
    if (this.#usage.passes.length === 0 && this.#contentBytes === 0) return undefined;
    const isInputUsable = this.#isInputUsable();
    if (isInputUsable && this.#isOutputUsable()) return { usage: this.#usage, isReported: true };
    const input = isInputUsable ? this.#usage : this.#withInput(this.request.inputTokensEstimate);
    return { usage: withOutput(input, this.#relayed()), isReported: false };
  }

  /**
   * Returns the number of relayed output tokens, or the reported intermediate count if that is larger, because the reported count includes
   * hidden reasoning. The first event often reports a placeholder of 1. Without the relayed count, all further output would be free of
   * charge.
   */
  #relayed(): number {
    const reported = this.#isOutputUsable() ? (outputTokens(this.#usage) ?? 0) : 0;
    return Math.max(reported, this.#relayedTokens());
  }

  #input(): Usage {
    if (this.#isInputUsable()) return this.#usage;
    return this.#withInput(estimatedInput(this.request, this.#candidate?.model));
  }

  /** Returns the usage with the estimated input as its only token count. The flags for doubtful parts of the upstream's report stay. */
  #withInput(input: number): Usage {
    return { ...this.#usage, ...usageOf({ input }) };
  }

  #relayedTokens(): number {
    return estimatedOutput(this.#contentBytes);
  }

  /** Whether the reported input is usable. An input of 0 for a prompt that is not empty is not a count. */
  #isInputUsable(): boolean {
    return this.#isInputKnown() && (totalInputTokens(this.#usage) > 0 || this.request.inputTokensEstimate === 0);
  }

  #isInputKnown(): boolean {
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

export default definePolicy({
  contract: 'policy/1',
  name: 'token-metering',
  summary: 'What did the call use?',
  schema: { type: 'object', properties: {} },
  needs: ['request', 'candidates'],
  provides: ['meter'],
  prepare: () => (call) => ({ meter: new TokenUsageCounter(call.request) }),
});
