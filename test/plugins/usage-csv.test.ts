import assert from 'node:assert/strict';
import { csvLine } from '../../plugins/usage/export';

describe('a line of CSV', () => {
  it('ends with CRLF and quotes what RFC 4180 requires', () => {
    assert.equal(csvLine(['a', 'b,c', 'd"e', 'f\ng', 'h i']), 'a,"b,c","d""e","f\ng",h i\r\n');
  });

  it('does not change numbers, amounts and booleans, and is empty for null', () => {
    assert.equal(
      csvLine([1, -2, 0.5, '0.00000012', '-1.5', true, false, null]),
      '1,-2,0.5,0.00000012,-1.5,true,false,\r\n',
    );
  });

  for (const text of ['=HYPERLINK("http://x")', '+1+1', '-1+1', '@SUM(A1)', '\tx', '\rx', '\n=1', '-']) {
    it(`contains ${JSON.stringify(text)} as text, because a spreadsheet would run it as a formula`, () => {
      const cell = csvLine([text]).slice(0, -2);
      assert.match(cell, /^"?'/);
    });
  }
});
