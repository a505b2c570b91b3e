import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { clientAddress, clientPlace } from '../../../core/http/client-place';

const isProxy = (address: string) => address.startsWith('10.');
const from = (remoteAddress: string, forwarded?: string) =>
  ({ headers: { 'x-forwarded-for': forwarded }, socket: { remoteAddress } }) as unknown as IncomingMessage;
const placeOf = (remoteAddress: string, count = 0, forwarded?: string) =>
  clientPlace(from(remoteAddress, forwarded), { count, isProxy });

describe("the client's address", () => {
  it('is unknown if the proxies do not tell one each', () => {
    for (const forwarded of [undefined, '', '192.0.2.7', 'nonsense, 192.0.2.7', ' , 192.0.2.7'])
      assert.equal(clientAddress(from('10.0.0.1', forwarded), { count: 2, isProxy }), undefined, forwarded);
    assert.equal(clientAddress(from('10.0.0.1', '192.0.2.7, 10.0.0.2'), { count: 2, isProxy }), '192.0.2.7');
  });
});

describe('the place to which wrong sign-ins are counted', () => {
  it('is the whole IPv4 address, or the first half of an IPv6 address', () => {
    assert.equal(placeOf('192.0.2.1'), '192.0.2.1');
    assert.equal(placeOf('::ffff:192.0.2.1'), '192.0.2.1');
    assert.equal(placeOf('2001:db8:1:2::1'), placeOf('2001:db8:1:2:ffff:ffff:ffff:ffff'));
    assert.notEqual(placeOf('2001:db8:1:2::1'), placeOf('2001:db8:1:3::1'));
  });

  it('is the client address that our proxies report, and not a header that a client writes', () => {
    assert.equal(placeOf('10.0.0.1', 0, '192.0.2.7'), '10.0.0.1');
    assert.equal(placeOf('10.0.0.1', 1, '203.0.113.9, 192.0.2.7'), '192.0.2.7');
    assert.equal(placeOf('10.0.0.1', 2, '203.0.113.9, 192.0.2.7, 10.0.0.2'), '192.0.2.7');
    assert.equal(placeOf('10.0.0.1', 1, 'nonsense'), '10.0.0.1');
    assert.equal(placeOf('10.0.0.1', 3, '192.0.2.7'), '10.0.0.1');
    assert.equal(placeOf('10.0.0.1', 1), '10.0.0.1');
  });

  it('is the connecting address if that is not a trusted proxy, whatever its headers say', () => {
    assert.equal(placeOf('192.0.2.1', 1, '192.0.2.7'), '192.0.2.1');
  });
});
