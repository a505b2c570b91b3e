import { expect } from 'chai';
import { Pauses } from '../../../core/wire/pauses';

describe('the pauses in reading from an upstream', () => {
  let nowMs: number;
  let pauses: Pauses;
  beforeEach(() => {
    nowMs = 1_000;
    pauses = new Pauses(() => nowMs);
  });

  function pause(ms: number, readMs = 0): void {
    pauses.begin();
    nowMs += ms;
    pauses.end();
    nowMs += readMs;
  }

  it('count as long for a minute after one of more than a second', () => {
    pause(1_001, 59_000);
    expect(pauses.wasLong).to.equal(true);
    nowMs += 1_000;
    expect(pauses.wasLong).to.equal(false);
  });

  it('count as long while one of more than a second lasts', () => {
    pauses.begin();
    nowMs += 1_001;
    expect([pauses.wasLong, pauses.totalMs]).to.deep.equal([true, 1_001]);
  });

  it('do not count as long if each lasted a second at most', () => {
    for (let each = 0; each < 100; each += 1) pause(1_000);
    expect([pauses.wasLong, pauses.totalMs]).to.deep.equal([false, 100_000]);
  });

  it('count as long for a client that then reads slowly, because the clock runs only while the gateway reads', () => {
    pause(5_000);
    for (let each = 0; each < 500; each += 1) pause(900, 100);
    expect(pauses.wasLong).to.equal(true);
  });

  it("end with the upstream's body, even if the client reads the rest much later", () => {
    pause(5_000, 1_000);
    pauses.stop();
    nowMs += 600_000;
    expect([pauses.wasLong, pauses.totalMs]).to.deep.equal([true, 5_000]);
  });
});
