import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { get } from 'node:http';
import { join } from 'node:path';
import { pageRoutes } from '../../../core/api/built-page';
import { temporaryFolder } from '../../support/databases';
import { serveRoutes, type TestServer } from '../../support/serve';

const INDEX = '<!doctype html><title>Console</title>';
const SCRIPT = `export const text = '${'a word or two '.repeat(200)}';`;

const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; font-src 'self'; form-action 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'";

describe('the page of the console', () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let server: TestServer;
  before(async () => {
    folder = await temporaryFolder();
    await writeFile(join(folder.path, 'secret'), 'outside of the page');
    server = await serveRoutes(pageRoutes('console', 'public', 'The console.', join(folder.path, 'page')));
  });
  after(async () => {
    await server.close();
    await folder.remove();
  });

  const ask = (path: string, headers: Record<string, string> = {}) => fetch(server.url + path, { headers });

  it('shows build instructions until its files are built, and is served afterwards', async () => {
    const answer = await ask('/console');
    assert.equal(answer.status, 503);
    assert.match(await answer.text(), /npm run build/);
    await mkdir(join(folder.path, 'page/assets'), { recursive: true });
    await writeFile(join(folder.path, 'page/index.html'), INDEX);
    await writeFile(join(folder.path, 'page/favicon.svg'), '<svg/>');
    await writeFile(join(folder.path, 'page/assets/index-4f2a.js'), SCRIPT);
    assert.equal((await ask('/console')).status, 200);
  });

  it('is one page at every path, never cached, with no inline scripts and no resources from other origins', async () => {
    for (const path of ['/console', '/console/', '/console/usage', '/console/keys/1?x=y', '/console/index.html']) {
      const answer = await ask(path);
      assert.equal(await answer.text(), INDEX, path);
      const header = (name: string) => answer.headers.get(name);
      assert.deepEqual(
        [header('content-type'), header('cache-control'), header('content-security-policy')],
        ['text/html; charset=utf-8', 'no-store', CSP],
        path,
      );
      assert.deepEqual([header('x-content-type-options'), header('referrer-policy')], ['nosniff', 'no-referrer']);
    }
  });

  it('has asset files with unique names, which browsers may cache for a year, compressed if the client accepts it', async () => {
    const path = '/console/assets/index-4f2a.js';
    for (const encoding of ['br', 'gzip'] as const) {
      const answer = await ask(path, { 'accept-encoding': encoding });
      assert.equal(await answer.text(), SCRIPT);
      assert.deepEqual(
        ['content-encoding', 'vary', 'content-type', 'cache-control'].map((name) => answer.headers.get(name)),
        [encoding, 'accept-encoding', 'text/javascript; charset=utf-8', 'public, max-age=31536000, immutable'],
      );
      assert.ok(Number(answer.headers.get('content-length')) < SCRIPT.length / 4);
    }
    assert.equal((await ask(path, { 'accept-encoding': 'br;q=0, identity' })).headers.get('content-encoding'), null);
    const head = await fetch(server.url + path, { method: 'HEAD', headers: { 'accept-encoding': 'identity' } });
    assert.equal(head.headers.get('content-length'), String(SCRIPT.length));
    const icon = await ask('/console/favicon.svg');
    const etag = icon.headers.get('etag') ?? '';
    assert.deepEqual(
      [icon.headers.get('cache-control'), icon.headers.get('content-type')],
      ['no-cache', 'image/svg+xml'],
    );
    assert.equal((await ask('/console/favicon.svg', { 'if-none-match': etag })).status, 304);
  });

  it('serves no other file, and does not answer requests to unknown API paths', async () => {
    for (const path of ['/console/assets/gone.js', '/console/api/nothing', '/console/api']) {
      const answer = await ask(path);
      assert.equal(answer.status, 404, path);
      assert.equal(((await answer.json()) as { error: { code: string } }).error.code, 'NOT_FOUND');
    }
    // Sends these paths unchanged, because a client library would resolve them.
    for (const path of [
      '/console/../secret',
      '/console/%2e%2e/secret',
      '/console/..%2fsecret',
      '/console/assets/../../../secret',
    ]) {
      const text = await new Promise<string>((resolve, reject) => {
        const { hostname, port } = new URL(server.url);
        get({ hostname, port, path }, (answer) => {
          let all = '';
          answer.on('data', (chunk: Buffer) => (all += chunk.toString()));
          answer.on('end', () => resolve(all));
        }).on('error', reject);
      });
      assert.ok(!text.includes('outside'), path);
    }
    assert.equal((await fetch(`${server.url}/console`, { method: 'POST' })).status, 405);
  });
});
