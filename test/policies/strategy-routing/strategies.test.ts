import { expect } from 'chai';
import type { ModelEntry, Tier } from '../../../core/catalog/catalog';
import type { CandidateFacts } from '../../../core/health/gauge';
import {
  byCost,
  byQuality,
  bySessionCost,
  bySpeed,
  type RankingQuery,
  type Strategy,
} from '../../../policies/strategy-routing/strategies';
import { sampleCandidate, samplePrice } from '../../support/catalog-samples';
import { sampleModelRequest } from '../../support/request-sample';

interface Sample extends Partial<CandidateFacts> {
  readonly tier?: Tier;
  readonly model?: Partial<ModelEntry>;
}

const facts = (known: Partial<CandidateFacts>): CandidateFacts => ({
  latencyMs: undefined,
  latencyDeviationMs: 0,
  failureRate: 0,
  isUntried: known.latencyMs === undefined && known.isBeingTried !== true,
  isBeingTried: false,
  cacheReadShare: undefined,
  sessionReadShare: 1,
  ...known,
});

const NOTHING_SEEN = { outputTokens: undefined, inputShare: 1, sessionReadShare: 0 };

/** Returns the names of the samples, best first. */
function ranked(
  strategy: Strategy,
  samples: Readonly<Record<string, Sample>>,
  { request = sampleModelRequest(), ...seen }: Partial<RankingQuery> = {},
): string[] {
  return Object.entries(samples)
    .map(([name, { tier = 'standard', model = {}, ...known }]) => ({
      name,
      score: strategy.score(sampleCandidate(name, { model, upstream: { tier } }), facts(known), {
        request,
        ...NOTHING_SEEN,
        ...seen,
      }),
    }))
    .sort((one, two) => one.score - two.score)
    .map(({ name }) => name);
}

const priced = (inputE8: bigint, outputE8: bigint, rest: Partial<ModelEntry> = {}): Sample => ({
  model: { price: samplePrice(inputE8, outputE8), ...rest },
});

describe('the strategy quality', () => {
  it('ranks official upstreams first, then those with a high SLA, then the standard ones', () => {
    expect(ranked(byQuality, { c: {}, b: { tier: 'high-sla' }, a: { tier: 'official' } })).to.deep.equal([
      'a',
      'b',
      'c',
    ]);
  });

  it('ranks the more reliable candidate of a tier first, then the faster one', () => {
    const samples = {
      c: { failureRate: 0.1, latencyMs: 1 },
      b: { latencyMs: 200 },
      a: { latencyMs: 100 },
    };
    expect(ranked(byQuality, samples)).to.deep.equal(['a', 'b', 'c']);
  });

  it('ranks an untried candidate first in its tier, unless another call is already trying it', () => {
    expect(ranked(byQuality, { b: { latencyMs: 1 }, a: {} })).to.deep.equal(['a', 'b']);
    expect(ranked(byQuality, { b: { isBeingTried: true }, a: { latencyMs: 9_000 } })).to.deep.equal(['a', 'b']);
  });
});

describe('the strategy speed', () => {
  it('ranks the fastest candidate first, whatever its tier', () => {
    expect(ranked(bySpeed, { b: { tier: 'official', latencyMs: 300 }, a: { latencyMs: 200 } })).to.deep.equal([
      'a',
      'b',
    ]);
  });

  it('never tries an unmeasured candidate with two calls at once', () => {
    expect(ranked(bySpeed, { b: { isBeingTried: true }, a: { latencyMs: 60_000 } })).to.deep.equal(['a', 'b']);
  });
});

describe('every strategy', () => {
  it('assumes a noise of 0 for a candidate without measurements, so that no other candidate counts as equal', () => {
    for (const strategy of [byQuality, bySpeed, byCost]) expect(strategy.noise(facts({}))).to.equal(0);
  });
});

describe('the strategy cost', () => {
  it('ranks the cheapest candidate for the call first', () => {
    const samples = { 'cheap-input': priced(1n, 900_000_000n), 'cheap-output': priced(100_000_000n, 1n) };
    const long = sampleModelRequest({ inputTokensEstimate: 100_000, maxOutputTokens: 1 });
    const talkative = sampleModelRequest({ inputTokensEstimate: 1, maxOutputTokens: 8_000 });
    expect(ranked(byCost, samples, { request: long })[0]).to.equal('cheap-input');
    expect(ranked(byCost, samples, { request: talkative })[0]).to.equal('cheap-output');
  });

  it("uses the price for long inputs if the input exceeds that price's token threshold", () => {
    const above = { ...samplePrice(900_000_000n, 1n), tokens: 500 };
    const samples = { b: { model: { price: samplePrice(1n, 1n, { above }) } }, a: priced(100_000_000n, 1n) };
    expect(ranked(byCost, samples, { request: sampleModelRequest({ inputTokensEstimate: 501 }) })[0]).to.equal('a');
    expect(ranked(byCost, samples, { request: sampleModelRequest({ inputTokensEstimate: 500 }) })[0]).to.equal('b');
  });

  it("prices a session at each candidate as if it stayed there, whatever each upstream's cache did recently", () => {
    const price = (input: bigint) => ({ price: samplePrice(input, 0n, { cacheRead: input / 10n }) });
    for (const [dear, cheap] of [
      [0.9, 0.5],
      [0.3, 1],
      [1, 0.25],
    ] as const) {
      const samples = {
        dear: { model: price(1_000n), sessionReadShare: dear },
        cheap: { model: price(900n), sessionReadShare: cheap },
      };
      expect(ranked(bySessionCost, samples, { sessionReadShare: 0.8 })).to.deep.equal(['cheap', 'dear']);
    }
  });
});
