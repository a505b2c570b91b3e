import { expect } from 'chai';
import type { ModelEntry, Tier } from '../../../core/catalog';
import type { CandidateFacts } from '../../../core/upstream-gauge';
import { scoreByCost } from '../../../policies/strategy-routing/strategies/cost';
import { scoreByQuality } from '../../../policies/strategy-routing/strategies/quality';
import { scoreBySpeed } from '../../../policies/strategy-routing/strategies/speed';
import type { Asked, Strategy } from '../../../policies/strategy-routing/strategies/strategy';
import { sampleCandidate, samplePrice } from '../../support/catalog-samples';
import { sampleModelRequest } from '../../support/request-sample';

interface Sample extends Partial<CandidateFacts> {
  readonly tier?: Tier;
  readonly model?: Partial<ModelEntry>;
}

const NOTHING_SEEN = { outputTokens: undefined, inputShare: 1 };

/** The names of the samples, best first. */
function ranked(
  strategy: Strategy,
  samples: Readonly<Record<string, Sample>>,
  { request = sampleModelRequest(), ...seen }: Partial<Asked> = {},
): string[] {
  return Object.entries(samples)
    .map(([name, { tier = 'standard', model = {}, ...facts }]) => ({
      name,
      score: strategy(
        sampleCandidate(name, { model, upstream: { tier } }),
        {
          latencyMs: undefined,
          failureRate: 0,
          isUntried: facts.latencyMs === undefined && facts.isBeingTried !== true,
          isBeingTried: false,
          cacheReadShare: undefined,
          ...facts,
        },
        { request, ...NOTHING_SEEN, ...seen },
      ),
    }))
    .sort((one, two) => one.score - two.score)
    .map(({ name }) => name);
}

const priced = (inputE8: bigint, outputE8: bigint, rest: Partial<ModelEntry> = {}): Sample => ({
  model: { price: samplePrice(inputE8, outputE8), ...rest },
});

describe('the strategy quality', () => {
  it('asks official sources first, then those of a high SLA, then the others', () => {
    expect(ranked(scoreByQuality, { c: {}, b: { tier: 'high-sla' }, a: { tier: 'official' } })).to.deep.equal([
      'a',
      'b',
      'c',
    ]);
  });

  it('asks a better tier first even when it is slower and less reliable', () => {
    expect(
      ranked(scoreByQuality, { b: { latencyMs: 1 }, a: { tier: 'official', latencyMs: 900, failureRate: 0.9 } }),
    ).to.deep.equal(['a', 'b']);
  });

  it('asks the more reliable of one tier first, then the quicker', () => {
    const samples = {
      c: { failureRate: 0.1, latencyMs: 1 },
      b: { latencyMs: 200 },
      a: { latencyMs: 100 },
    };
    expect(ranked(scoreByQuality, samples)).to.deep.equal(['a', 'b', 'c']);
  });

  it('holds times and failures that hardly differ for a tie, in any order', () => {
    const similar = { latencyMs: 110, failureRate: 0.04 };
    expect(ranked(scoreByQuality, { b: { latencyMs: 90 }, a: similar })).to.deep.equal(['b', 'a']);
    expect(ranked(scoreByQuality, { a: similar, b: { latencyMs: 90 } })).to.deep.equal(['a', 'b']);
  });

  it('asks who is untried before the others of the same class, but not while somebody finds out', () => {
    expect(ranked(scoreByQuality, { b: { latencyMs: 1 }, a: {} })).to.deep.equal(['a', 'b']);
    expect(ranked(scoreByQuality, { b: { isBeingTried: true }, a: { latencyMs: 9_000 } })).to.deep.equal(['a', 'b']);
  });
});

