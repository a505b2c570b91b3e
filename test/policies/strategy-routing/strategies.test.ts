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

/** Returns the names of the samples, best first. */
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
  it('ranks official sources first, then those with a high SLA, then the others', () => {
    expect(ranked(byQuality, { c: {}, b: { tier: 'high-sla' }, a: { tier: 'official' } })).to.deep.equal([
      'a',
      'b',
      'c',
    ]);
  });

  it('ranks a better tier first even if it is slower and less reliable', () => {
    expect(
      ranked(byQuality, { b: { latencyMs: 1 }, a: { tier: 'official', latencyMs: 900, failureRate: 0.9 } }),
    ).to.deep.equal(['a', 'b']);
  });

  it('ranks the more reliable candidate of a tier first, then the quicker one', () => {
    const samples = {
      c: { failureRate: 0.1, latencyMs: 1 },
      b: { latencyMs: 200 },
      a: { latencyMs: 100 },
    };
    expect(ranked(byQuality, samples)).to.deep.equal(['a', 'b', 'c']);
  });

  it('has enough noise to draw between times that differ by half', () => {
    const [quick, slow] = [facts({ latencyMs: 100, failureRate: 0.04 }), facts({ latencyMs: 149 })];
    const apart =
      byQuality.score(sampleCandidate('a'), slow, ASKED) - byQuality.score(sampleCandidate('b'), quick, ASKED);
    expect(apart).to.be.within(0.9, byQuality.noise(quick));
  });

  it('has more noise the more the times of single answers differ', () => {
    const noise = (latencyDeviationMs: number) => byQuality.noise(facts({ latencyMs: 100, latencyDeviationMs }));
    expect(noise(80)).to.be.above(noise(10));
  });

  it('ranks an untried candidate first in its class, unless another call is already trying it', () => {
    expect(ranked(byQuality, { b: { latencyMs: 1 }, a: {} })).to.deep.equal(['a', 'b']);
    expect(ranked(byQuality, { b: { isBeingTried: true }, a: { latencyMs: 9_000 } })).to.deep.equal(['a', 'b']);
  });
});

describe('the strategy speed', () => {
  it('ranks the quickest candidate first, whatever its tier', () => {
    expect(ranked(bySpeed, { b: { tier: 'official', latencyMs: 300 }, a: { latencyMs: 200 } })).to.deep.equal([
      'a',
      'b',
    ]);
  });

  it('ranks candidates without any measurement first', () => {
    expect(ranked(bySpeed, { b: { latencyMs: 1 }, a: {} })).to.deep.equal(['a', 'b']);
  });

  it('never tries an unmeasured candidate with two calls at once', () => {
    expect(ranked(bySpeed, { b: { isBeingTried: true }, a: { latencyMs: 60_000 } })).to.deep.equal(['a', 'b']);
  });

  it('counts the time that a failed attempt wastes', () => {
    expect(ranked(bySpeed, { b: { latencyMs: 100, failureRate: 0.5 }, a: { latencyMs: 150 } })).to.deep.equal([
      'a',
      'b',
    ]);
  });
});

describe('every strategy', () => {
  it('has no noise before the first measurement: an untried candidate equals no other', () => {
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

  it("uses the model's own estimate if the call sets no limit", () => {
    const samples = {
      b: priced(1n, 100_000_000n, { estimatedMaxTokens: 4_000 }),
      a: priced(1n, 200_000_000n, { estimatedMaxTokens: 100 }),
    };
    expect(ranked(byCost, samples)).to.deep.equal(['a', 'b']);
  });

  it('uses the dearer price if the input is above its threshold', () => {
    const above = { ...samplePrice(900_000_000n, 1n), tokens: 500 };
    const samples = { b: { model: { price: samplePrice(1n, 1n, { above }) } }, a: priced(100_000_000n, 1n) };
    expect(ranked(byCost, samples, { request: sampleModelRequest({ inputTokensEstimate: 501 }) })[0]).to.equal('a');
    expect(ranked(byCost, samples, { request: sampleModelRequest({ inputTokensEstimate: 500 }) })[0]).to.equal('b');
  });

  it('expects the output tokens of recent answers, not all that the call allows', () => {
    const samples = { 'cheap-input': priced(100n, 900_000n), 'cheap-output': priced(1_000_000n, 100n) };
    const request = sampleModelRequest({ inputTokensEstimate: 1_000, maxOutputTokens: 8_000 });
    expect(ranked(byCost, samples, { request })[0]).to.equal('cheap-output');
    expect(ranked(byCost, samples, { request, outputTokens: 50 })[0]).to.equal('cheap-input');
    expect(ranked(byCost, samples, { request, outputTokens: 9_999_999 })[0]).to.equal('cheap-output');
  });

  it('prices the cached share of the input at the cache price', () => {
    const cached = { model: { price: samplePrice(1_000n, 0n, { cacheRead: 100n }) }, cacheReadShare: 0.9 };
    expect(ranked(byCost, { b: priced(500n, 0n), a: cached })).to.deep.equal(['a', 'b']);
    expect(ranked(byCost, { b: priced(500n, 0n), a: { ...cached, cacheReadShare: 0.1 } })).to.deep.equal(['b', 'a']);
  });

  it('treats equal prices as a tie', () => {
    expect(ranked(byCost, { a: {}, b: {} })).to.deep.equal(['a', 'b']);
    expect(ranked(byCost, { b: {}, a: {} })).to.deep.equal(['b', 'a']);
  });

  it('prices a session at each candidate as if it stayed there, whatever each has cached lately', () => {
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

  it('prices the tokens that sessions read from a cache at the cache price', () => {
    const samples = {
      'cheap-input': { model: { price: samplePrice(500n, 0n, { cacheRead: 400n }) } },
      'cheap-cache': { model: { price: samplePrice(1_000n, 0n, { cacheRead: 100n }) } },
    };
    expect(ranked(bySessionCost, samples, { sessionReadShare: 0.9 })[0]).to.equal('cheap-cache');
    expect(ranked(bySessionCost, samples, { sessionReadShare: 0.1 })[0]).to.equal('cheap-input');
  });

  it('expects no cache reads at an upstream that sessions never read from', () => {
    const price = (input: bigint) => ({ price: samplePrice(input, 0n, { cacheRead: input / 10n }) });
    const samples = {
      cheap: { model: price(900n), sessionReadShare: 0 },
      dear: { model: price(1_000n), sessionReadShare: 0.8 },
    };
    expect(ranked(bySessionCost, samples, { sessionReadShare: 0.8 })).to.deep.equal(['dear', 'cheap']);
  });
});
