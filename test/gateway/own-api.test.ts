import assert from 'node:assert/strict';
import type { Route } from '../../core/api/route';
import { expectShape } from '../support/documents';
import { type Answered, MODEL } from '../support/gateway';
import { fill, nameOf, ownRoutes } from '../support/own-api';
import { ADMIN_KEY, type ReportVendor, startReportVendor } from '../support/report-vendors';
import { createSandbox, creation, SANDBOX_GATEWAY, SMALL_ID, terminate, waitForState } from '../support/sandboxes';
import { useGateway, useUpstream } from '../support/story';
import { messagesAnswer, responsesAnswer } from '../support/upstream';

/** A customer's values, by their names in the paths of routes. */
type Customer = Readonly<
  Record<
    'accountId' | 'keyId' | 'teamId' | 'budgetId' | 'invitationId' | 'webhookId' | 'userId' | 'requestId' | 'key',
    string
  >
>;

/** A customer with a sandbox and a response that the vendor keeps, and the id of a proposal of prices. */
type SandboxOwner = Customer &
  Readonly<Record<'id' | 'commandId' | 'operationId' | 'port' | 'responseId' | 'proposalId', string>>;

interface Example {
  /** A body that the route accepts; undefined for routes without a body. */
  readonly body?: object;
  /** Values for names in the path that do not belong to a customer. */
  readonly path?: Readonly<Record<string, string>>;
  /** Routes to call first, so that there is something to change. */
  readonly after?: readonly string[];
  /** Why these tests cannot change anything by the route, and which test looks for its audit row. */
  readonly unchanged?: string;
}

const NO_ID = '00000000-0000-7000-8000-000000000000';
const WEBHOOK = 'https://example.com/webhooks';
const PRICE_LIST = { source: 'file', text: '{"large":{"litellm_provider":"one","input_cost_per_token":3e-06}}' };

/**
 * Requests that make each changing route of the admin listener change something. A route without an entry fails the test that
 * looks for its audit row.
 */
