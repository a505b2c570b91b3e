import { expect } from 'chai';
import * as fc from 'fast-check';
import type { ModelRequest } from '../../../core/calls/call';
import { clampTo, holdFor, minHold, withLimit } from '../../../policies/reserve-settle/hold';
import { sampleCandidate, samplePrice } from '../../support/catalog-samples';
import { sampleModelRequest } from '../../support/request-sample';

/** Costs one unit per input token, of which a call has 1,000, and ten per output token. */
const simple = {
  price: samplePrice(1_000_000n, 10_000_000n),
  context: 5_000,
  maxOutput: 4_000,
  estimatedMaxTokens: 100,
};
const candidate = sampleCandidate('a', { model: simple });

const named = (limits: Record<string, unknown>, rest: Partial<ModelRequest> = {}) =>
  sampleModelRequest({
    members: new Map(Object.entries(limits).map(([name, value]) => [name, JSON.stringify(value)])),
    ...rest,
  });

describe('a call with too little money', () => {
  it('gets the highest output limit that its hold pays, in the member that the client used', () => {
    for (const [protocol, name] of [
      ['messages', 'max_tokens'],
      ['chat', 'max_tokens'],
      ['chat', 'max_completion_tokens'],
      ['responses', 'max_output_tokens'],
    ] as const) {
      const request = named({ [name]: 3_000 }, { protocol, maxOutputTokens: 3_000 });
      const clamped = clampTo(21_079n, request, [candidate]);
      expect(clamped.maxOutputTokens).to.equal(2_007);
      expect(clamped.edits).to.deep.equal([{ member: name, set: '2007' }]);
      expect(clamped.members.get(name)).to.equal('2007');
    }
  });

  it('gets each of its two output limits lowered where needed, and none raised', () => {
    const limits = { max_tokens: 1_300, max_completion_tokens: 3_000 };
    const request = named(limits, { protocol: 'chat', maxOutputTokens: 3_000 });
    expect(clampTo(21_070n, request, [candidate]).edits).to.deep.equal([
      { member: 'max_tokens', set: '1300' },
      { member: 'max_completion_tokens', set: '2007' },
    ]);
  });

  it('gets an output limit if the client named none', () => {
    for (const request of [named({}), named({ max_tokens: null })])
      expect(clampTo(21_070n, request, [candidate]).edits).to.deep.equal([{ member: 'max_tokens', set: '2007' }]);
    const responses = clampTo(21_070n, named({}, { protocol: 'responses' }), [candidate]);
    expect(responses.edits).to.deep.equal([{ member: 'max_output_tokens', set: '2007' }]);
  });

  it('requires a hold for at least its input and 1,024 output tokens, or for its own limit if that is lower', () => {
    expect(minHold(named({}), [candidate])).to.equal(11_240n);
    expect(minHold(named({ max_tokens: 50 }, { maxOutputTokens: 50 }), [candidate])).to.equal(1_500n);
    expect(minHold(named({ max_tokens: 0 }, { maxOutputTokens: 0 }), [candidate])).to.equal(1_000n);
    expect(minHold(named({}, { operation: 'compact' }), [candidate])).to.equal(undefined);
  });

  it('gets the lowest maximum output of all candidates as its limit if the client set none and the operator wants this', () => {
    const smaller = sampleCandidate('b', { model: { ...simple, maxOutput: 150 } });
    expect(withLimit(named({}), [candidate, smaller]).edits).to.deep.equal([{ member: 'max_tokens', set: '150' }]);
    const limited = named({ max_tokens: 7 }, { maxOutputTokens: 7 });
    expect(withLimit(limited, [candidate])).to.equal(limited);
  });

  it('gets the highest output limit that the held money pays; one more token would exceed it', () => {
    const limit = fc.integer({ min: 1, max: 6_000 });
    const e8 = fc.bigInt({ min: 1n, max: 100_000_000n });
    void fc.assert(
      fc.property(
        fc.array(fc.tuple(e8, e8, limit), { minLength: 1, maxLength: 3 }),
        fc.option(limit, { nil: undefined }),
        fc.record({ stream: fc.boolean(), choices: fc.integer({ min: 1, max: 3 }) }),
        fc.integer({ min: 0, max: 1_000 }),
        (models, maxOutputTokens, rest, permille) => {
          const candidates = models.map(([input, output, maxOutput], index) =>
            sampleCandidate(`u${index}`, { model: { ...simple, price: samplePrice(input, output), maxOutput } }),
          );
          const request = named({}, { maxOutputTokens, ...rest });
          const minE8 = minHold(request, candidates) ?? 0n;
          const heldE8 = minE8 + ((holdFor(request, candidates) - minE8) * BigInt(permille)) / 1_000n;
          const clamped = clampTo(heldE8, request, candidates);
          const hold = (tokens: number) => holdFor({ ...request, maxOutputTokens: tokens }, candidates);
          const tokens = clamped.maxOutputTokens ?? 0;
          const most = maxOutputTokens ?? Math.min(...models.map(([, , maxOutput]) => maxOutput));
          const isAll = hold(tokens + 1) === hold(tokens) || tokens === most;
          return holdFor(clamped, candidates) <= heldE8 && (isAll || hold(tokens + 1) > heldE8);
        },
      ),
    );
  });
});
