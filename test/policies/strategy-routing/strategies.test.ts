import { expect } from 'chai';
import type { ModelEntry, Tier } from '../../../core/catalog';
import type { UpstreamFacts } from '../../../core/upstream-health';
import { rankByCost } from '../../../policies/strategy-routing/strategies/cost';
import { rankByQuality } from '../../../policies/strategy-routing/strategies/quality';
import { rankBySpeed } from '../../../policies/strategy-routing/strategies/speed';
import type { LiveFacts, Ranker } from '../../../policies/strategy-routing/strategies/strategy';
import { sampleCandidate, samplePrice } from '../../support/catalog-samples';
import { sampleModelRequest } from '../../support/request-sample';

interface Sample extends Partial<UpstreamFacts> {
  readonly tier?: Tier;
  readonly model?: Partial<ModelEntry>;
}

/** The names of the samples, best first. */
function ranked(rank: Ranker, samples: Readonly<Record<string, Sample>>, request = sampleModelRequest()): string[] {
  const facts: LiveFacts = {
    request,
    of: (name) => ({ firstTokenMs: samples[name]?.firstTokenMs, successRate: samples[name]?.successRate ?? 1 }),
  };
  return Object.entries(samples)
    .map(([name, { tier = 'standard', model = {} }]) => sampleCandidate(name, { model, upstream: { tier } }))
    .sort((one, two) => rank(one, two, facts))
    .map(({ upstream }) => upstream.name);
}

const priced = (inputE8: bigint, outputE8: bigint, rest: Partial<ModelEntry> = {}): Sample => ({
  model: { price: samplePrice(inputE8, outputE8), ...rest },
});

describe('the strategy quality', () => {
  it('asks official sources first, then those of a high SLA, then the others', () => {
    expect(ranked(rankByQuality, { c: {}, b: { tier: 'high-sla' }, a: { tier: 'official' } })).to.deep.equal([
      'a',
      'b',
      'c',
    ]);
  });

  it('asks a better tier first even when it is slower and less reliable', () => {
    expect(
      ranked(rankByQuality, { b: { firstTokenMs: 1 }, a: { tier: 'official', firstTokenMs: 900, successRate: 0.1 } }),
    ).to.deep.equal(['a', 'b']);
  });

  it('asks the more reliable of one tier first, then the quicker', () => {
    const samples = {
      c: { successRate: 0.9, firstTokenMs: 1 },
      b: { successRate: 1, firstTokenMs: 200 },
      a: { successRate: 1, firstTokenMs: 100 },
    };
    expect(ranked(rankByQuality, samples)).to.deep.equal(['a', 'b', 'c']);
  });
});

describe('the strategy speed', () => {
  it('asks the quickest first, whatever its tier', () => {
    expect(ranked(rankBySpeed, { b: { tier: 'official', firstTokenMs: 300 }, a: { firstTokenMs: 200 } })).to.deep.equal(
      ['a', 'b'],
    );
  });

  it('tries those first of whom nothing is known', () => {
    expect(ranked(rankBySpeed, { b: { firstTokenMs: 1 }, a: {} })).to.deep.equal(['a', 'b']);
  });
});

describe('the strategy cost', () => {
  it('asks the cheapest for this very call first', () => {
    const samples = { 'cheap-input': priced(1n, 900_000_000n), 'cheap-output': priced(100_000_000n, 1n) };
    const long = sampleModelRequest({ inputTokensEstimate: 100_000, maxOutputTokens: 1 });
    const talkative = sampleModelRequest({ inputTokensEstimate: 1, maxOutputTokens: 8_000 });
    expect(ranked(rankByCost, samples, long)[0]).to.equal('cheap-input');
    expect(ranked(rankByCost, samples, talkative)[0]).to.equal('cheap-output');
  });

  it("counts with the model's own estimate when the call names no limit", () => {
    const samples = {
      b: priced(1n, 100_000_000n, { estimatedMaxTokens: 4_000 }),
      a: priced(1n, 200_000_000n, { estimatedMaxTokens: 100 }),
    };
    expect(ranked(rankByCost, samples)).to.deep.equal(['a', 'b']);
  });

  it('counts with the dearer tier when the input is above its threshold', () => {
    const above = { ...samplePrice(900_000_000n, 1n), tokens: 500 };
    const samples = { b: { model: { price: samplePrice(1n, 1n, { above }) } }, a: priced(100_000_000n, 1n) };
    expect(ranked(rankByCost, samples, sampleModelRequest({ inputTokensEstimate: 501 }))[0]).to.equal('a');
    expect(ranked(rankByCost, samples, sampleModelRequest({ inputTokensEstimate: 500 }))[0]).to.equal('b');
  });

  it('holds equal prices for a tie', () => {
    expect(ranked(rankByCost, { a: {}, b: {} })).to.deep.equal(['a', 'b']);
    expect(ranked(rankByCost, { b: {}, a: {} })).to.deep.equal(['b', 'a']);
  });
});