const CHANGES: Readonly<Record<string, Example>> = {
  'POST /admin/v1/accounts': { body: { name: 'new' } },
  'PATCH /admin/v1/accounts/{accountId}': { body: { name: 'renamed' } },
  'POST /admin/v1/accounts/{accountId}/freeze': { body: {} },
  'POST /admin/v1/accounts/{accountId}/unfreeze': {
    body: {},
    after: ['POST /admin/v1/accounts/{accountId}/freeze'],
  },
  'POST /admin/v1/accounts/{accountId}/credits': { body: { amountUsd: '1', idempotencyKey: 'a credit' } },
  'POST /admin/v1/accounts/{accountId}/debits': { body: { amountUsd: '1', idempotencyKey: 'a debit' } },
  'POST /admin/v1/accounts/{accountId}/keys': { body: { name: 'another' } },
  'PATCH /admin/v1/keys/{keyId}': { body: { name: 'renamed' } },
  'POST /admin/v1/keys/{keyId}/rotate': { body: { graceSeconds: 60 } },
  'DELETE /admin/v1/keys/{keyId}': {},
  'POST /admin/v1/accounts/{accountId}/users': {
    body: { email: 'new@example.com', password: 'correct horse battery' },
  },
  'PATCH /admin/v1/users/{userId}': { body: { status: 'disabled' } },
  'DELETE /admin/v1/users/{userId}': {},
  'POST /admin/v1/accounts/{accountId}/invitations': { body: { email: 'invited@example.com', role: 'member' } },
  'DELETE /admin/v1/invitations/{invitationId}': {},
  'DELETE /admin/v1/users/{userId}/identity': {
    unchanged: 'this user is bound to no identity; test/plugins/console/oidc.test.ts has one that is',
  },
  'POST /admin/v1/accounts/{accountId}/teams': { body: { name: 'another' } },
  'PATCH /admin/v1/teams/{teamId}': { body: { name: 'renamed' } },
  'DELETE /admin/v1/teams/{teamId}': {},
  'PUT /admin/v1/teams/{teamId}/members/{userId}': { body: {} },
  'DELETE /admin/v1/teams/{teamId}/members/{userId}': { after: ['PUT /admin/v1/teams/{teamId}/members/{userId}'] },
  'POST /admin/v1/accounts/{accountId}/budgets': { body: { scope: 'account', window: 'week', limitUsd: '1' } },
  'PATCH /admin/v1/budgets/{budgetId}': { body: { limitUsd: '2' } },
  'DELETE /admin/v1/budgets/{budgetId}': {},
  'POST /admin/v1/accounts/{accountId}/webhooks': { body: { url: WEBHOOK } },
  'PATCH /admin/v1/webhooks/{webhookId}': { body: { status: 'disabled' } },
  'DELETE /admin/v1/webhooks/{webhookId}': {},
  'POST /admin/v1/webhooks/{webhookId}/rotate': { body: { graceSeconds: 60 } },
  'POST /admin/v1/webhooks/{webhookId}/test': { body: {} },
  'POST /admin/v1/webhooks/{webhookId}/deliveries/{deliveryId}/redeliver': {
    body: {},
    path: { deliveryId: NO_ID },
    unchanged: 'nothing was delivered; test/plugins/alerts.test.ts repeats a delivery',
  },
  'POST /admin/v1/users/{userId}/sign-in-link': { body: {} },
  'POST /admin/v1/tokens': { body: { name: 'new', role: 'read', expiresAt: null } },
  'DELETE /admin/v1/tokens/{tokenId}': {
    path: { tokenId: NO_ID },
    unchanged: 'no token is known by that id; test/gateway/operator-tokens.test.ts revokes one',
  },
  'POST /admin/v1/config/reload': { body: {} },
  'POST /admin/v1/config/revisions': {
    body: { text: '' },
    unchanged: 'this gateway has files; test/long/configuration-revisions.test.ts has revisions',
  },
  'POST /admin/v1/config/revisions/{revision}/rollback': {
    body: {},
    path: { revision: '1' },
    unchanged: 'this gateway has files; test/long/configuration-revisions.test.ts has revisions',
  },
  'POST /admin/v1/catalogue/proposals': {
    body: PRICE_LIST,
  },
  'PATCH /admin/v1/catalogue/proposals/{proposalId}': {
    body: { refuse: [] },
    path: { proposalId: NO_ID },
    unchanged: 'no proposal is known by that id; test/gateway/catalogue.test.ts reviews one',
  },
  'POST /admin/v1/catalogue/proposals/{proposalId}/apply': {
    body: {},
    path: { proposalId: NO_ID },
    unchanged: 'this gateway has files; test/gateway/catalogue.test.ts applies one',
  },
  'POST /admin/v1/upstreams/{name}/disable': { body: {}, path: { name: 'one' } },
  'POST /admin/v1/upstreams/{name}/enable': {
    body: {},
    path: { name: 'one' },
    after: ['POST /admin/v1/upstreams/{name}/disable'],
  },
  'POST /admin/v1/upstreams/{name}/test': { body: {}, path: { name: 'one' } },
  'POST /admin/v1/upstreams/{name}/record': { body: {}, path: { name: 'one' } },
  // Keep the order of the routes, because each leaves what the next one changes.
  'POST /admin/v1/rollouts/{name}/pause': { body: {}, path: { name: 'one' } },
  'POST /admin/v1/rollouts/{name}/resume': { body: {}, path: { name: 'one' } },
  'POST /admin/v1/rollouts/{name}/promote': { body: {}, path: { name: 'one' } },
  'POST /admin/v1/rollouts/{name}/rollback': { body: {}, path: { name: 'one' } },
  'POST /admin/v1/sandboxes/places/{id}/lose': {
    body: {},
    path: { id: 'nowhere' },
    unchanged: 'no node of this gateway is gone; test/long/sandbox-nodes.test.ts has one that is',
  },
  'POST /admin/v1/ledger/repair': {
    body: {},
    unchanged: 'a sound ledger is not repaired; test/store/ledger/verify.test.ts breaks one',
  },
};

/** Routes that need a key and show objects that belong to no account. */
const NOBODYS = /\/v1\/models(\/\{id\.\.\.\})?$/;

