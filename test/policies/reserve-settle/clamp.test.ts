import { expect } from 'chai';
import * as fc from 'fast-check';
import type { ModelRequest } from '../../../core/calls/call';
import { clampTo, withLimit } from '../../../policies/reserve-settle/clamp';
import { holdFor } from '../../../policies/reserve-settle/hold';
import { sampleCandidate, samplePrice } from '../../support/catalog-samples';
import { sampleModelRequest } from '../../support/request-sample';

/** Costs one unit per input token, of which a call has 1,000, and ten per output token. */
const simple = { price: samplePrice(1_000_000n, 10_000_000n), context: 5_000, maxOutput: 400, estimatedMaxTokens: 100 };
const candidate = sampleCandidate('a', { model: simple });

const named = (limits: Record<string, unknown>, rest: Partial<ModelRequest> = {}) =>
  sampleModelRequest({
    members: new Map(Object.entries(limits).map(([name, value]) => [name, JSON.stringify(value)])),
    ...rest,
  });

describe('a call with too little money', () => {
  it('gets the highest number of output tokens that it can pay, in the member that the client used', () => {
    for (const [protocol, name] of [
      ['messages', 'max_tokens'],
      ['chat', 'max_tokens'],
      ['chat', 'max_completion_tokens'],
      ['responses', 'max_output_tokens'],
    ] as const) {
      const request = named({ [name]: 50 }, { protocol, maxOutputTokens: 50 });
      const clamped = clampTo(1_079n, request, [candidate]);
      expect(clamped?.maxOutputTokens).to.equal(7);
      expect(clamped?.edits).to.deep.equal([{ member: name, set: '7' }]);
      expect(clamped?.members.get(name)).to.equal('7');
    }
  });

  it('has each of two limits lowered and none raised', () => {
    const request = named({ max_tokens: 3, max_completion_tokens: 50 }, { protocol: 'chat', maxOutputTokens: 50 });
    expect(clampTo(1_070n, request, [candidate])?.edits).to.deep.equal([
      { member: 'max_tokens', set: '3' },
      { member: 'max_completion_tokens', set: '7' },
    ]);
  });

  it('gets a limit if it has none', () => {
    for (const request of [named({}), named({ max_tokens: null })]) {
      expect(clampTo(1_070n, request, [candidate])?.edits).to.deep.equal([{ member: 'max_tokens', set: '7' }]);
    }
    const responses = clampTo(1_070n, named({}, { protocol: 'responses' }), [candidate]);
    expect(responses?.edits).to.deep.equal([{ member: 'max_output_tokens', set: '7' }]);
  });

  it('is refused if it cannot pay a single output token', () => {
    expect(clampTo(1_009n, named({}), [candidate])).to.equal(undefined);
    expect(clampTo(1_010n, named({}), [candidate])?.maxOutputTokens).to.equal(1);
  });

  it('keeps a limit of no output at all', () => {
    const request = named({ max_tokens: 0 }, { maxOutputTokens: 0 });
    expect(clampTo(1_500n, request, [candidate])?.edits).to.deep.equal([{ member: 'max_tokens', set: '0' }]);
    expect(clampTo(999n, request, [candidate])).to.equal(undefined);
  });

  it('has the held limit written into its body if configured, the lowest that every candidate accepts', () => {
    const smaller = sampleCandidate('b', { model: { ...simple, maxOutput: 150 } });
    expect(withLimit(named({}), [candidate, smaller]).edits).to.deep.equal([{ member: 'max_tokens', set: '150' }]);
    const limited = named({ max_tokens: 7 }, { maxOutputTokens: 7 });
    expect(withLimit(limited, [candidate])).to.equal(limited);
  });

  it('has a hold within its money, and one more token would exceed it', () => {
    const limit = fc.integer({ min: 1, max: 1_000 });
    const e8 = fc.bigInt({ min: 1n, max: 100_000_000n });
    void fc.assert(
      fc.property(
        fc.array(fc.tuple(e8, e8, limit), { minLength: 1, maxLength: 3 }),
        fc.option(limit, { nil: undefined }),
        fc.record({ stream: fc.boolean(), choices: fc.integer({ min: 1, max: 3 }) }),
        fc.bigInt({ min: 0n, max: 100_000n }),
        (models, maxOutputTokens, rest, availableE8) => {
          const candidates = models.map(([input, output, maxOutput], index) =>
            sampleCandidate(`u${index}`, { model: { ...simple, price: samplePrice(input, output), maxOutput } }),
          );
          const request = named({}, { maxOutputTokens, ...rest });
          fc.pre(holdFor(request, candidates) > availableE8);
          const clamped = clampTo(availableE8, request, candidates);
          const hold = (tokens: number) => holdFor({ ...request, maxOutputTokens: tokens }, candidates);
          if (clamped === undefined) return hold(1) > availableE8;
          const tokens = clamped.maxOutputTokens ?? 0;
          const isAll = hold(tokens + 1) === hold(tokens);
          return (
            tokens >= 1 && holdFor(clamped, candidates) <= availableE8 && (isAll || hold(tokens + 1) > availableE8)
          );
        },
      ),
    );
  });
});
