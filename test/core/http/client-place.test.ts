import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { clientAddress, placeOf as placeOfAddress } from '../../../core/http/client-place';

const placeOf = (remoteAddress: string, count = 0, forwarded?: string) => {
  const request = {
    headers: { 'x-forwarded-for': forwarded },
    socket: { remoteAddress },
  } as unknown as IncomingMessage;
  return placeOfAddress(clientAddress(request, { count, isProxy: (address) => address.startsWith('10.') }));
};

describe('the place a guess comes from', () => {
  it('is an IPv4 address, and the half of an IPv6 one that is given to one customer', () => {
    assert.equal(placeOf('192.0.2.1'), '192.0.2.1');
    assert.equal(placeOf('::ffff:192.0.2.1'), '192.0.2.1');
    assert.equal(placeOf('2001:db8:1:2::1'), placeOf('2001:db8:1:2:ffff:ffff:ffff:ffff'));
    assert.notEqual(placeOf('2001:db8:1:2::1'), placeOf('2001:db8:1:3::1'));
  });

  it('is what our own proxies say, and nothing that somebody else can write before it', () => {
    assert.equal(placeOf('10.0.0.1', 0, '192.0.2.7'), '10.0.0.1');
    assert.equal(placeOf('10.0.0.1', 1, '203.0.113.9, 192.0.2.7'), '192.0.2.7');
    assert.equal(placeOf('10.0.0.1', 2, '203.0.113.9, 192.0.2.7, 10.0.0.2'), '192.0.2.7');
    assert.equal(placeOf('10.0.0.1', 1, 'nonsense'), '10.0.0.1');
    assert.equal(placeOf('10.0.0.1', 3, '192.0.2.7'), '10.0.0.1');
    assert.equal(placeOf('10.0.0.1', 1), '10.0.0.1');
  });

  it('is the address that connects where that is no proxy of ours, whatever it says', () => {
    assert.equal(placeOf('192.0.2.1', 1, '192.0.2.7'), '192.0.2.1');
  });
});
