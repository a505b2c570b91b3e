import { expect } from 'chai';
import { type HealthEvent, UpstreamHealth } from '../../../core/health/health';
import { FAILED, sampleCandidate } from '../../support/catalog-samples';

const candidate = sampleCandidate('acme');
const BROKEN = { outcome: 'reset', status: undefined, verdict: 'next', retryAfterMs: undefined } as const;

describe('the health of upstreams', () => {
  let nowMs: number;
  let health: UpstreamHealth;
  beforeEach(() => {
    nowMs = 1_000_000;
    health = new UpstreamHealth({ now: () => nowMs });
  });
  const gauge = (stream = true) => {
    const looked = health.gauge(candidate);
    looked.look(stream ? 'stream' : 'whole', nowMs);
    return looked;
  };
  const answer = (ms: number, stream = true) => health.answered(candidate, { accountId: 'one', ms, stream });
  const fail = (more: object = {}) => health.failed(candidate, { ...BROKEN, ...more }, FAILED);

  it('has a response time that follows changes of the observed ones', () => {
    for (let call = 0; call < 30; call += 1) answer(100);
    expect(gauge().latencyMs).to.be.closeTo(100, 1);
    for (let call = 0; call < 15; call += 1) answer(400);
    expect(gauge().latencyMs).to.be.within(360, 400);
  });

  it('keeps the first-token times of streams separate from the times of whole answers', () => {
    answer(9_000, false);
    expect(gauge(true)).to.include({ isUntried: true, latencyMs: undefined });
    expect(gauge(false).latencyMs).to.equal(9_000);
  });

  it('has a failure rate that falls over time while there are no calls', () => {
    fail();
    expect(gauge().failureRate).to.be.closeTo(0.1, 1e-9);
    nowMs += 15_000;
    expect(gauge().failureRate).to.be.closeTo(0.05, 1e-9);
  });

  for (const [what, more] of [
    ['a call that is wrong in itself', { outcome: 'status', status: 400, verdict: 'relay' }],
    ['a call that is too long', { outcome: 'status', status: 400, verdict: 'larger-context' }],
    ['a client that left', { outcome: 'cancelled' }],
    ['a model that is not there', { outcome: 'status', status: 404 }],
  ] as const) {
    it(`does not count ${what} as a failure of the upstream`, () => {
      for (let call = 0; call < 50; call += 1) fail(more);
      expect(gauge()).to.include({ failureRate: 0, state: 'in' });
      expect(health.hasFailedRecently('acme')).to.equal(false);
    });
  }

  for (const [what, more, attempt] of [
    ['a fault of an adapter', { outcome: 'adapter_fault' }, FAILED],
    ['a call that must not eject', {}, { ...FAILED, mayEject: false }],
  ] as const) {
    it(`ignores ${what}; if it ends a probe, another call may probe the upstream`, () => {
      const failing = () => health.failed(candidate, { ...BROKEN, ...more }, attempt);
      for (let call = 0; call < 50; call += 1) failing();
      expect(gauge().state).to.equal('in');
      for (let call = 0; call < 5; call += 1) fail();
      nowMs += 30_000;
      health.asked(gauge());
      failing();
      expect(gauge().state).to.equal('due');
    });
  }

  describe('the health of an ejected upstream', () => {
    const news: HealthEvent[] = [];
    beforeEach(() => {
      news.length = 0;
      health.onEvent((each) => news.push(each));
      answer(100);
      for (let call = 0; call < 5; call += 1) fail();
    });

    it('shows no old observations once the ejection time is over, and lets only one call probe the upstream', () => {
      expect(gauge().mayBeAsked).to.equal(false);
      nowMs += 30_000;
      expect(gauge()).to.include({ mayBeAsked: true, isUntried: true, failureRate: 0 });
      health.asked(gauge());
      expect(gauge().mayBeAsked).to.equal(false);
      expect(news.at(-1)).to.deep.equal({ upstream: 'acme', kind: 'probing' });
    });

    it('starts again without old observations when the upstream answers the probe', () => {
      nowMs += 30_000;
      health.asked(gauge());
      nowMs += 250;
      answer(250);
      expect(gauge()).to.include({ mayBeAsked: true, latencyMs: 250, failureRate: 0 });
      expect(news.at(-1)).to.deep.equal({ upstream: 'acme', kind: 'back' });
    });

    it('allows another probe on every node when the first one was refused before it was sent', () => {
      const other = new UpstreamHealth({ now: () => nowMs });
      health.onEvent((each) => other.apply(each));
      other.apply({ upstream: 'acme', kind: 'out', ejection: 'of another node', forMs: 30_000 });
      nowMs += 30_000;
      const giveBack = health.asked(gauge());
      expect(other.upstream('acme').ejection.state(nowMs)).to.equal('probing');
      giveBack();
      expect(gauge()).to.include({ state: 'due', mayBeAsked: true, isUntried: true });
      expect(other.upstream('acme').ejection.state(nowMs)).to.equal('due');
    });

    it('counts the answer to a running probe, even if another node reports the old ejection during the probe', () => {
      nowMs += 30_000;
      const standing = health.standing();
      health.asked(gauge());
      nowMs += 100;
      for (const each of standing) health.apply(each);
      expect(gauge().state).to.equal('probing');
      answer(100);
      expect(gauge().state).to.equal('in');
    });

    it('does not become worse if a new node reports the ejection after an operator has ended it', () => {
      const other = new UpstreamHealth({ now: () => nowMs });
      for (const each of news) other.apply(each);
      const late = other.standing();
      health.enable('acme');
      for (const each of late) health.apply(each);
      expect(gauge()).to.include({ state: 'in', mayBeAsked: true });
      for (let call = 0; call < 5; call += 1) fail();
      expect(gauge().state, 'failing again').to.equal('out');
    });
  });

  it('is shared with other nodes, which apply each observation once', () => {
    const other = new UpstreamHealth({ now: () => nowMs });
    answer(100);
    answer(300);
    fail();
    const observed = JSON.parse(JSON.stringify(health.takeObserved()));
    for (const each of observed) other.applyObserved(each);
    const there = other.gauge(candidate);
    there.look('stream', nowMs);
    expect(there.latencyMs).to.equal(200);
    expect(there.failureRate).to.be.within(0.05, 0.15);
    expect(health.takeObserved()).to.deep.equal([]);
    expect(other.takeObserved(), 'what was heard is not told again').to.deep.equal([]);
  });
});
