import { expect } from 'chai';
import * as fc from 'fast-check';
import {
  divideRoundingUp,
  E8_PER_USD,
  E14_PER_E8,
  e8RoundedUp,
  formatUsd,
  MAX_AMOUNT_E8,
  parseUsd,
} from '../../../core/base/money';

describe('amounts of money', () => {
  it('are parsed to the same amount that was formatted', () => {
    void fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: MAX_AMOUNT_E8 }), (amountE8) => parseUsd(formatUsd(amountE8)) === amountE8),
    );
  });

  it('are formatted with exactly eight decimals', () => {
    void fc.assert(
      fc.property(fc.bigInt({ min: -MAX_AMOUNT_E8, max: MAX_AMOUNT_E8 }), (amountE8) => {
        expect(formatUsd(amountE8)).to.match(/^-?(0|[1-9]\d*)\.\d{8}$/);
      }),
    );
    expect(formatUsd(0n)).to.equal('0.00000000');
    expect(formatUsd(1n)).to.equal('0.00000001');
    expect(formatUsd(-1n)).to.equal('-0.00000001');
    expect(formatUsd(12n * E8_PER_USD + 50_000_000n)).to.equal('12.50000000');
  });

  for (const text of ['', '-1', '+1', '1e3', '.5', '5.', '01', '1,5', ' 1', '1 ', 'NaN', 'Infinity', '0x10', '1_000']) {
    it(`are rejected if they are written as ${JSON.stringify(text)}, which is not a plain decimal number`, () => {
      expect(() => parseUsd(text)).to.throw(RangeError, 'decimal amount');
    });
  }

  it('are accepted up to the largest amount that Lua counts exactly, and rejected above it', () => {
    expect(parseUsd('90071992.54740991')).to.equal(MAX_AMOUNT_E8);
    expect(() => parseUsd('90071992.54740992')).to.throw(RangeError, 'at most USD 90071992.54740991');
    expect(() => parseUsd('9'.repeat(400))).to.throw(RangeError, 'at most USD');
  });

  it('are rounded up equally, whether they are computed as plain numbers or as integers of any size', () => {
    const edges = fc.nat(9_007_199_253).chain((e8) => fc.constantFrom(-1, 0, 1).map((more) => e8 * 1_000_000 + more));
    const e14 = fc.oneof(fc.maxSafeNat(), edges).filter((each) => each >= 0);
    void fc.assert(
      fc.property(e14, (exact) => {
        expect(BigInt(e8RoundedUp(exact))).to.equal(divideRoundingUp(BigInt(exact), E14_PER_E8));
      }),
    );
  });

  it('are rounded up by less than one unit when they are divided', () => {
    void fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 30n }), fc.bigInt({ min: 1n, max: 10n ** 12n }), (above, below) => {
        const quotient = divideRoundingUp(above, below);
        expect(quotient * below >= above).to.equal(true);
        expect((quotient - 1n) * below < above).to.equal(true);
      }),
    );
  });
});
