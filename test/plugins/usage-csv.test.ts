import assert from 'node:assert/strict';
import { csvLine } from '../../plugins/usage/csv';

describe('a line of CSV', () => {
  it('ends with CRLF and quotes what RFC 4180 asks for', () => {
    assert.equal(csvLine(['a', 'b,c', 'd"e', 'f\ng', 'h i']), 'a,"b,c","d""e","f\ng",h i\r\n');
  });

  it('leaves numbers, amounts and truth values as they are, and nothing for null', () => {
    assert.equal(
      csvLine([1, -2, 0.5, '0.00000012', '-1.5', true, false, null]),
      '1,-2,0.5,0.00000012,-1.5,true,false,\r\n',
    );
  });

  for (const text of ['=HYPERLINK("http://x")', '+1+1', '-1+1', '@SUM(A1)', '\tx', '\rx', '\n=1', '-']) {
    it(`shows ${JSON.stringify(text)} as text`, () => {
      const cell = csvLine([text]).slice(0, -2);
      assert.match(cell, /^"?'/);
    });
  }
});