/** Bodies that routes of the public listener accept; `undefined` for bytes, which have no fields. */
const PUBLIC_BODIES: Readonly<Record<string, object | undefined>> = {
  'POST /v1/quotes': { offeringId: SMALL_ID },
  'POST /v1/sandboxes': creation('another'),
  'POST /v1/sandboxes/{id}/suspend': {},
  'POST /v1/sandboxes/{id}/resume': {},
  'POST /v1/sandboxes/{id}/terminate': {},
  'POST /v1/sandboxes/{id}/commands': { command: 'true' },
  'POST /v1/sandboxes/{id}/commands/{commandId}/signal': { signal: 'SIGTERM' },
  'POST /v1/sandboxes/{id}/files': { path: 'a', content: 'b', encoding: 'utf8' },
  'PUT /v1/sandboxes/{id}/files/content': undefined,
  // The vendor's own API accepts no body there.
  ...Object.fromEntries(
    ['', '/default', '/quality', '/speed', '/cost'].map((prefix) => [
      `POST ${prefix}/v1/responses/{id}/cancel`,
      undefined,
    ]),
  ),
};

/** Queries for the routes that require one. */
const QUERIES: readonly (readonly [RegExp, string])[] = [
  [/\/files(\/content)?$/, '?path=a'],
  [/\/audit$/, '?kind=events'],
];

/** Queries for the routes of operators that require one. */
const ADMIN_QUERIES: Readonly<Record<string, (of: SandboxOwner) => string>> = {
  'GET /admin/v1/usage/report': ({ accountId }) => `?account=${accountId}&where=region%3Deu`,
  'GET /admin/v1/usage/replay': ({ proposalId }) => `?from=2026-01-01T00:00:00Z&proposal=${proposalId}`,
};

/** Routes whose id is that of a response. */
const RESPONSES = /\/v1\/responses\//;

/** Routes that answer only if a program listens in the sandbox. */
const PORTS = /\/ports\//;

const routes = ownRoutes();
const adminRoutes = routes.filter(({ listener, auth }) => listener === 'admin' && auth === undefined);
const keyRoutes = routes.filter((route) => route.listener === 'public' && route.auth === 'key');
const changing = adminRoutes.filter(({ method }) => method !== 'GET');