describe('the strategy speed', () => {
  it('asks the quickest first, whatever its tier', () => {
    expect(ranked(scoreBySpeed, { b: { tier: 'official', latencyMs: 300 }, a: { latencyMs: 200 } })).to.deep.equal([
      'a',
      'b',
    ]);
  });

  it('tries those first of whom nothing is known', () => {
    expect(ranked(scoreBySpeed, { b: { latencyMs: 1 }, a: {} })).to.deep.equal(['a', 'b']);
  });

  it('tries nobody twice at the same time', () => {
    expect(ranked(scoreBySpeed, { b: { isBeingTried: true }, a: { latencyMs: 60_000 } })).to.deep.equal(['a', 'b']);
  });

  it('counts that an attempt that fails was for nothing', () => {
    expect(ranked(scoreBySpeed, { b: { latencyMs: 100, failureRate: 0.5 }, a: { latencyMs: 150 } })).to.deep.equal([
      'a',
      'b',
    ]);
  });
});

describe('the strategy cost', () => {
  it('asks the cheapest for this very call first', () => {
    const samples = { 'cheap-input': priced(1n, 900_000_000n), 'cheap-output': priced(100_000_000n, 1n) };
    const long = sampleModelRequest({ inputTokensEstimate: 100_000, maxOutputTokens: 1 });
    const talkative = sampleModelRequest({ inputTokensEstimate: 1, maxOutputTokens: 8_000 });
    expect(ranked(scoreByCost, samples, { request: long })[0]).to.equal('cheap-input');
    expect(ranked(scoreByCost, samples, { request: talkative })[0]).to.equal('cheap-output');
  });

  it("counts with the model's own estimate when the call names no limit", () => {
    const samples = {
      b: priced(1n, 100_000_000n, { estimatedMaxTokens: 4_000 }),
      a: priced(1n, 200_000_000n, { estimatedMaxTokens: 100 }),
    };
    expect(ranked(scoreByCost, samples)).to.deep.equal(['a', 'b']);
  });

  it('counts with the dearer tier when the input is above its threshold', () => {
    const above = { ...samplePrice(900_000_000n, 1n), tokens: 500 };
    const samples = { b: { model: { price: samplePrice(1n, 1n, { above }) } }, a: priced(100_000_000n, 1n) };
    expect(ranked(scoreByCost, samples, { request: sampleModelRequest({ inputTokensEstimate: 501 }) })[0]).to.equal(
      'a',
    );
    expect(ranked(scoreByCost, samples, { request: sampleModelRequest({ inputTokensEstimate: 500 }) })[0]).to.equal(
      'b',
    );
  });

  it('counts with as many output tokens as answers have lately, not with all that are allowed', () => {
    const samples = { 'cheap-input': priced(100n, 900_000n), 'cheap-output': priced(1_000_000n, 100n) };
    const request = sampleModelRequest({ inputTokensEstimate: 1_000, maxOutputTokens: 8_000 });
    expect(ranked(scoreByCost, samples, { request })[0]).to.equal('cheap-output');
    expect(ranked(scoreByCost, samples, { request, outputTokens: 50 })[0]).to.equal('cheap-input');
    expect(ranked(scoreByCost, samples, { request, outputTokens: 9_999_999 })[0]).to.equal('cheap-output');
  });

  it('counts the share of the input that comes from a cache at its own price', () => {
    const cached = { model: { price: samplePrice(1_000n, 0n, { cacheReadE8: 100n }) }, cacheReadShare: 0.9 };
    expect(ranked(scoreByCost, { b: priced(500n, 0n), a: cached })).to.deep.equal(['a', 'b']);
    expect(ranked(scoreByCost, { b: priced(500n, 0n), a: { ...cached, cacheReadShare: 0.1 } })).to.deep.equal([
      'b',
      'a',
    ]);
  });

  it('holds equal prices for a tie', () => {
    expect(ranked(scoreByCost, { a: {}, b: {} })).to.deep.equal(['a', 'b']);
    expect(ranked(scoreByCost, { b: {}, a: {} })).to.deep.equal(['b', 'a']);
  });
});
