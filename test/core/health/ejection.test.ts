import { expect } from 'chai';
import { EJECTION_RULES, Ejection } from '../../../core/health/ejection';

const SECOND = 1_000;

/** Fails every attempt from `fromMs` on, one each `everyMs`, until the upstream is ejected. Returns the time of the ejection. */
function failUntilOut(ejection: Ejection, fromMs: number, everyMs = SECOND): { atMs: number; outMs: number } {
  for (let atMs = fromMs; atMs < fromMs + 1_000 * everyMs; atMs += everyMs) {
    const outMs = ejection.failed(atMs, failureOf('one', atMs));
    if (outMs !== undefined) return { atMs, outMs };
  }
  throw new Error('never ejected');
}

const failureOf = (accountId: string, startedMs: number, isDial = false) => ({ accountId, startedMs, isDial });

describe('the ejection of an upstream', () => {
  let ejection: Ejection;
  const fail = (nowMs: number, startedMs = nowMs) => ejection.failed(nowMs, failureOf('one', startedMs));
  beforeEach(() => {
    ejection = new Ejection(EJECTION_RULES);
  });

  it('begins with the fifth failure in a row, and lasts 30 s', () => {
    for (let attempt = 1; attempt < 5; attempt += 1) expect(fail(attempt)).to.equal(undefined);
    expect(ejection.state(5)).to.equal('in');
    expect(fail(5)).to.equal(30_000);
    expect(ejection.state(6)).to.equal('out');
    expect(ejection.state(30_004)).to.equal('out');
    expect(ejection.state(30_005)).to.equal('due');
  });

  describe('the ejection of an upstream by failures of few accounts', () => {
    const note = (accountId: string, hasFailed: boolean, nowMs: number) =>
      ejection.noteAccount({ accountId, hasFailed }, nowMs);
    const failsFor = (accountId: string, nowMs: number, isDial = false) => {
      note(accountId, true, nowMs);
      return ejection.failed(nowMs, failureOf(accountId, nowMs, isDial));
    };

    it('does not begin if another account got an answer within the last minute, and begins after that minute', () => {
      note('answered', false, 0);
      for (let nowMs = 1; nowMs <= 50; nowMs += 1) expect(failsFor('one', nowMs)).to.equal(undefined);
      expect(failsFor('one', 60_000)).to.equal(30_000);
    });

    it('begins when calls of a third account fail too', () => {
      note('answered', false, 0);
      for (let nowMs = 1; nowMs <= 5; nowMs += 1) failsFor('one', nowMs);
      expect(failsFor('two', 6)).to.equal(undefined);
      expect(failsFor('three', 7)).to.equal(30_000);
    });

    it('begins if the last attempt of every calling account failed, even if other nodes made the attempts', () => {
      for (let nowMs = 1; nowMs <= 5; nowMs += 1) note('elsewhere', nowMs % 2 === 1, nowMs);
      for (let nowMs = 6; nowMs <= 9; nowMs += 1) expect(failsFor('one', nowMs)).to.equal(undefined);
      expect(failsFor('one', 10)).to.equal(30_000);
    });

    it('begins after five failed connections of one account, but not after four of them and other failures', () => {
      note('answered', false, 0);
      for (let nowMs = 1; nowMs <= 4; nowMs += 1) failsFor('one', nowMs, true);
      for (let nowMs = 5; nowMs <= 9; nowMs += 1) expect(failsFor('one', nowMs)).to.equal(undefined);
      expect(failsFor('one', 10, true)).to.equal(30_000);
    });
  });

  it('begins when four of the last twenty attempts failed', () => {
    for (let attempt = 1; attempt <= 19; attempt += 1) {
      if (attempt % 6 === 0) expect(fail(attempt * SECOND)).to.equal(undefined);
      else ejection.succeeded(attempt * SECOND, attempt * SECOND);
    }
    expect(fail(20 * SECOND)).to.equal(30_000);
  });

  it('allows one probe of the upstream at a time once the ejection time is over', () => {
    const { atMs, outMs } = failUntilOut(ejection, 0);
    ejection.probe(atMs + outMs);
    expect(ejection.state(atMs + outMs)).to.equal('probing');
    expect(ejection.state(atMs + outMs + 29 * SECOND)).to.equal('probing');
    expect(ejection.state(atMs + outMs + 30 * SECOND)).to.equal('due');
  });

  it('is not ended by the answer to a call that was sent before the ejection', () => {
    const { atMs } = failUntilOut(ejection, 0);
    expect(ejection.succeeded(atMs - 1, atMs + SECOND)).to.equal(false);
    expect(ejection.state(atMs + SECOND)).to.equal('out');
  });

  it('is neither prolonged nor restarted by late failures of calls that were sent before the ejection', () => {
    const { atMs, outMs } = failUntilOut(ejection, 0);
    const dueMs = atMs + outMs;
    expect(fail(dueMs, atMs - 1)).to.equal(undefined);
    expect(ejection.state(dueMs)).to.equal('due');
    ejection.succeeded(dueMs, dueMs);
    for (let late = 1; late < 9; late += 1) expect(fail(dueMs + late, atMs - 1)).to.equal(undefined);
    expect(ejection.state(dueMs + 9)).to.equal('in');
  });

  it('lasts longer each time it begins soon after an earlier ejection', () => {
    const lengths: number[] = [];
    let nowMs = 0;
    for (let time = 0; time < 3; time += 1) {
      const { atMs, outMs } = failUntilOut(ejection, nowMs, 10);
      lengths.push(outMs);
      nowMs = atMs + outMs;
      ejection.succeeded(nowMs, nowMs);
    }
    expect(lengths).to.deep.equal([30_000, 60_000, 90_000]);
  });

  it('allows fewer probes during a long outage, down to one every five minutes', () => {
    let { atMs, outMs } = failUntilOut(ejection, 0);
    const lengths = [outMs];
    for (let probe = 0; probe < 20; probe += 1) {
      atMs += outMs;
      outMs = fail(atMs) ?? 0;
      lengths.push(outMs);
    }
    expect(lengths.slice(0, 3)).to.deep.equal([30_000, 30_000, 30_000]);
    expect([...lengths].sort((one, two) => one - two)).to.deep.equal(lengths);
    expect(lengths.at(-1)).to.equal(300_000);
  });
});
