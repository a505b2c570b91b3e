import { expect } from 'chai';
import { ALLOWANCE_MUTANTS } from '../mutation/allowance-mutants';
import { VENDOR_MUTANTS } from '../mutation/vendor-mutants';
import { textOf } from '../support/sources';

describe('each mutant (deliberate bug) in allowances, holds and charges', () => {
  it('replaces a line that still exists in the source', () => {
    const stale = [...ALLOWANCE_MUTANTS, ...VENDOR_MUTANTS].filter(({ file, from }) => !textOf(file).includes(from));
    expect(stale.map(({ name }) => name)).to.deep.equal([]);
  });
});
