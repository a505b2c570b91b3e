import { expect } from 'chai';
import { addUsd, changeInPercent, exactUsd, fullUsd, shareOf, shortUsd, toHeight } from '../../console/money';

describe('amounts in the console', () => {
  for (const [text, exact, short] of [
    ['0.00000000', '$0.00', '$0.00'],
    ['0.00000001', '$0.00000001', '$0.00000001'],
    ['0.00010500', '$0.000105', '$0.000105'],
    ['0.01234567', '$0.01234567', '$0.0123'],
    ['0.09995000', '$0.09995', '$0.10'],
    ['0.99999999', '$0.99999999', '$1.00'],
    ['1.00500000', '$1.005', '$1.01'],
    ['1284.40123456', '$1,284.40123456', '$1,284.40'],
    ['90071992.54740991', '$90,071,992.54740991', '$90,071,992.55'],
    ['123456789012345678.00000001', '$123,456,789,012,345,678.00000001', '$123,456,789,012,345,678.00'],
    ['-0.00420000', '−$0.0042', '−$0.0042'],
    ['-2.50500000', '−$2.505', '−$2.51'],
    ['3', '$3.00', '$3.00'],
  ] as const) {
    it(`show ${text} as ${exact} in full, and as ${short} in short form`, () => {
      expect(exactUsd(text)).to.equal(exact);
      expect(shortUsd(text)).to.equal(short);
    });
  }

  it('have all eight decimals in columns of a table', () => {
    expect(fullUsd('0.5')).to.equal('$0.50000000');
  });

  it('are added without rounding', () => {
    expect(addUsd(['0.1', '0.2'])).to.equal('0.30000000');
    expect(addUsd(['90071992.54740991', '0.00000001', '-1'])).to.equal('90071991.54740992');
    expect(addUsd([])).to.equal('0.00000000');
  });

  it('are compared as shares and percentages, unless the base amount is zero', () => {
    expect(shareOf('5', '20')).to.equal(0.25);
    expect(shareOf('25', '20')).to.equal(1);
    expect(shareOf('5', '0')).to.equal(0);
    expect(changeInPercent('312.88', '278.4')).to.equal(12.3);
    expect(changeInPercent('1', '2')).to.equal(-50);
    expect(changeInPercent('1', '0')).to.equal(undefined);
    expect(toHeight('0.25')).to.equal(0.25);
  });
});
