import { expect } from 'chai';
import { Pauses } from '../../../core/wire/pauses';

describe("the recorded end of an upstream's body", () => {
  let pauses: Pauses;

  beforeEach(() => {
    pauses = new Pauses();
  });

  it('is the start of the pause if a long one comes before it', () => {
    pauses.begin(1_000);
    pauses.end(41_000);
    expect(pauses.endedSince(42_000)).to.equal(1_000);
  });

  it('is its real time after 5 s of reading', () => {
    pauses.begin(1_000);
    pauses.end(41_000);
    expect(pauses.endedSince(46_001)).to.equal(46_001);
  });

  it('does not depend on a client that takes the rest slowly, because only reading counts', () => {
    pauses.begin(1_000);
    pauses.end(41_000);
    for (let atMs = 41_100; atMs < 80_000; atMs += 2_100) {
      pauses.begin(atMs);
      pauses.end(atMs + 2_000);
    }
    expect(pauses.endedSince(81_000)).to.equal(1_000);
  });

  it('is its real time if only a short pause comes before it', () => {
    pauses.begin(1_000);
    pauses.end(1_500);
    expect(pauses.endedSince(1_600)).to.equal(1_600);
  });

  it('is its real time if it arrives while nothing is read', () => {
    pauses.begin(1_000);
    expect(pauses.endedSince(9_000)).to.equal(9_000);
  });
});