describe("the gateway's own API", () => {
  const upstream = useUpstream();
  let vendor: ReportVendor;
  let owner: SandboxOwner;
  let people = 0;
  let invited = 0;

  const gateway = useGateway(async () => {
    upstream.always(messagesAnswer());
    vendor = await startReportVendor('anthropic');
    const reporting = { credential: { env: 'VENDOR_ADMIN_KEY' }, url: vendor.url };
    return {
      ...SANDBOX_GATEWAY,
      env: { VENDOR_ADMIN_KEY: ADMIN_KEY },
      upstreams: { one: { url: upstream.url, reporting }, two: { url: upstream.url } },
      configure: (config) => {
        SANDBOX_GATEWAY.configure(config);
        const change = { upstreams: { model: MODEL, add: ['two'] } };
        const stages = [1, 2].map((share) => ({ share, hold: '1h' }));
        config['rollouts'] = { one: { change, stages } };
      },
    };
  });

  before(async () => {
    owner = await sandboxOwner();
  });
  after(async () => {
    await terminate(gateway, owner.key, owner.id);
    await vendor.close();
  });

  /** Makes a customer with an account, a key, a team, a budget, an invitation and a webhook but no user, because hashing passwords is slow. */
  async function newcomer(): Promise<Customer> {
    const of = await gateway.newCustomer('5');
    const path = `/admin/v1/accounts/${of.accountId}`;
    const team = await gateway.admin('POST', `${path}/teams`, { name: 'a team' });
    const budget = await gateway.admin('POST', `${path}/budgets`, { scope: 'account', window: 'day', limitUsd: '5' });
    invited += 1;
    const invitation = await gateway.admin('POST', `${path}/invitations`, {
      email: `invited-${invited}@example.com`,
      role: 'member',
    });
    const webhook = await gateway.admin('POST', `${path}/webhooks`, { url: WEBHOOK });
    const ids = { teamId: team.json.id, budgetId: budget.json.id, invitationId: invitation.json.id };
    return { ...of, ...ids, webhookId: webhook.json.id, userId: '', requestId: '' };
  }

  async function customer(): Promise<Customer> {
    const of = await newcomer();
    people += 1;
    const user = await gateway.admin('POST', `/admin/v1/accounts/${of.accountId}/users`, {
      email: `person-${people}@example.com`,
      password: 'correct horse battery',
      role: 'member',
    });
    const body = { model: MODEL, max_tokens: 10, messages: [{ role: 'user', content: 'hello' }] };
    const { headers } = await gateway.call('/v1/messages', { key: of.key, body });
    const requestId = String(headers['x-svc-request-id']);
    await gateway.record(of.key, requestId);
    return { ...of, userId: user.json.id, requestId };
  }

  async function sandboxOwner(): Promise<SandboxOwner> {
    const of = await customer();
    const { id } = await createSandbox(gateway, of.key, creation('own-api'));
    const { operations } = await waitForState(gateway, of.key, id, 'RUNNING');
    const ask = (path: string, body: object) => gateway.call(`/v1/sandboxes/${id}${path}`, { key: of.key, body });
    const { json } = await ask('/commands', { command: 'true' });
    await ask('/files', { path: 'a', content: 'b', encoding: 'utf8' });
    upstream.next(responsesAnswer());
    const kept = await gateway.call('/v1/responses', { key: of.key, body: { model: MODEL, input: 'hello' } });
    const responseId = String(kept.json.id);
    const proposal = await gateway.admin('POST', '/admin/v1/catalogue/proposals', PRICE_LIST);
    const ids = { id, commandId: json.commandId, operationId: operations[0].id, proposalId: proposal.json.id };
    return { ...of, ...ids, port: '3000', responseId };
  }

  async function change(name: string, of: Customer): Promise<void> {
    const example = CHANGES[name];
    assert.ok(example, `${name} is not in CHANGES: say there how it is asked`);
    for (const first of example.after ?? []) await change(first, of);
    const [method = '', path = ''] = name.split(' ');
    const answer = await gateway.admin(method, fill(path, { ...of, ...example.path }), example.body);
    assert.ok(answer.status < 300, `${name}: ${answer.status} ${answer.text}`);
  }

  /** Sends a request as the operator, or as the owner of the sandbox. */
  function ask({ listener, method }: Route, path: string, body?: object, headers: Record<string, string> = {}) {
    if (listener === 'admin') return gateway.admin(method, path, body, headers);
    return gateway.call(path, { method, key: owner.key, body, headers });
  }

  /** Returns the newest audit row. */
  const audited = async () => (await gateway.admin('GET', '/admin/v1/audit?limit=1')).json.items[0];

  it('is covered by these tests, which find at least ten routes that change something and six that take API keys', () => {
    assert.ok(changing.length >= 10 && keyRoutes.length >= 6);
  });

  describe('at every change by an operator', () => {
    for (const route of changing.filter((each) => CHANGES[nameOf(each)]?.unchanged === undefined)) {
      it(`adds a row to the audit log: ${nameOf(route)}`, async () => {
        const of = route.path.includes('{userId}') ? await customer() : await newcomer();
        const example = CHANGES[nameOf(route)];
        for (const first of example?.after ?? []) await change(first, of);
        const before = await audited();
        await change(nameOf(route), of);
        const row = await audited();
        assert.notDeepEqual(row, before, 'no audit row was written');
        assert.equal(row.actor, 'admin');
        assert.match(row.action, /^[a-z]+(\.[a-z]+)+$/);
        assert.match(row.subject, /^[a-z]+(:.+)?$/);
      });
    }
  });

  describe('at every route of operators', () => {
    let of: Customer;
    before(async () => {
      of = await customer();
    });

    for (const route of adminRoutes) {
      it(`demands the admin token on the admin listener, and answers 404 on the public one: ${nameOf(route)}`, async () => {
        const { method } = route;
        const example = CHANGES[nameOf(route)];
        const path = fill(route.path, { ...owner, ...of, name: 'one', revision: '1', ...example?.path });
        const sent = { method, ...(example?.body === undefined ? {} : { body: example.body }) };
        const token = `Bearer ${gateway.adminToken}`;
        const before = await audited();
        for (const headers of [{}, { 'x-api-key': of.key }, { authorization: token }]) {
          assert.equal((await gateway.call(path, { ...sent, headers })).status, 404);
        }
        for (const headers of [
          {},
          { 'x-api-key': of.key },
          { authorization: `Bearer ${of.key}` },
          { authorization: `${token}x` },
          { authorization: `Basic ${Buffer.from(`admin:${gateway.adminToken}`).toString('base64')}` },
        ]) {
          const answer = await fetch(gateway.adminUrl + path, {
            method,
            headers: { 'content-type': 'application/json', ...(headers as Record<string, string>) },
            body: sent.body === undefined ? null : JSON.stringify(sent.body),
          });
          // The gateway slows wrong tokens of one address after some.
          assert.ok(answer.status === 401 || answer.status === 429, String(answer.status));
          await answer.arrayBuffer();
        }
        assert.deepEqual(await audited(), before);
      });
    }

    // A gateway with files has no revision; test/long/configuration-revisions.test.ts has one.
    for (const route of adminRoutes.filter(({ method, path }) => method === 'GET' && !path.includes('{revision}'))) {
      it(`answers in the declared shape: ${nameOf(route)}`, async () => {
        const query = ADMIN_QUERIES[nameOf(route)]?.(owner) ?? '';
        const answer = await gateway.admin('GET', fill(route.path, { ...owner, name: 'one' }) + query);
        assert.equal(answer.status, 200, answer.text);
        expectDeclared(route, answer);
      });
    }

    for (const path of [
      '/users',
      '/apps',
      '/credentials',
      '/scopes',
      '/schemas',
      '/pipelines',
      '/policies',
      '/metrics',
    ]) {
      it(`demands the token at a path of Express Gateway too: ${path}`, async () => {
        assert.equal((await fetch(gateway.adminUrl + path)).status, 401);
        assert.equal((await gateway.call(path, { method: 'GET', key: of.key })).status, 404);
      });
    }
  });

  describe("with an account's key", () => {
    let own: Customer;
    before(async () => {
      own = await newcomer();
    });

    for (const route of keyRoutes.filter(({ path }) => !NOBODYS.test(path))) {
      const isOfOne = route.path.includes('{');
      if (!isOfOne && route.method !== 'GET') continue;
      it(`returns nothing of another account: ${nameOf(route)}`, async () => {
        const body = PUBLIC_BODIES[nameOf(route)];
        const sent = { method: route.method, ...(body === undefined ? {} : { body }) };
        const query = QUERIES.find(([path]) => path.test(route.path))?.[1] ?? '';
        const id = RESPONSES.test(route.path) ? owner.responseId : owner.id;
        const path = fill(route.path, { ...owner, id }) + query;
        const answer = await gateway.call(path, { ...sent, key: own.key });
        if (isOfOne) {
          assert.equal(answer.status, 404, answer.text);
          assert.equal(answer.json.error.type, 'not_found_error');
        }
        for (const id of [owner.accountId, owner.keyId, owner.id]) {
          assert.ok(!answer.text.replace(path, '').includes(id), answer.text);
        }
        if (route.method !== 'GET' || PORTS.test(path)) return;
        const seen = await gateway.call(path, { ...sent, key: owner.key });
        assert.ok(seen.status < 300, `its own key does not see it: ${seen.text}`);
        expectDeclared(route, seen);
      });
    }
  });

  describe('with a body', () => {
    const withBody: readonly (readonly [Route, object])[] = [
      ...changing.map((route) => [route, CHANGES[nameOf(route)]?.body] as const),
      ...keyRoutes.map((route) => [route, PUBLIC_BODIES[nameOf(route)]] as const),
    ].flatMap(([route, body]) => (body === undefined ? [] : [[route, body]]));

    it('has an example in these tests for every route that accepts a body', () => {
      const missing = [...changing, ...keyRoutes]
        .filter(({ method }) => ['POST', 'PUT', 'PATCH'].includes(method))
        .filter((route) => !(nameOf(route) in CHANGES || nameOf(route) in PUBLIC_BODIES));
      assert.deepEqual(missing.map(nameOf), []);
    });

    for (const [route, body] of withBody) {
      it(`refuses an unknown field and names it: ${nameOf(route)}`, async () => {
        const path = fill(route.path, { ...owner, name: 'one', revision: '1', deliveryId: NO_ID });
        const before = await audited();
        for (const field of ['balance', 'accountId', 'role']) {
          const sent = { ...body, [field]: '1' };
          const answer = await ask(route, path, sent);
          assert.equal(answer.status, 400, answer.text);
          assert.equal(answer.json.error.param, field);
        }
        assert.deepEqual(await audited(), before);
      });

      it(`accepts JSON only: ${nameOf(route)}`, async () => {
        const path = fill(route.path, { ...owner, name: 'one', revision: '1', deliveryId: NO_ID });
        const before = await audited();
        for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonp']) {
          const { status, json } = await ask(route, path, { ...body, balance: '1' }, { 'content-type': type });
          assert.deepEqual([status, json.error.code], [415, 'UNSUPPORTED_MEDIA_TYPE']);
        }
        assert.deepEqual(await audited(), before);
      });
    }
  });

  describe('with an impossible filter', () => {
    const forged = (...key: string[]) => Buffer.from(JSON.stringify(key)).toString('base64url');
    const nonsense = [
      '',
      '%00',
      '%zz',
      '%FF',
      '-1',
      '1e309',
      '99999999999999999999',
      "'",
      '0000-01-01T00:00:00Z',
      '9999-12-31T23:59:59-14:00',
      '2026-02-30T00:00:00Z',
      ...['2026-00-31T00:00:00.000Z', '0000-01-01T00:00:00.000Z', '+010000-01-01T00:00:00.000Z'].map((time) =>
        forged(time, 'req_x'),
      ),
      forged('999999999'),
      forged('x'),
      forged(),
    ];
    const lists = [...adminRoutes, ...keyRoutes].filter(({ method, query }) => method === 'GET' && query !== undefined);
    for (const route of lists) {
      it(`never answers with a 5xx status: ${nameOf(route)}`, async () => {
        const path = fill(route.path, { ...owner, name: 'one', revision: '1', deliveryId: NO_ID });
        const names = [...Object.keys(route.query ?? {}), ...(route.path === '/v1/sandboxes' ? ['metadata.a'] : [])];
        for (const filter of names.flatMap((name) => nonsense.map((value) => `?${name}=${value}`))) {
          const answer = await ask(route, path + filter);
          assert.ok(answer.status < 500, `${filter}: ${answer.text}`);
          if (answer.status >= 400) assert.equal(answer.headers['x-svc-source'], 'platform', filter);
        }
      });
    }
  });

  describe('at an unknown path', () => {
    for (const path of ['/', '/nothing', '/admin/v1/nothing', '/admin/v1/accounts/', '/admin/v1/accounts/%zz']) {
      it(`answers 404 in the envelope on the admin listener: ${path}`, async () => {
        const { status, json } = await gateway.admin('GET', path);
        assert.deepEqual([status, json?.error.code], [404, 'NOT_FOUND']);
      });
    }
  });

  describe('for an amount', () => {
    const fields = [
      ['POST', '/admin/v1/accounts/{accountId}/credits', 'amountUsd'],
      ['POST', '/admin/v1/accounts/{accountId}/debits', 'amountUsd'],
      ...['balanceLimit', 'dailyLimit', 'monthlyLimit'].flatMap((field) => [
        ['POST', '/admin/v1/accounts/{accountId}/keys', field],
        ['PATCH', '/admin/v1/keys/{keyId}', field],
      ]),
    ] as const;
    for (const [method = '', path = '', field = ''] of fields) {
      it(`accepts only a plain decimal text in range with at most 8 decimals: ${field} of ${method} ${path}`, async () => {
        const of = await newcomer();
        const before = await audited();
        for (const amount of [
          5,
          -1,
          true,
          {},
          '-1',
          '+1',
          '1.000000001',
          '90071992.54740992',
          '1e3',
          '',
          ' 1',
          'NaN',
        ]) {
          const sent = { ...CHANGES[`${method} ${path}`]?.body, [field]: amount };
          const { status, json } = await gateway.admin(method, fill(path, of), sent);
          assert.deepEqual([status, json.error?.param], [400, field], JSON.stringify(amount));
        }
        assert.deepEqual(await audited(), before);
      });
    }
  });
});

/** Expects the JSON of an answer to have the shape that its route declares. */
function expectDeclared(route: Route, { status, json }: Answered): void {
  const said = route.answers[status];
  assert.ok(said, `${nameOf(route)} answered ${status}, which is not in its answers`);
  if (said.schema !== undefined && said.mediaType === undefined) expectShape(said.schema, json, nameOf(route));
}
