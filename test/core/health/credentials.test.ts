import { expect } from 'chai';
import { askedWith } from '../../../core/catalog/upstream';
import { chooseCredential } from '../../../core/health/credentials';
import { type HealthEvent, UpstreamHealth } from '../../../core/health/health';
import { FAILED, sampleCandidate, sampleCredential } from '../../support/catalog-samples';

const first = sampleCredential('first-secret', { name: 'first' });
const second = sampleCredential('second-secret', { name: 'second' });
const candidate = sampleCandidate('acme', { upstream: { credential: first, credentials: [first, second] } });
const other = { ...candidate, upstream: askedWith(candidate.upstream, second) };
const alone = sampleCandidate('alone', { upstream: { credential: first } });

describe("the health of an upstream's credentials", () => {
  let nowMs: number;
  let health: UpstreamHealth;
  beforeEach(() => {
    nowMs = 1_000_000;
    health = new UpstreamHealth({ now: () => nowMs });
  });

  const refuse = (asked: typeof candidate, status: number, retryAfterMs?: number) =>
    health.failed(asked, { outcome: 'status', status, verdict: 'next', retryAfterMs }, FAILED);
  const restMs = (name: string, upstream = 'acme') => health.upstream(upstream).credential(name).restsUntilMs - nowMs;
  const chosen = () => {
    const names = Array.from(
      { length: 50 },
      () => chooseCredential(candidate.upstream, health, { session: undefined }).name,
    );
    return [...new Set(names)].sort();
  };

  for (const [retryAfterMs, expected] of [
    [undefined, 10_000],
    [0, 1_000],
    [30_000, 30_000],
    [86_400_000, 3_600_000],
  ] as const)
    it(`pauses a rate-limited credential for ${expected} ms if Retry-After is ${retryAfterMs}`, () => {
      expect(chosen()).to.deep.equal(['first', 'second']);
      expect(refuse(candidate, 429, retryAfterMs)).to.deep.equal({
        credential: 'first',
        status: 429,
        restsForMs: expected,
      });
      expect(restMs('first')).to.equal(expected);
      expect(chosen()).to.deep.equal(['second']);
      nowMs += expected;
      expect(chosen()).to.deep.equal(['first', 'second']);
    });

  it('doubles the pause of a credential that is refused again, up to 15 minutes, until the upstream answers with it', () => {
    for (const expected of [60_000, 120_000, 240_000, 480_000, 900_000, 900_000]) {
      refuse(candidate, 401);
      expect(restMs('first')).to.equal(expected);
      nowMs += expected + 1;
    }
    health.answered(candidate, { accountId: 'one', ms: 0, stream: true });
    refuse(candidate, 401);
    expect(restMs('first')).to.equal(60_000);
  });

  it('does not count a refused credential as a failure of the upstream while another credential is usable', () => {
    for (let call = 0; call < 10; call += 1) refuse(candidate, 429);
    expect(health.hasFailedRecently('acme')).to.equal(false);
    expect(health.upstream('acme').restsUntilMs).to.equal(0);
    refuse(other, 429, 5_000);
    expect(health.hasFailedRecently('acme')).to.equal(true);
    expect(health.upstream('acme').restsUntilMs - nowMs, 'until the first of them is free').to.equal(5_000);
    expect(chosen(), 'the one that is free first').to.deep.equal(['second']);
  });

  it("keeps an upstream's only credential in use after a refusal, and logs a warning", () => {
    expect(refuse(alone, 401)).to.deep.equal({ credential: 'first', status: 401, restsForMs: undefined });
    expect(chooseCredential(alone.upstream, health, { session: undefined })).to.equal(alone.upstream.credential);
    expect(health.upstream('alone').restsUntilMs).to.equal(0);
    refuse(alone, 429, 7_000);
    expect(health.upstream('alone').restsUntilMs - nowMs).to.equal(7_000);
  });

  it('makes a new secret under the same name usable at once after a refusal', () => {
    refuse(candidate, 401);
    const renewed = sampleCredential('new-secret', { name: 'first' });
    const upstream = { ...candidate.upstream, credential: renewed, credentials: [renewed, second] };
    const names = Array.from({ length: 50 }, () => chooseCredential(upstream, health, { session: undefined }).name);
    expect(names).to.include('first');
  });

  it('pauses a refused credential on other nodes too, even on a node that starts later', () => {
    const news: HealthEvent[] = [];
    health.onEvent((each) => news.push(each));
    refuse(candidate, 429, 30_000);
    nowMs += 10_000;
    for (const told of [news, health.standing()]) {
      const node = new UpstreamHealth({ now: () => nowMs });
      for (const each of told) node.apply(each);
      expect(node.upstream('acme').credential('first').restsUntilMs - nowMs).to.be.within(20_000, 30_000);
    }
  });
});
