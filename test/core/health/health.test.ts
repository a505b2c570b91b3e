import { expect } from 'chai';
import { type HealthEvent, UpstreamHealth } from '../../../core/health/health';
import { sampleCandidate } from '../../support/catalog-samples';

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
  const answer = (ms: number, stream = true) => health.answered(candidate, { ms, stream });
  const fail = (more: object = {}) => health.failed(candidate, { ...BROKEN, ...more });

  it('knows nothing at first', () => {
    expect(health.facts('acme')).to.deep.equal({ firstTokenMs: undefined, successRate: 1 });
    expect(gauge()).to.include({ isUntried: true, latencyMs: undefined, failureRate: 0 });
    expect(health.hasFailedRecently('acme')).to.equal(false);
  });

  it('follows the times it sees', () => {
    for (let call = 0; call < 30; call += 1) answer(100);
    expect(gauge().latencyMs).to.be.closeTo(100, 1);
    for (let call = 0; call < 15; call += 1) answer(400);
    expect(gauge().latencyMs).to.be.within(360, 400);
  });

  it('believes the newest more after a silence', () => {
    for (let call = 0; call < 30; call += 1) answer(100);
    nowMs += 60_000;
    answer(500);
    expect(gauge().latencyMs).to.be.closeTo(300, 1);
  });

  it('never compares the first token of a stream with a whole answer', () => {
    answer(9_000, false);
    expect(gauge(true)).to.include({ isUntried: true, latencyMs: undefined });
    expect(gauge(false).latencyMs).to.equal(9_000);
  });

  it('takes for a model it has not seen what it has seen of the upstream', () => {
    answer(250);
    const other = health.gauge(sampleCandidate('acme', { model: { name: 'other' } }));
    other.look('stream', nowMs);
    expect(other.latencyMs).to.equal(250);
  });

  it('forgives failures while nothing is seen', () => {
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
    it(`does not count ${what}`, () => {
      for (let call = 0; call < 50; call += 1) fail(more);
      expect(gauge()).to.include({ failureRate: 0, state: 'in' });
      expect(health.hasFailedRecently('acme')).to.equal(false);
    });
  }

  it('says for half a minute that an upstream has failed, unless it has answered since', () => {
    fail();
    expect(health.hasFailedRecently('acme')).to.equal(true);
    answer(1);
    expect(health.hasFailedRecently('acme')).to.equal(false);
    fail();
    nowMs += 31_000;
    expect(health.hasFailedRecently('acme')).to.equal(false);
  });

  it('keeps an upstream that asked for time out of first place until then', () => {
    fail({ outcome: 'status', status: 429, retryAfterMs: 7_000 });
    expect(gauge().isResting).to.equal(true);
    nowMs += 7_000;
    expect(gauge().isResting).to.equal(false);
  });

  it('has one call find out about an upstream, and forgets it when that call is not heard of', () => {
    health.asked(gauge());
    expect(gauge()).to.include({ isUntried: false, isBeingTried: true });
    nowMs += 10_000;
    expect(gauge()).to.include({ isUntried: true, isBeingTried: false });
  });

  describe('of one that is ejected', () => {
    const news: HealthEvent[] = [];
    beforeEach(() => {
      news.length = 0;
      health.onEvent((each) => news.push(each));
      answer(100);
      for (let call = 0; call < 5; call += 1) fail();
    });

    it('tells the other nodes at once', () => {
      expect(news).to.deep.equal([{ upstream: 'acme', is: 'out', forMs: 30_000 }]);
      expect(health.standing()).to.deep.equal(news);
    });

    it('knows nothing any more when a call may try it, and has one call do so', () => {
      expect(gauge().mayBeAsked).to.equal(false);
      nowMs += 30_000;
      expect(gauge()).to.include({ mayBeAsked: true, isUntried: true, failureRate: 0 });
      health.asked(gauge());
      expect(gauge().mayBeAsked).to.equal(false);
      expect(news.at(-1)).to.deep.equal({ upstream: 'acme', is: 'probing' });
    });

    it('begins anew when that call is answered', () => {
      nowMs += 30_000;
      health.asked(gauge());
      nowMs += 250;
      answer(250);
      expect(gauge()).to.include({ mayBeAsked: true, latencyMs: 250, failureRate: 0 });
      expect(news.at(-1)).to.deep.equal({ upstream: 'acme', is: 'back' });
    });

    it('asks it again when that call is wrong in itself: whoever says so lives', () => {
      nowMs += 30_000;
      health.asked(gauge());
      fail({ outcome: 'status', status: 400, verdict: 'relay' });
      expect(gauge()).to.include({ state: 'in', mayBeAsked: true });
    });

    it('lets another call try when the client of the first has left', () => {
      nowMs += 30_000;
      health.asked(gauge());
      fail({ outcome: 'cancelled' });
      expect(gauge()).to.include({ state: 'due', mayBeAsked: true });
    });

    it('lets another call try when the first was refused before it asked, on every node', () => {
      const other = new UpstreamHealth({ now: () => nowMs });
      health.onEvent((each) => other.apply(each));
      other.apply({ upstream: 'acme', is: 'out', forMs: 30_000 });
      nowMs += 30_000;
      const giveBack = health.asked(gauge());
      expect(other.upstream('acme').ejection.state(nowMs)).to.equal('probing');
      giveBack();
      expect(gauge()).to.include({ state: 'due', mayBeAsked: true, isUntried: true });
      expect(other.upstream('acme').ejection.state(nowMs)).to.equal('due');
    });

    it('a probe goes on, and its answer counts, while other nodes tell a new one that it is out', () => {
      nowMs += 30_000;
      const standing = health.standing();
      health.asked(gauge());
      nowMs += 100;
      for (const each of standing) health.apply(each);
      expect(gauge().state).to.equal('probing');
      answer(100);
      expect(gauge().state).to.equal('in');
    });

    it('another node leaves it out too, and asks it again when it is back', () => {
      const other = new UpstreamHealth({ now: () => nowMs });
      for (const each of news) other.apply(each);
      const there = other.gauge(candidate);
      there.look('stream', nowMs);
      expect(there.state).to.equal('out');
      other.apply({ upstream: 'acme', is: 'back' });
      there.look('stream', nowMs);
      expect(there.state).to.equal('in');
    });
  });

  it('another node learns what was observed, each observation once', () => {
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

  it('an operator takes an upstream out and brings it back as if nothing had been', () => {
    for (let call = 0; call < 5; call += 1) fail();
    health.disable('acme');
    expect(gauge().upstream.isDisabledByOperator).to.equal(true);
    health.enable('acme');
    expect(gauge()).to.include({ state: 'in', failureRate: 0 });
  });
});
