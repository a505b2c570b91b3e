import assert from 'node:assert/strict';
import { Agent, request } from 'undici';
import { mayDo, type OperatorRole, ROLE_NAMES } from '../../core/operators/roles';
import { operate } from '../support/command-line';
import { startGateway, type TestGateway } from '../support/gateway';
import { nameOf, ownRoutes } from '../support/own-api';

const adminRoutes = ownRoutes().flatMap((route) =>
  route.listener === 'admin' && route.auth === undefined ? [route] : [],
);

describe('Operator tokens', function () {
  this.timeout(120_000);
  let gateway: TestGateway;
  const tokens = new Map<OperatorRole, string>();
  before(async () => {
    gateway = await startGateway({
      upstreams: { acme: { url: 'http://127.0.0.1:9' } },
      system: { proxies: { count: 1, addresses: ['127.0.0.9'] } },
    });
    for (const role of ROLE_NAMES) tokens.set(role, (await create(role, role)).token);
  });
  after(() => gateway.stop());

  async function tollgate(token: string, ...args: string[]) {
    return operate({ ...gateway, adminToken: token }, args);
  }

  async function create(name: string, role: string) {
    const made = await tollgate(
      gateway.adminToken,
      'tokens',
      'create',
      name,
      '--role',
      role,
      '--expires',
      '90d',
      '--json',
    );
    assert.equal(made.status, 0, made.notes);
    return JSON.parse(made.out) as { id: string; token: string; expiresAt: string };
  }

  /** Sends a request from an address of this machine. */
  async function ask(
    token: string,
    path: string,
    {
      method = 'GET',
      body,
      localAddress = '127.0.0.1',
      forwarded,
    }: {
      method?: string;
      body?: object;
      localAddress?: string;
      forwarded?: string;
    } = {},
  ) {
    const dispatcher = new Agent({ localAddress });
    const headers = {
      authorization: `Bearer ${token}`,
      ...(forwarded !== undefined && { 'x-forwarded-for': forwarded }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    };
    const answer = await request(gateway.adminUrl + path, {
      dispatcher,
      method: method as 'GET',
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await answer.body.text();
    await dispatcher.close();
    const error = text.startsWith('{')
      ? (JSON.parse(text) as { error?: { code: string; details: object } }).error
      : undefined;
    return { status: answer.statusCode, headers: answer.headers, text, error };
  }

  for (const route of adminRoutes) {
    const needed = route.role ?? 'owner';
    it(`below the role ${needed} are refused, and others are admitted: ${nameOf(route)}`, async () => {
      const path = route.path.replaceAll(/\{\w+\}/g, 'nowhere');
      const { method } = route;
      const sent = { method, ...(route.body !== undefined && { body: {} }) };
      for (const [role, token] of tokens) {
        const { status, error } = await ask(token, path, sent);
        if (mayDo(role, needed)) assert.ok(status !== 401 && status !== 403, `${role} gets ${status}`);
        else assert.deepEqual([status, error?.code, error?.details], [403, 'OPERATOR_ROLE_NEEDED', { needed, role }]);
      }
    });
  }

  it('must have the role owner for routes of Express Gateway, and any role for 404 and 405', async () => {
    for (const path of ['/service-endpoints', '/pipelines', '/api-endpoints', '/POLICIES'])
      for (const [role, token] of tokens)
        assert.equal((await ask(token, path)).status, role === 'owner' ? 200 : 403, `${role} at ${path}`);
    assert.equal((await ask(tokens.get('metrics') ?? '', '/admin/v1/nothing')).status, 404);
    assert.equal((await ask(tokens.get('metrics') ?? '', '/admin/v1/accounts', { method: 'PUT' })).status, 405);
    assert.equal((await ask('wrong', '/admin/v1/accounts', { method: 'PUT' })).status, 401);
  });

  it('are named in the audit log with what they changed', async () => {
    const made = await tollgate(tokens.get('write') ?? '', 'accounts', 'create', 'by-token', '--json');
    const { id } = JSON.parse(made.out) as { id: string };
    const shown = await tollgate(tokens.get('read') ?? '', 'audit', 'list', '--actor', 'token:write', '--json');
    const { items } = JSON.parse(shown.out) as { items: { action: string; subject: string }[] };
    assert.deepEqual(
      items.filter(({ subject }) => subject === `account:${id}`).map(({ action }) => action),
      ['account.create'],
    );
    const reloaded = await ask(tokens.get('write') ?? '', '/admin/v1/config/reload', { method: 'POST', body: {} });
    assert.equal(reloaded.status, 200, reloaded.text);
  });

  it('can be shown to their bearer with name and role', async () => {
    const { text } = await ask(tokens.get('metrics') ?? '', '/admin/v1/tokens/own');
    const own = JSON.parse(text) as { name: string; role: string; expiresAt: string };
    assert.deepEqual([own.name, own.role], ['metrics', 'metrics']);
    const first = await ask(gateway.adminToken, '/admin/v1/tokens/own');
    assert.deepEqual(JSON.parse(first.text), { name: 'admin', role: 'owner', expiresAt: null });
  });

  it('are listed without secrets, and refused once they are revoked', async () => {
    const { id, token } = await create('leaver', 'read');
    assert.equal((await tollgate(token, 'accounts', 'list')).status, 0);
    const listed = await tollgate(token, 'tokens', 'list');
    assert.match(listed.out, new RegExp(`^${id} +leaver +read +…${token.slice(-4)} `, 'm'));
    assert.ok(!listed.out.includes(token));
    const refused = await tollgate(tokens.get('write') ?? '', 'tokens', 'revoke', id);
    assert.match(refused.notes, /needs a token of the role "owner"; "write" has the role "write"/);
    assert.equal((await tollgate(tokens.get('owner') ?? '', 'tokens', 'revoke', id)).status, 0);
    const ended = await tollgate(token, 'accounts', 'list');
    assert.equal(ended.status, 1);
    assert.match(ended.notes, /"leaver" is revoked/);
  });

  it('are not created with an invalid field, and the error names it', async () => {
    const right = { name: 'right', role: 'read', expiresAt: null };
    for (const [field, value] of [
      ['name', 'two words'],
      ['role', 'admin'],
      ['expiresAt', '2020-01-01T00:00:00Z'],
      ['expiresAt', 'tomorrow'],
      ['expiresAt', undefined],
    ] as const) {
      const answer = await ask(gateway.adminToken, '/admin/v1/tokens', {
        method: 'POST',
        body: { ...right, [field]: value },
      });
      assert.equal(answer.status, 400, answer.text);
      assert.equal(JSON.parse(answer.text).error.param, field);
    }
    const worded = await tollgate(gateway.adminToken, 'tokens', 'create', 'x', '--role', 'read', '--expires', 'soon');
    assert.equal(worded.status, 2);
    assert.match(worded.notes, /--expires: expected a time from now/);
  });

  it('that are wrong are counted for the connecting address, whatever X-Forwarded-For contains', async () => {
    const guess = (forwarded: string, localAddress: string) =>
      ask('guess', '/admin/v1/accounts', { localAddress, forwarded });
    for (let count = 0; count < 20; count += 1) await guess(`198.51.100.${count}`, '127.0.0.2');
    const slowed = await guess('198.51.100.99', '127.0.0.2');
    assert.equal(slowed.status, 429);
    assert.ok(Number(slowed.headers['retry-after']) >= 1);
    // Neither the address of the guesses nor one that the guesser names is locked out.
    assert.equal(
      (await ask(tokens.get('read') ?? '', '/admin/v1/accounts', { localAddress: '127.0.0.2' })).status,
      200,
    );
    assert.equal((await guess('198.51.100.1', '127.0.0.3')).status, 401);
    // Through a trusted proxy only the entry that the proxy adds counts.
    for (let count = 0; count < 20; count += 1) await guess(`198.51.100.${count}, 192.0.2.7`, '127.0.0.9');
    assert.equal((await guess('198.51.100.50, 192.0.2.7', '127.0.0.9')).status, 429);
    assert.equal((await guess('192.0.2.7, 192.0.2.8', '127.0.0.9')).status, 401);
  });
});
