import { expect } from 'chai';
import type { ModelEntry, Tier } from '../../../core/catalog/catalog';
import type { CandidateFacts } from '../../../core/health/gauge';
import { byCost, bySessionCost } from '../../../policies/strategy-routing/strategies/cost';
import { byQuality } from '../../../policies/strategy-routing/strategies/quality';
import { bySpeed } from '../../../policies/strategy-routing/strategies/speed';
import type { Asked, Strategy } from '../../../policies/strategy-routing/strategies/strategy';
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

/** The names of the samples, best first. */
function ranked(
  strategy: Strategy,
  samples: Readonly<Record<string, Sample>>,
  { request = sampleModelRequest(), ...seen }: Partial<Asked> = {},
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

const ASKED: Asked = { request: sampleModelRequest(), ...NOTHING_SEEN };

describe('the strategy quality', () => {
  it('asks official sources first, then those of a high SLA, then the others', () => {
    expect(ranked(byQuality, { c: {}, b: { tier: 'high-sla' }, a: { tier: 'official' } })).to.deep.equal([
      'a',
      'b',
      'c',
    ]);
  });

  it('asks a better tier first even when it is slower and less reliable', () => {
    expect(
      ranked(byQuality, { b: { latencyMs: 1 }, a: { tier: 'official', latencyMs: 900, failureRate: 0.9 } }),
    ).to.deep.equal(['a', 'b']);
  });

  it('asks the more reliable of one tier first, then the quicker', () => {
    const samples = {
      c: { failureRate: 0.1, latencyMs: 1 },
      b: { latencyMs: 200 },
      a: { latencyMs: 100 },
    };
    expect(ranked(byQuality, samples)).to.deep.equal(['a', 'b', 'c']);
  });

  it('has as much noise as lies between times of which one is half as long again', () => {
    const [quick, slow] = [facts({ latencyMs: 100, failureRate: 0.04 }), facts({ latencyMs: 149 })];
    const apart =
      byQuality.score(sampleCandidate('a'), slow, ASKED) - byQuality.score(sampleCandidate('b'), quick, ASKED);
    expect(apart).to.be.within(0.9, byQuality.noise(quick));
  });

  it('has more noise the more the times of single answers differ', () => {
    const noise = (latencyDeviationMs: number) => byQuality.noise(facts({ latencyMs: 100, latencyDeviationMs }));
    expect(noise(80)).to.be.above(noise(10));
  });

  it('asks who is untried before the others of the same class, but not while somebody finds out', () => {
    expect(ranked(byQuality, { b: { latencyMs: 1 }, a: {} })).to.deep.equal(['a', 'b']);
    expect(ranked(byQuality, { b: { isBeingTried: true }, a: { latencyMs: 9_000 } })).to.deep.equal(['a', 'b']);
  });
});

describe('the strategy speed', () => {
  it('asks the quickest first, whatever its tier', () => {
    expect(ranked(bySpeed, { b: { tier: 'official', latencyMs: 300 }, a: { latencyMs: 200 } })).to.deep.equal([
      'a',
      'b',
    ]);
  });

  it('tries those first of whom nothing is known', () => {
    expect(ranked(bySpeed, { b: { latencyMs: 1 }, a: {} })).to.deep.equal(['a', 'b']);
  });

  it('tries nobody twice at the same time', () => {
    expect(ranked(bySpeed, { b: { isBeingTried: true }, a: { latencyMs: 60_000 } })).to.deep.equal(['a', 'b']);
  });

  it('counts that an attempt that fails was for nothing', () => {
    expect(ranked(bySpeed, { b: { latencyMs: 100, failureRate: 0.5 }, a: { latencyMs: 150 } })).to.deep.equal([
      'a',
      'b',
    ]);
  });
});

describe('the strategies', () => {
  it('have no noise while nothing was measured: an untried candidate equals no other', () => {
    for (const strategy of [byQuality, bySpeed, byCost]) expect(strategy.noise(facts({}))).to.equal(0);
  });
});

describe('the strategy cost', () => {
  it('asks the cheapest for this very call first', () => {
    const samples = { 'cheap-input': priced(1n, 900_000_000n), 'cheap-output': priced(100_000_000n, 1n) };
    const long = sampleModelRequest({ inputTokensEstimate: 100_000, maxOutputTokens: 1 });
    const talkative = sampleModelRequest({ inputTokensEstimate: 1, maxOutputTokens: 8_000 });
    expect(ranked(byCost, samples, { request: long })[0]).to.equal('cheap-input');
    expect(ranked(byCost, samples, { request: talkative })[0]).to.equal('cheap-output');
  });

  it("counts with the model's own estimate when the call names no limit", () => {
    const samples = {
      b: priced(1n, 100_000_000n, { estimatedMaxTokens: 4_000 }),
      a: priced(1n, 200_000_000n, { estimatedMaxTokens: 100 }),
    };
    expect(ranked(byCost, samples)).to.deep.equal(['a', 'b']);
  });

  it('counts with the dearer tier when the input is above its threshold', () => {
    const above = { ...samplePrice(900_000_000n, 1n), tokens: 500 };
    const samples = { b: { model: { price: samplePrice(1n, 1n, { above }) } }, a: priced(100_000_000n, 1n) };
    expect(ranked(byCost, samples, { request: sampleModelRequest({ inputTokensEstimate: 501 }) })[0]).to.equal('a');
    expect(ranked(byCost, samples, { request: sampleModelRequest({ inputTokensEstimate: 500 }) })[0]).to.equal('b');
  });

  it('counts with as many output tokens as answers have lately, not with all that are allowed', () => {
    const samples = { 'cheap-input': priced(100n, 900_000n), 'cheap-output': priced(1_000_000n, 100n) };
    const request = sampleModelRequest({ inputTokensEstimate: 1_000, maxOutputTokens: 8_000 });
    expect(ranked(byCost, samples, { request })[0]).to.equal('cheap-output');
    expect(ranked(byCost, samples, { request, outputTokens: 50 })[0]).to.equal('cheap-input');
    expect(ranked(byCost, samples, { request, outputTokens: 9_999_999 })[0]).to.equal('cheap-output');
  });

  it('counts the share of the input that comes from a cache at its own price', () => {
    const cached = { model: { price: samplePrice(1_000n, 0n, { cacheRead: 100n }) }, cacheReadShare: 0.9 };
    expect(ranked(byCost, { b: priced(500n, 0n), a: cached })).to.deep.equal(['a', 'b']);
    expect(ranked(byCost, { b: priced(500n, 0n), a: { ...cached, cacheReadShare: 0.1 } })).to.deep.equal(['b', 'a']);
  });

  it('holds equal prices for a tie', () => {
    expect(ranked(byCost, { a: {}, b: {} })).to.deep.equal(['a', 'b']);
    expect(ranked(byCost, { b: {}, a: {} })).to.deep.equal(['b', 'a']);
  });

  it('prices a session at each candidate as if it stayed there, whatever each one read lately', () => {
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

  it('counts what sessions read from caches at its own price', () => {
    const samples = {
      'cheap-input': { model: { price: samplePrice(500n, 0n, { cacheRead: 400n }) } },
      'cheap-cache': { model: { price: samplePrice(1_000n, 0n, { cacheRead: 100n }) } },
    };
    expect(ranked(bySessionCost, samples, { sessionReadShare: 0.9 })[0]).to.equal('cheap-cache');
    expect(ranked(bySessionCost, samples, { sessionReadShare: 0.1 })[0]).to.equal('cheap-input');
  });

  it('expects nothing of the cache of an upstream where sessions never read from it', () => {
    const price = (input: bigint) => ({ price: samplePrice(input, 0n, { cacheRead: input / 10n }) });
    const samples = {
      cheap: { model: price(900n), sessionReadShare: 0 },
      dear: { model: price(1_000n), sessionReadShare: 0.8 },
    };
    expect(ranked(bySessionCost, samples, { sessionReadShare: 0.8 })).to.deep.equal(['dear', 'cheap']);
  });
});
