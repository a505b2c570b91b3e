import { expect } from 'chai';
import { ratio, summarise } from '../../bench/table';
import { zipfDraws } from '../../bench/zipf';

describe('tables and random numbers of the benchmark', () => {
  it('compare rows of a measured case only with rows of the same case', () => {
    const rounds = [
      {
        direct: { calls: 100 },
        tollgate: { calls: 50 },
        'direct @ 20 ms': { calls: 10 },
        'tollgate @ 20 ms': { calls: 9 },
      },
    ];
    const column = ratio('calls', 'direct', '× direct');
    const layout = { columns: [column], targets: [], notes: [] };
    const rows = summarise(layout, rounds, Object.keys(rounds[0] ?? {}), {});
    const medians = rows.map(({ cells }) => cells[column.key]?.median);
    expect(medians).to.deep.equal([undefined, 0.5, undefined, 0.9]);
  });

  it('mark a failed round as a problem of its row, and still show its measurements', () => {
    const layout = { columns: [{ key: 'calls', title: 'calls', digits: 0 }], targets: [], notes: [] };
    const rounds = [{ node: { failed: 'one call is lost', measured: { calls: 7 } }, relay: { failed: 'no answer' } }];
    const [node, relay] = summarise(layout, rounds, ['node', 'relay'], {});
    expect(node?.problems).to.deep.equal(['round 1 FAILED: one call is lost']);
    expect(node?.cells['calls']?.median).to.equal(7);
    expect(relay?.cells).to.deep.equal({});
  });

  it("follow Zipf's law, and are the same for the same seed", () => {
    const draw = () => zipfDraws(20_000, { of: 1_000, s: 1.1, seed: 22 });
    const draws = draw();
    expect(draw()).to.deep.equal(draws);
    const count = (wanted: number) => draws.filter((each) => each === wanted).length;
    const total = Array.from({ length: 1_000 }, (_, n) => 1 / (n + 1) ** 1.1).reduce((sum, each) => sum + each, 0);
    for (const n of [0, 1, 9]) expect(count(n) / (20_000 / (n + 1) ** 1.1 / total)).to.be.closeTo(1, 0.15);
    expect(Math.max(...draws)).to.be.lessThan(1_000);
  });
});
