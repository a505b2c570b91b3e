import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { pino } from 'pino';
import type { Handler, Method, Route } from '../../../core/api/route';
import { RouteTable } from '../../../core/api/route-table';
import { fail } from '../../../core/base/errors';
import { sendJson } from '../../../core/http/http';
import { LedgerUnavailable } from '../../../core/ledger/ledger';
import { rejection } from '../../support/rejection';
import { serveRoutes, type TestServer } from '../../support/serve';

const show: Handler = async (visit, _request, response) => sendJson(response, 200, visit.params);

function open(method: Method, path: string, handle: Handler = show): Route {
  return { method, path, summary: path, listener: 'public', auth: 'none', answers: {}, handle };
}

describe('the route table', () => {
  const table = new RouteTable<string>();
  table.add('GET', '/a/{id}', 'one of a');
  table.add('DELETE', '/a/{id}', 'no more a');
  table.add('GET', '/a/fixed', 'the fixed one');
  table.add('GET', '/a/{id}/b/{other}', 'below');
  table.add('GET', '/files/{id}/{path...}', 'all below');
  table.add('*', '/any', 'any');

  for (const [method, path, route, params] of [
    ['GET', '/a/1', 'one of a', { id: '1' }],
    ['HEAD', '/a/1', 'one of a', { id: '1' }],
    ['GET', '/a/fixed', 'the fixed one', {}],
    ['DELETE', '/a/fixed', 'no more a', { id: 'fixed' }],
    ['GET', '/a/fixed/b/2', 'below', { id: 'fixed', other: '2' }],
    ['GET', '/a/%C3%A9%2Fx', 'one of a', { id: 'é/x' }],
    ['GET', '/files/1/x/y%20z/', 'all below', { id: '1', path: 'x/y z/' }],
    ['GET', '/files/1/', 'all below', { id: '1', path: '' }],
    ['PURGE', '/any', 'any', {}],
  ] as const) {
    it(`finds the route and the parameters of ${method} ${path}`, () => {
      assert.deepEqual(table.find(method, path), { route, params });
    });
  }

  for (const path of ['/', '', '/a', '/a/', '/a/1/', '/A/1', '/a/1/b', '/files/1', '//a/1', '/a/%zz', '/files/1/%']) {
    it(`finds no route at ${JSON.stringify(path)}`, () => {
      assert.equal(table.find('GET', path), undefined);
      assert.deepEqual(table.methodsOf(path), []);
    });
  }

  it('returns the allowed methods of a path', () => {
    assert.deepEqual(table.find('POST', '/a/fixed'), { allow: ['DELETE', 'GET', 'HEAD'] });
    assert.deepEqual(table.methodsOf('/a/1'), ['DELETE', 'GET', 'HEAD']);
  });

  it('rejects two routes with the same pattern, even if their parameters have different names', () => {
    assert.throws(
      () => table.add('GET', '/a/{name}', 'twice'),
      /GET \/a\/\{name\} conflicts with the existing route GET \/a\/\{id\}/,
    );
  });
});

describe('the router', () => {
  const lines: string[] = [];
  const log = pino(
    new Writable({
      write: (line, _encoding, done) => {
        lines.push(String(line));
        done();
      },
    }),
  );
  const key = { accountId: 'account', keyId: 'key', settings: { rev: 0, name: '', allowedModels: undefined } };
  let server: TestServer;
  before(async () => {
    const throwing = (error: unknown) => async () => {
      throw error;
    };
    server = await serveRoutes(
      [
        open('GET', '/show/{id}'),
        open('POST', '/show/{id}'),
        open('GET', '/refused', throwing(fail('CONFLICT', { param: 'name' }))),
        open('POST', '/read', async (_visit, request) => {
          for await (const _chunk of request);
          throw fail('CONFLICT');
        }),
        open('GET', '/broken', throwing(new Error('canary of the inside'))),
        open(
          'GET',
          '/database',
          throwing(Object.assign(new Error('canary value'), { severity: 'ERROR', code: '22P02' })),
        ),
        open('GET', '/ledger', throwing(new LedgerUnavailable('down'))),
        open('GET', '/half', async (_visit, _request, response) => {
          response.write('half');
          throw new Error('midway');
        }),
        {
          method: 'GET',
          path: '/mine',
          summary: 'mine',
          listener: 'public',
          auth: 'key',
          answers: {},
          handle: async (visit, _request, response) => sendJson(response, 200, visit.key),
        },
      ],
      {
        log,
        identify: async (request) => {
          if (request.headers['x-api-key'] === undefined) throw fail('INVALID_API_KEY');
          return key;
        },
      },
    );
  });
  after(() => server.close());

  it('answers 405 with Allow for a wrong method, and 404 only for unknown paths', async () => {
    const answer = await fetch(`${server.url}/show/1`, { method: 'DELETE' });
    assert.equal(answer.status, 405);
    assert.equal(answer.headers.get('allow'), 'GET, HEAD, POST');
    assert.equal((await fetch(`${server.url}/nothing`)).headers.get('x-svc-request-id'), 'req_none');
  });

  it('writes the cause of an internal error to the log and hides it from the client', async () => {
    const answer = await fetch(`${server.url}/broken`);
    const text = await answer.text();
    assert.equal(answer.status, 500);
    assert.ok(text.includes('INTERNAL_ERROR') && !text.includes('canary') && !text.includes('.ts'));
    const line = lines.find((each) => each.includes('canary of the inside'));
    assert.ok(line?.includes(answer.headers.get('request-id') ?? '-'));
  });

  it('does not log the values that a database error quotes', async () => {
    assert.equal((await fetch(`${server.url}/database`)).status, 500);
    assert.ok(lines.some((line) => line.includes('22P02')));
    assert.ok(!lines.some((line) => line.includes('canary value')));
  });

  it('answers 503 with Retry-After while the ledger is unavailable', async () => {
    const answer = await fetch(`${server.url}/ledger`);
    assert.equal(answer.status, 503);
    assert.equal(answer.headers.get('retry-after'), '1');
    assert.ok((await answer.text()).includes('LEDGER_UNAVAILABLE'));
  });

  it('destroys the connection when a handler fails in the middle of its response', async () => {
    const answer = await fetch(`${server.url}/half`);
    await rejection(answer.text());
  });

  it('never serves a route that needs an API key on a listener without key lookup', async () => {
    const blind = await serveRoutes([
      { method: 'GET', path: '/', summary: '', listener: 'public', auth: 'key', answers: {}, handle: show },
    ]);
    assert.equal((await fetch(`${blind.url}/`)).status, 500);
    await blind.close();
  });
});
