import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import type { Random } from '../../support/random';
import { rawRequest } from '../../support/raw';
import type { Target } from './target';

const METHODS = ['GET', 'POST', 'OPTIONS', 'HEAD', 'CONNECT'] as const;
const UPGRADE = 'connection: upgrade\r\nupgrade: websocket\r\n';
const CLOSE = 'connection: close\r\n';
/** What urls have before a host, and what parsers of urls take for something else. */
const BEGINNINGS = [
  '*',
  '**',
  '*x',
  '*:*',
  'http:',
  'http://',
  'https://x',
  'ftp://',
  'x@',
  '//',
  '\\\\',
  '.',
  '#',
  '?',
  '',
];
/** What routes of the gateway would answer if the text before the first slash did not count. */
const BEHIND = ['/healthz', '/v1/models', '/v1/offerings', '/admin/v1/accounts', '/metrics', '/openapi.json'];

/**
 * Sends request targets with any bytes before the first slash: at ports of sandboxes, where a target must not become an address,
 * and at both listeners, where it must not be read as a path.
 */
export const requestTargets: Target = {
  name: 'targets',
  summary: 'request targets with any bytes before the first slash',
  isOfGateway: true,
  run: async ({ gateway, port, canary }, random) => {
    const text = beginning(random);
    const more = random.pick([UPGRADE, CLOSE]);
    const own = Object.entries({ ...port.headers, host: port.host });
    const behindPort = `${text}@${canary.host}${random.pick(['/latest', '', '?x', '#x'])}`;
    await ask(gateway.url, `${random.pick(METHODS)} ${behindPort}`, [...own, ['x-answer', 'eA==']], more);
    // The canary is in another process's turn of the event loop.
    await pause(1);
    assert.equal(canary.connections(), 0, `the gateway connected to another server for ${JSON.stringify(behindPort)}`);
    const asPath = `${text}${random.pick(BEHIND)}`;
    for (const listener of [gateway.url, gateway.adminUrl]) {
      const answer = await ask(listener, `GET ${asPath}`, [['host', '127.0.0.1']], more);
      const isServed = answer.startsWith('HTTP/1.1 ') && !answer.startsWith('HTTP/1.1 400 ');
      // Node's parser passes over spaces before a target.
      const isTarget = /^ *(?:\/|https?:\/\/[^/?#])/i.test(asPath);
      assert.ok(isTarget || !isServed, `${JSON.stringify(asPath)} is served: ${answer.slice(0, 200)}`);
    }
  },
};

/** Returns one byte of 256, words of urls, or both. */
function beginning(random: Random): string {
  const byte = () => String.fromCharCode(random.below(256));
  const length = random.below(3);
  return random.pick(BEGINNINGS) + Array.from({ length }, byte).join('') + random.pick(['', '*', ...BEGINNINGS]);
}

/** Returns what arrives until the connection closes. A gateway that waits for the rest of a broken head says nothing. */
function ask(
  url: string,
  line: string,
  headers: readonly (readonly [string, string])[],
  more: string,
): Promise<string> {
  const head = [`${line} HTTP/1.1`, ...headers.map(([name, value]) => `${name}: ${value}`)].join('\r\n');
  return rawRequest(url, Buffer.from(`${head}\r\n${more}\r\n`, 'latin1'), 500).catch(() => '');
}
