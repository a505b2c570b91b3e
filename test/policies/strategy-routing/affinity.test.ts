import { expect } from 'chai';
import { sessionHash } from '../../../core/catalog/affinity';
import type { Candidate, Tier } from '../../../core/catalog/catalog';
import { usageOf } from '../../../core/catalog/usage';
import { UpstreamHealth } from '../../../core/health/health';
import { type CandidateSet, choose, openCandidateSet } from '../../../policies/strategy-routing/choose';
import { bySessionCost, bySessionQuality, bySpeed, type Strategy } from '../../../policies/strategy-routing/strategies';
import { FAILED, sampleCandidate, samplePrice } from '../../support/catalog-samples';
import { sampleModelRequest } from '../../support/request-sample';

const BROKEN = { outcome: 'reset', status: undefined, verdict: 'next', retryAfterMs: undefined } as const;
const CALLER = { accountId: '0f0e0d0c-0b0a-4908-8706-050403020100', keyId: '6a1f0c3e-57b2-4f0e-9f55-2f4f3f7f8a10' };
const SESSIONS = Array.from({ length: 20_000 }, (_, index) => `session-${index}`);

interface Sample {
  readonly weight?: number;
  readonly tier?: Tier;
}

function open(samples: Readonly<Record<string, Sample>>, health = new UpstreamHealth()) {
  const candidates = Object.entries(samples).map(([name, upstream]) => sampleCandidate(name, { upstream }));
  return { set: openCandidateSet(candidates, health), health, candidates };
}

/** Returns the names of the candidates for a session, the one that serves it first. */
function orderOf(
  set: CandidateSet,
  session: string,
  { strategy = bySessionQuality, kind = 'stream', nowMs = 0 } = {},
): string[] {
  const asked = { request: sampleModelRequest(), outputTokens: undefined, inputShare: 1, sessionReadShare: 0.8 };
  const input = {
    strategy: strategy as Strategy,
    asked,
    kind: kind as 'stream',
    nowMs,
    session: sessionHash(CALLER, session),
  };
  return choose(set, input).order.map((index) => set.candidates[index]?.upstream.name ?? '');
}

const homesOf = (set: CandidateSet) => SESSIONS.map((session) => orderOf(set, session)[0] as string);

describe('the hash of a session', () => {
  it('is the same for repeated calls of one key, and different for another account, key or session', () => {
    const hashes = [
      sessionHash(CALLER, 's'),
      sessionHash(CALLER, 't'),
      sessionHash({ ...CALLER, keyId: 'k' }, 's'),
      sessionHash({ ...CALLER, accountId: 'a' }, 's'),
      sessionHash(CALLER, 's'),
    ];
    expect(new Set(hashes).size).to.equal(4);
    expect(hashes[4]).to.equal(hashes[0]);
  });
});

