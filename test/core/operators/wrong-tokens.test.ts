import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { pino } from 'pino';
import type { GatewayError } from '../../../core/base/errors';
import { WrongTokens } from '../../../core/operators/wrong-tokens';

describe('wrong tokens of operators', () => {
  let nowMs: number;
  let lines: { place: string; slowed: number }[];
  let wrong: WrongTokens;
  beforeEach(() => {
    nowMs = 1_000_000;
    lines = [];
    const log = pino({}, { write: (text: string) => lines.push(JSON.parse(text)) });
    wrong = new WrongTokens(log, { count: 1, isProxy: (address) => address === '10.9.9.9' }, () => nowMs);
  });

  function show(remoteAddress = '192.0.2.1', authorization = 'Bearer wrong', forwarded?: string): GatewayError {
    const headers = { ...(authorization !== '' && { authorization }), 'x-forwarded-for': forwarded };
    return wrong.refuse({ headers, socket: { remoteAddress } } as unknown as IncomingMessage, 'read');
  }
  const showMany = (count: number, address?: string) => Array.from({ length: count }, () => show(address));
  const statusesOf = (errors: readonly GatewayError[]) => errors.map(({ status }) => status);

  it('get 401 twenty times, and then 429 with Retry-After', () => {
    assert.deepEqual(new Set(statusesOf(showMany(20))), new Set([401]));
    const { status, code, retryable, options } = show();
    assert.deepEqual([status, code, retryable], [429, 'ADMIN_TOKEN_SLOWED', true]);
    assert.equal(options.retryAfterSeconds, 1);
    assert.deepEqual(options.headers, { connection: 'close' });
  });

  it('double the waiting time with each further wrong token, up to five minutes', () => {
    showMany(20);
    const waits: number[] = [];
    for (let round = 0; round < 10; round += 1) {
      const wait = show().options.retryAfterSeconds ?? 0;
      waits.push(wait);
      nowMs += wait * 1_000;
      assert.equal(show().status, 401);
    }
    assert.deepEqual(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]);
  });

  it('no longer count after 15 minutes without another wrong token', () => {
    showMany(25);
    nowMs += 15 * 60_000;
    assert.deepEqual(new Set(statusesOf(showMany(20))), new Set([401]));
  });

  it('are counted by IPv4 address and by /64 network of IPv6', () => {
    showMany(21);
    assert.equal(show('192.0.2.2').status, 401);
    showMany(20, '2001:db8::1');
    assert.equal(show('2001:db8::2').status, 429);
    assert.equal(show('2001:db8:0:1::1').status, 401);
  });

  it('are counted for the address that a trusted proxy adds, and never for an address that the client writes', () => {
    for (let guess = 0; guess < 20; guess += 1) show('192.0.2.1', 'Bearer wrong', `198.51.100.${guess}`);
    assert.equal(show('192.0.2.1', 'Bearer wrong', '198.51.100.99').status, 429);
    for (let guess = 0; guess < 20; guess += 1) show('10.9.9.9', 'Bearer wrong', `198.51.100.${guess}, 192.0.2.7`);
    assert.equal(show('10.9.9.9', 'Bearer wrong', '198.51.100.99, 192.0.2.7').status, 429);
    assert.equal(show('10.9.9.9', 'Bearer wrong', '192.0.2.7, 192.0.2.8').status, 401);
  });

  it('are counted only for requests that contain a token', () => {
    for (let request = 0; request < 100; request += 1) assert.equal(show('192.0.2.1', '').status, 401);
    showMany(21);
    assert.equal(show('192.0.2.1', '').status, 401);
  });

  it('still count while 10,000 other addresses try, and no longer count when 20,000 do', () => {
    showMany(21, '192.0.2.1');
    for (let address = 0; address < 9_999; address += 1) show(`10.0.${address >> 8}.${address & 255}`);
    assert.equal(show('192.0.2.1').status, 429);
    for (let address = 0; address < 20_001; address += 1) show(`10.1.${address >> 8}.${address & 255}`);
    assert.equal(show('192.0.2.1').status, 401);
  });
});
