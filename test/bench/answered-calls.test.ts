import { expect } from 'chai';
import { type Called, type Charged, compareCharges } from '../../bench/answered-calls';

const COST_E8 = 34_300n;

/** Two answered calls, a refused call, and two calls that were cut off, of which one was charged. */
const called: Called = {
  answered: new Map([
    ['one', COST_E8],
    ['two', COST_E8],
  ]),
  refused: new Set(['refused']),
  cut: 2,
};
const records = [
  { requestId: 'one', costE8: COST_E8 },
  { requestId: 'two', costE8: COST_E8 },
  { requestId: 'cut', costE8: COST_E8 },
  { requestId: 'refused', costE8: 0n },
];

/** Makes ledger entries and balances that agree with the records. */
function charged(rows: Charged['records'], differing: Partial<Charged> = {}): Charged {
  const sumE8 = rows.reduce((sum, { costE8 }) => sum + costE8, 0n);
  return { records: rows, entriesE8: sumE8, spentE8: sumE8, ...differing };
}

const wrongOf = (rows: Charged['records'], differing?: Partial<Charged>) =>
  compareCharges(called, charged(rows, differing)).wrong;

describe('the comparison of answers and charges', () => {
  it('reports nothing if each answered call is charged once and a disconnected call at most once', () => {
    const { wrong, ...sums } = compareCharges(called, charged(records));
    expect(wrong).to.deep.equal([]);
    expect(sums).to.deep.equal({
      answeredE8: 2n * COST_E8,
      chargedE8: 3n * COST_E8,
      chargedCut: 1,
      chargedCutE8: COST_E8,
      differenceE8: 0n,
    });
  });

  it('reports an answered call without a record', () => {
    expect(wrongOf(records.slice(1))).to.include(
      '1 answered calls are not charged what their answers say, exactly once: one',
    );
  });

  it('reports an answered call that was charged another cost, even if the total is right', () => {
    const moved = records.map((each) => ({
      ...each,
      costE8: each.costE8 + (each.requestId === 'one' ? 1n : each.requestId === 'two' ? -1n : 0n),
    }));
    expect(wrongOf(moved)).to.deep.equal([
      '2 answered calls are not charged what their answers say, exactly once: one, two',
    ]);
  });

  it('reports a call that was charged twice, whether it was answered or cut', () => {
    for (const id of ['one', 'cut'])
      expect(wrongOf([...records, { requestId: id, costE8: COST_E8 }])).to.include(
        `1 calls have more than one record: ${id}`,
      );
  });

  it('reports a refused call that was charged', () => {
    const paid = records.map((each) => (each.requestId === 'refused' ? { ...each, costE8: 1n } : each));
    expect(wrongOf(paid)).to.include('1 refused calls are charged: refused');
  });

  it('reports charges for calls that no client made', () => {
    const more = ['cut too', 'made by nothing'].map((requestId) => ({ requestId, costE8: COST_E8 }));
    expect(wrongOf([...records, ...more])).to.deep.equal(['3 other calls are charged, and only 2 were cut']);
  });

  it('reports ledger entries that do not add up to the usage records or to the balances', () => {
    expect(wrongOf(records, { entriesE8: 3n * COST_E8 + 1n })).to.have.length(3);
    expect(wrongOf(records, { spentE8: 0n })).to.deep.equal(['ledger entries are 0.00102900, balances 0.00000000']);
  });
});
