import assert from 'node:assert/strict';
import { isWithin, readAddressRange } from '../../../core/http/address-ranges';

function holds(text: string, address: string): boolean {
  const range = readAddressRange(text);
  assert.ok(range, text);
  return isWithin(address, [range]);
}

describe('address ranges', () => {
  for (const [range, inside, outside] of [
    ['192.0.2.7', '192.0.2.7', '192.0.2.8'],
    ['192.0.2.0/24', '192.0.2.255', '192.0.3.0'],
    ['2001:db8::/32', '2001:db8:ffff::1', '2001:db9::1'],
    ['2001:db8::7', '2001:DB8:0:0::7', '2001:db8::8'],
    // An IPv4 client of a listener that accepts IPv4 and IPv6.
    ['192.0.2.0/24', '::ffff:192.0.2.1', '::ffff:192.0.3.1'],
    ['::ffff:192.0.2.0/120', '192.0.2.1', '192.0.3.1'],
  ] as const) {
    it(`include ${inside} in ${range}, but not ${outside}`, () => {
      assert.ok(holds(range, inside));
      assert.ok(!holds(range, outside));
    });
  }

  it('never include a text that is not an IP address', () => {
    for (const text of ['', 'localhost', '192.0.2.1:80', '192.0.2']) assert.ok(!holds('192.0.2.0/24', text), text);
  });

  for (const text of ['', 'acme', '010.0.0.1', '10/8', '10.0.0.0/33', '10.0.0.0/8/8', '::/129', '10.0.0.0/'])
    it(`reject the invalid range "${text}"`, () => assert.equal(readAddressRange(text), undefined));
});
