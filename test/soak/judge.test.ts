import { expect } from 'chai';
import { judge, MEASURES, type Sample, slopePerHour, tableOfSoak } from './judge';

const FLAT = { rssMiB: 200, heapMiB: 80, descriptors: 60, lagMs: 12, outboxSeconds: 0, series: 400, driftUsd: 0 };

/** One hour of samples, each 15 s after the one before. */
const hourOf = (of: (hours: number) => Partial<Sample>): readonly Sample[] =>
  Array.from({ length: 241 }, (_, at) => ({ hours: at / 240, ...FLAT, ...of(at / 240) }));

const growing = (samples: readonly Sample[]) => judge(samples).flatMap((each) => (each.grows ? [each.measure] : []));

describe('the judgement of a soak test', () => {
  it('finds the slope of a line through noise that averages out', () => {
    const noise = [1, -1, -1, 1];
    const points = Array.from({ length: 40 }, (_, at) => ({
      hours: at / 10,
      value: 5 * (at / 10) + (noise[at % 4] ?? 0),
    }));
    expect(slopePerHour(points)).to.be.closeTo(5, 0.01);
  });

  it('finds no slope for one sample or none', () => {
    expect(slopePerHour([{ hours: 1, value: 7 }])).to.equal(0);
    expect(slopePerHour([])).to.equal(0);
  });

  it('accepts a measure that rises only in the first fifth', () => {
    expect(growing(hourOf((hours) => ({ rssMiB: hours < 0.2 ? 100 : 400 })))).to.deep.equal([]);
  });

  it('reports, by name, only the measure that rises above its bound after the first fifth', () => {
    const risingBy = (rise: number) => hourOf((hours) => ({ descriptors: 60 + (rise / 0.8) * hours }));
    const { mostGrowth } = MEASURES.descriptors;
    expect(growing(risingBy(mostGrowth + 1))).to.deep.equal(['descriptors']);
    expect(growing(risingBy(mostGrowth - 1))).to.deep.equal([]);
  });

  it('judges a measure only if the run is long enough, and says how long that is', () => {
    const steep = (minutes: number) => hourOf((hours) => ({ series: 400 + 4_000 * hours })).slice(0, 4 * minutes + 1);
    expect(growing(steep(1))).to.deep.equal([]);
    expect(tableOfSoak(steep(1), judge(steep(1)), 0)).to.match(/series of \/metrics.*not judged \(needs 20 minutes\)/);
    expect(growing(steep(20))).to.deep.equal(['series']);
  });

  it('accepts a falling measure', () => {
    expect(growing(hourOf((hours) => ({ series: 1_000 - 500 * hours })))).to.deep.equal([]);
  });

  it('shows the start, the quarters and the end, and a drift that is not 0', () => {
    const samples = hourOf((hours) => ({ rssMiB: 100 + 100 * hours }));
    const table = tableOfSoak(samples, judge(samples), 1e-8);
    expect(table).to.match(/\| RSS, MiB +\| 100 +\| 125 +\| 150 +\| 200 +\| 100 +\| 80 +\| 64 +\| GROWS/);
    expect(table).to.match(/drift of money, USD .*0\.00000001.*DIFFERS/);
  });
});