describe('session affinity', () => {
  for (const weights of [[1, 1], [3, 1], [1, 2, 5], [100, 100], Array.from({ length: 12 }, () => 1)]) {
    it(`distributes sessions over upstreams of weights ${weights.join(', ')}`, () => {
      const { set } = open(Object.fromEntries(weights.map((weight, index) => [`u${index}`, { weight }])));
      const homes = homesOf(set);
      const sum = weights.reduce((total, weight) => total + weight, 0);
      for (const [index, weight] of weights.entries()) {
        const share = homes.filter((home) => home === `u${index}`).length / SESSIONS.length;
        const expected = weight / sum;
        expect(share).to.be.closeTo(expected, 5 * Math.sqrt((expected * (1 - expected)) / SESSIONS.length));
      }
    });
  }

  const four = { a: {}, b: { weight: 2 }, c: {}, d: { weight: 3 } };

  it('moves only the sessions of an ejected upstream, each to its next candidate, and later all of them back', () => {
    const { set, health, candidates } = open(four, new UpstreamHealth({ now: () => 0 }));
    const before = SESSIONS.map((session) => orderOf(set, session));
    const [, ejected] = candidates;
    if (ejected === undefined) throw new Error('there is no second candidate');
    for (let call = 0; call < 5; call += 1) health.failed(ejected, BROKEN, FAILED);
    for (const [index, session] of SESSIONS.entries())
      expect(orderOf(set, session)).to.deep.equal(before[index]?.filter((name) => name !== 'b'));
    health.enable('b');
    expect(SESSIONS.map((session) => orderOf(set, session))).to.deep.equal(before);
  });

  it('keeps a session on an upstream that fails once or is slow, and moves it when it fails often', () => {
    const { set, health, candidates } = open({ a: {}, b: {} }, new UpstreamHealth({ now: () => 0 }));
    const [a, b] = candidates;
    if (a === undefined || b === undefined) throw new Error('there are two candidates');
    const session = SESSIONS.find((each) => orderOf(set, each)[0] === 'a') ?? '';
    health.answered(a, { accountId: 'one', ms: 5_000, stream: true });
    health.answered(b, { accountId: 'one', ms: 10, stream: true });
    expect(orderOf(set, session)).to.deep.equal(['a', 'b']);
    health.failed(a, BROKEN, FAILED);
    expect(orderOf(set, session)).to.deep.equal(['a', 'b']);
    health.failed(a, BROKEN, FAILED);
    expect(orderOf(set, session)).to.deep.equal(['b', 'a']);
  });

  it('decides, under the strategy `speed`, only between upstreams whose times differ by less than a fifth', () => {
    const { set, health, candidates } = open({ a: {}, b: {}, slow: {} }, new UpstreamHealth({ now: () => 0 }));
    for (const [index, ms] of [100, 119, 200].entries()) {
      const candidate = candidates[index];
      for (let call = 0; call < 50 && candidate !== undefined; call += 1)
        health.answered(candidate, { accountId: 'one', ms, stream: true });
    }
    const firsts = SESSIONS.slice(0, 500).map((session) => orderOf(set, session, { strategy: bySpeed })[0]);
    expect(new Set(firsts)).to.deep.equal(new Set(['a', 'b']));
  });

  it('prefers, under `cost`, an upstream that serves sessions from its cache to a cheaper upstream that does not', () => {
    const health = new UpstreamHealth({ now: () => 0 });
    const [cheap, dear] = [
      ['cheap', 900n],
      ['dear', 1_000n],
    ].map(([name, input]) =>
      sampleCandidate(String(name), { model: { price: samplePrice(BigInt(input ?? 0), 0n, { cacheRead: 90n }) } }),
    ) as [Candidate, Candidate];
    const set = openCandidateSet([cheap, dear], health);
    const used = (candidate: Candidate, session: string | undefined, cacheRead: number) =>
      health.used('m', candidate, usageOf({ input: 1_000 - cacheRead, cacheRead, output: 1 }), {
        ...sampleModelRequest(),
        session,
      });
    const first = () => {
      const { outputTokens, inputShare, sessionReadShare } = health.use('m');
      const asked = { request: sampleModelRequest(), outputTokens, inputShare, sessionReadShare };
      const { order } = choose(set, { strategy: bySessionCost, asked, kind: 'whole', nowMs: 0, session: 1 });
      return set.candidates[order[0] ?? 0];
    };
    expect(first()).to.equal(cheap);
    for (let call = 0; call < 40; call += 1) used(dear, undefined, 900);
    expect(first(), 'calls without a session say nothing').to.equal(cheap);
    for (let call = 0; call < 60; call += 1) used(cheap, 's', 0);
    for (let call = 0; call < 40; call += 1) used(dear, 's', 900);
    expect(first()).to.equal(dear);
    for (let call = 0; call < 40; call += 1) used(cheap, 's', 900);
    expect(first(), 'its cache answers again').to.equal(cheap);
  });
});
