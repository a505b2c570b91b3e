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

  it('are classified as long for one minute after a pause of more than one second', () => {
    pause(1_001, 59_000);
    expect(pauses.wasLong).to.equal(true);
    nowMs += 1_000;
    expect(pauses.wasLong).to.equal(false);
  });

  it('are classified as long while a pause of more than one second lasts', () => {
    pauses.begin();
    nowMs += 1_001;
    expect([pauses.wasLong, pauses.totalMs]).to.deep.equal([true, 1_001]);
  });

  it('are not classified as long if each pause lasted one second at most', () => {
    for (let each = 0; each < 100; each += 1) pause(1_000);
    expect([pauses.wasLong, pauses.totalMs]).to.deep.equal([false, 100_000]);
  });

  it('are still classified as long after many short pauses, because the minute counts only time spent reading', () => {
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
