import { expect } from 'chai';
import { LINEAR, MAX_GROWTH, measureApart } from '../../support/linear-cases';

/** The readers and writers of all registered dialects. */
describe('CPU time grows only in proportion to the number of entries in a request or answer', function () {
  this.timeout(600_000);

  for (const [kind, cases] of LINEAR)
    if (cases.length > 0)
      it(`when ${kind}`, async () => {
        const measured = await measureApart(kind);
        expect(measured).to.have.length(cases.length);
        const dear = measured.filter(({ growth = 0, error }) => growth > MAX_GROWTH || error !== undefined);
        expect(dear, 'times the CPU of n entries, for 8 n').to.deep.equal([]);
      });
});
