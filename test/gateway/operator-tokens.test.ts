// biome-ignore-all lint/suspicious/noTemplateCurlyInString: so the variables of a YAML file are written

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { parse, stringify } from 'yaml';
import { mayDo, type OperatorRole, ROLE_NAMES } from '../../core/operators/roles';
import { ask } from '../support/calls';
import { operate } from '../support/command-line';
import type { Configured } from '../support/gateway';
import { nameOf, ownRoutes } from '../support/own-api';
import { useGateway, useUpstream } from '../support/story';
import { messagesAnswer } from '../support/upstream';

const adminRoutes = ownRoutes().flatMap((route) =>
  route.listener === 'admin' && route.auth === undefined ? [route] : [],
);

describe('Operator tokens', function () {
  this.timeout(120_000);
  const tokens = new Map<OperatorRole, string>();
  const gateway = useGateway(() => ({
    upstreams: { acme: { url: 'http://127.0.0.1:9' } },
    system: { proxies: { count: 1, addresses: ['127.0.0.9'] } },
  }));

  before(async () => {
    for (const role of ROLE_NAMES) tokens.set(role, (await create(role, role)).token);
  });

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

  it('need the role owner for routes of Express Gateway, and any role to get 404 or 405', async () => {
    for (const path of ['/service-endpoints', '/pipelines', '/users', '/credentials', '/scopes', '/POLICIES'])
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
});

describe('A configuration that a token of the role `write` applies', function () {
  this.timeout(120_000);
  const upstream = useUpstream();
  let token: string;
  let file: string;

  const gateway = useGateway(() => {
    upstream.always(messagesAnswer());
    return {
      upstreams: { acme: { url: upstream.url } },
      configure: (config) => {
        config['serviceEndpoints'].acme.tier = '${OWN_TIER}';
      },
      env: {
        CONFIG_SOURCE: 'database',
        OWN_TIER: 'standard',
        CREDENTIAL_ENV: 'LISTED_KEY, MORE_KEY',
        LISTED_KEY: 'the-listed-credential',
        CONFIG_ENV: 'LISTED_PATH',
        LISTED_PATH: 'listed',
        MAIL_PASSWORD: 'hush-9124',
      },
    };
  });

  before(async () => {
    const made = await gateway.admin('POST', '/admin/v1/tokens', { name: 'deploys', role: 'write', expiresAt: null });
    token = made.json.token;
    file = await readFile(join(gateway.configFolder, 'gateway.config.yml'), 'utf8');
  });

  async function apply(change: (acme: Configured) => void) {
    const config = parse(file) as Configured;
    change(config['serviceEndpoints'].acme);
    const { statusCode, body } = await request(`${gateway.adminUrl}/admin/v1/config/revisions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ text: stringify(config) }),
    });
    // biome-ignore lint/suspicious/noExplicitAny: looked at by the test
    return { status: statusCode, json: (await body.json()) as any };
  }

  const refusedNames: readonly (readonly [string, string, (acme: Configured) => void])[] = [
    [
      'a credential',
      'CREDENTIAL_ENV',
      (acme) => {
        acme['credential'] = { env: 'MAIL_PASSWORD' };
      },
    ],
    [
      'one of several credentials',
      'CREDENTIAL_ENV',
      (acme) => {
        delete acme['credential'];
        acme['credentials'] = [{ env: 'UPSTREAM_CREDENTIAL' }, { env: 'MAIL_PASSWORD' }];
      },
    ],
    [
      'the credential of reports',
      'CREDENTIAL_ENV',
      (acme) => {
        acme['reporting'] = { credential: { env: 'MAIL_PASSWORD' }, alarmAboveUsd: 1 };
      },
    ],
    [
      'a part of an address',
      'CONFIG_ENV',
      (acme) => {
        acme['url'] += '/${MAIL_PASSWORD}';
      },
    ],
    [
      'a text with a default',
      'CONFIG_ENV',
      (acme) => {
        acme['url'] += '/${MAIL_PASSWORD:-x}';
      },
    ],
  ];
  for (const [place, list, change] of refusedNames) {
    it(`is refused if it names an environment variable that the node's configuration file does not name, as ${place}`, async () => {
      const { status, json } = await apply(change);
      assert.deepEqual([status, json.error?.code], [409, 'CONFIGURATION_INVALID'], JSON.stringify(json));
      const [{ message, line }] = json.error.details.problems;
      assert.match(
        message,
        new RegExp(
          `MAIL_PASSWORD is named neither in this node's own gateway.config.yml nor in ${list}; add it to ${list} and`,
        ),
      );
      assert.ok(line > 0);
    });
  }

  it("may name the environment variables that the node's file names, or that CREDENTIAL_ENV and CONFIG_ENV list", async () => {
    const { key } = await gateway.newCustomer('1');
    const kept = await apply((acme) => {
      acme['weight'] = 2;
    });
    assert.equal(kept.status, 201, JSON.stringify(kept.json));
    const listed = await apply((acme) => {
      acme['credential'] = { env: 'LISTED_KEY' };
      acme['url'] += '/${LISTED_PATH}';
    });
    assert.equal(listed.status, 201, JSON.stringify(listed.json));
    assert.equal((await gateway.call('/v1/messages', { key, body: ask() })).status, 200);
    const call = upstream.calls.at(-1);
    assert.deepEqual([call?.path, call?.headers['x-api-key']], ['/listed/v1/messages', 'the-listed-credential']);
  });

  it('may read a credential from a variable that the file names only inside a text if CREDENTIAL_ENV lists it', async () => {
    const { status, json } = await apply((acme) => {
      acme['credential'] = { env: 'OWN_TIER' };
    });
    assert.equal(status, 409);
    assert.match(json.error.details.problems[0].message, /OWN_TIER is named neither .*; add it to CREDENTIAL_ENV/);
  });
});
