import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { IncomingMessage, Server } from 'node:http';
import { pino } from 'pino';
import type { LocatedProblem } from '../../../core/configuration/problems';
import { readProxies } from '../../../core/configuration/system-settings';
import { clientAddress, clientPlace, watchForwarding } from '../../../core/http/proxies';

function read(proxies: { count: number; addresses?: string[] }) {
  const problems: LocatedProblem[] = [];
  return { ...readProxies({ proxies }, problems), problems };
}

describe('the trusted proxies of system.config.yml', () => {
  const PRIVATE = ['127.0.0.1', '::1', '10.1.2.3', '172.16.0.1', '::ffff:192.168.1.1', 'fd00::1'];
  const OTHERS = ['192.0.2.1', '172.32.0.1', '2001:db8::1', '', 'nonsense'];

  it('are none if the count is 0, so that no private address is trusted', () => {
    const { isProxy } = read({ count: 0 });
    for (const address of [...PRIVATE, ...OTHERS]) assert.equal(isProxy(address), false, address);
  });

  it('are all loopback and private addresses if only a count is configured', () => {
    const { isProxy } = read({ count: 1 });
    for (const address of PRIVATE) assert.ok(isProxy(address), address);
    for (const address of OTHERS) assert.ok(!isProxy(address), address);
  });

  it('are only the configured addresses if there are any', () => {
    const { isProxy } = read({ count: 2, addresses: ['192.0.2.0/24'] });
    assert.deepEqual(['192.0.2.7', '10.0.0.1'].map(isProxy), [true, false]);
  });

  it('are rejected if they are not valid addresses or ranges', () => {
    const { problems } = read({ count: 1, addresses: ['10.0.0.0/8', '10.0.0.0/40', '999.1.1.1', '1:2'] });
    assert.deepEqual(
      problems.map(({ path }) => path.join('.')),
      ['proxies.addresses.1', 'proxies.addresses.2', 'proxies.addresses.3'],
    );
  });
});

describe('the warning about a proxy that is not configured', () => {
  let nowMs: number;
  let lines: { peer: string; msg: string }[];
  let server: EventEmitter;
  const watch = (count = 0) => {
    nowMs = 0;
    lines = [];
    server = new EventEmitter();
    const log = pino({}, { write: (text: string) => lines.push(JSON.parse(text)) });
    watchForwarding(server as Server, read({ count }), log, () => nowMs);
  };
  const ask = (remoteAddress: string, headers: object = { 'x-forwarded-for': '192.0.2.1' }) =>
    server.emit('request', { headers, socket: { remoteAddress } });

  it('names the setting `proxies.count`, and is logged at most once an hour', () => {
    watch();
    ask('192.0.2.1');
    ask('10.0.0.1', {});
    assert.equal(lines.length, 0);
    for (let request = 0; request < 100; request += 1) ask('10.0.0.1');
    nowMs = 3_599_999;
    ask('10.0.0.1');
    assert.deepEqual(
      lines.map(({ peer }) => peer),
      ['10.0.0.1'],
    );
    assert.match(lines[0]?.msg ?? '', /proxies\.count in system\.config\.yml is 0/);
    nowMs = 3_600_000;
    ask('10.0.0.1');
    assert.equal(lines.length, 2);
    watch(1);
    ask('10.0.0.1');
    assert.equal(lines.length, 0);
  });
});

describe('the client address to which wrong sign-ins are counted', () => {
  const isProxy = (address: string) => address.startsWith('10.');
  const from = (remoteAddress: string, forwarded?: string) =>
    ({ headers: { 'x-forwarded-for': forwarded }, socket: { remoteAddress } }) as unknown as IncomingMessage;
  const placeOf = (remoteAddress: string, count = 0, forwarded?: string) =>
    clientPlace(from(remoteAddress, forwarded), { count, isProxy });

  it('is unknown if the trusted proxies do not report one address each', () => {
    for (const forwarded of [undefined, '192.0.2.7', 'nonsense, 192.0.2.7', ' , 192.0.2.7'])
      assert.equal(clientAddress(from('10.0.0.1', forwarded), { count: 2, isProxy }), undefined, forwarded);
    assert.equal(clientAddress(from('10.0.0.1', '192.0.2.7, 10.0.0.2'), { count: 2, isProxy }), '192.0.2.7');
  });

  it('is the whole IPv4 address, or the first half of an IPv6 address', () => {
    assert.equal(placeOf('::ffff:192.0.2.1'), '192.0.2.1');
    assert.equal(placeOf('2001:db8:1:2::1'), placeOf('2001:db8:1:2:ffff:ffff:ffff:ffff'));
    assert.notEqual(placeOf('2001:db8:1:2::1'), placeOf('2001:db8:1:3::1'));
  });

  it('is the address that the trusted proxies report, and never one from a header that the client writes', () => {
    assert.equal(placeOf('10.0.0.1', 0, '192.0.2.7'), '10.0.0.1');
    assert.equal(placeOf('10.0.0.1', 1, '203.0.113.9, 192.0.2.7'), '192.0.2.7');
    assert.equal(placeOf('10.0.0.1', 1, 'nonsense'), '10.0.0.1');
    assert.equal(placeOf('192.0.2.1', 1, '192.0.2.7'), '192.0.2.1');
  });
});
