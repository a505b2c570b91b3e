import { expect } from 'chai';
import { Pauses } from '../../../core/wire/pauses';

describe("the time that pauses of an upstream's body are given", () => {
  let pauses: Pauses;

  beforeEach(() => {
    pauses = new Pauses();
  });

  it('dates an end that follows a long pause to the start of the pause', () => {
    pauses.begin(1_000);
    pauses.end(41_000);
    expect(pauses.endedSince(42_000)).to.equal(1_000);
  });

  it('dates an end to its own time after 5 s of reading', () => {
    pauses.begin(1_000);
    pauses.end(41_000);
    expect(pauses.endedSince(46_001)).to.equal(46_001);
  });

  it('counts only reading: a client that takes the rest slowly changes nothing', () => {
    pauses.begin(1_000);
    pauses.end(41_000);
    for (let atMs = 41_100; atMs < 80_000; atMs += 2_100) {
      pauses.begin(atMs);
      pauses.end(atMs + 2_000);
    }
    expect(pauses.endedSince(81_000)).to.equal(1_000);
  });

  it('does not date an end to a short pause', () => {
    pauses.begin(1_000);
    pauses.end(1_500);
    expect(pauses.endedSince(1_600)).to.equal(1_600);
  });

  it('dates an end that arrives while nothing is read to its own time', () => {
    pauses.begin(1_000);
    expect(pauses.endedSince(9_000)).to.equal(9_000);
  });
});
