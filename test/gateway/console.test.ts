import assert from 'node:assert/strict';
import { TestBrowser } from '../support/console';
import { MODEL } from '../support/gateway';
import { fill, nameOf, ownRoutes } from '../support/own-api';
import { createSandbox, creation, SANDBOX_GATEWAY, waitForState } from '../support/sandboxes';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { messagesAnswer } from '../support/upstream';

const PASSWORD = 'correct horse battery';
const BODY = { model: MODEL, max_tokens: 10, messages: [{ role: 'user', content: 'hello' }] };

describe('the interface of the console', () => {
  const upstream = useUpstream();
  let browser: TestBrowser;
  let stranger: TestBrowser;
  let customer: { accountId: string; keyId: string; key: string };

  const gateway = useGateway(() => {
    upstream.always(messagesAnswer());
    return {
      ...SANDBOX_GATEWAY,
      upstreams: { one: { url: upstream.url } },
      env: { PUBLIC_URL: 'https://gateway.example/' },
    };
  });

  before(async () => {
    customer = await gateway.newCustomer('5');
    browser = await signIn(customer.accountId, 'owner@example.com');
    stranger = await signIn((await gateway.newCustomer('5')).accountId, 'stranger@example.com');
  });

  async function signIn(accountId: string, email: string, role = 'owner'): Promise<TestBrowser> {
    await gateway.admin('POST', `/admin/v1/accounts/${accountId}/users`, { email, password: PASSWORD, role });
    const one = new TestBrowser(gateway.url);
    const { status, headers } = await one.signIn(email, PASSWORD);
    assert.equal(status, 201);
    // Browsers use TLS, so the cookie is never sent without TLS, and no other host of the domain can set it.
    assert.match(
      headers.getSetCookie()[0] ?? '',
      /^__Host-tollgate-session=[\w-]+; Path=\/; HttpOnly; SameSite=Strict; Secure; /,
    );
    return one;
  }

  it("creates a key that can make calls, shows a call's record within two seconds, and revokes the key", async () => {
    const { body: made } = await browser.send('POST', '/keys', { name: 'mine', balanceLimit: '1' });
    const empty = await browser.get(`/usage?key=${made.id}`);
    assert.deepEqual(empty.body.items, []);
    const called = await gateway.call('/v1/messages', { key: made.key, body: BODY });
    assert.equal(called.status, 200);
    const etag = empty.headers.get('etag') ?? '';
    const page = await until(
      'the record is shown',
      async () => {
        const answer = await browser.get(`/usage?key=${made.id}`, { 'if-none-match': etag });
        return answer.status === 304 ? undefined : answer;
      },
      2_000,
    );
    const [record] = page.body.items;
    assert.equal(record.cost, called.headers['x-ai-cost']);
    assert.equal(record.keyName, 'mine');
    const { body: totals } = await browser.get(`/usage/totals?key=${made.id}`);
    assert.deepEqual([totals.calls, totals.costUsd], [1, record.cost]);
    const { body: shown } = await browser.get(`/keys/${made.id}`);
    assert.deepEqual([shown.spentUsd, shown.lastUsedAt], [record.cost, record.createdAt]);
    const { body: one } = await browser.get(`/usage/${record.requestId}`);
    assert.deepEqual([one.price.input, one.price.isCurrent], ['3.00000000', true]);
    assert.equal((await stranger.get(`/usage/${record.requestId}`)).status, 404);
    assert.equal((await browser.send('DELETE', `/keys/${made.id}`)).status, 200);
    assert.equal((await gateway.call('/v1/messages', { key: made.key, body: BODY })).status, 401);
  });

  it('shows the public address, the models and the spending in the overview', async () => {
    const { body } = await browser.get('/overview?timeZone=Europe/Berlin');
    assert.equal(body.publicUrl, 'https://gateway.example');
    assert.deepEqual(
      body.models.map(({ name }: { name: string }) => name),
      [MODEL],
    );
    assert.equal(body.spend.todayUsd, body.spend.days[29].callsUsd);
  });

  it('accepts changes from the origin of PUBLIC_URL only', async () => {
    const from = (origin: string) => browser.send('POST', '/keys', { name: 'x' }, { origin });
    assert.equal((await from('https://gateway.example')).status, 201);
    for (const origin of [
      'https://gateway.example.evil.example',
      'http://gateway.example',
      'https://8080-id.gateway.example',
    ])
      assert.equal((await from(origin)).status, 403, origin);
  });

  it('shows a sandbox to its own account only, and terminates it on request', async () => {
    const { id } = await createSandbox(gateway, customer.key, creation('console'));
    await waitForState(gateway, customer.key, id, 'RUNNING');
    const { body: list } = await browser.get('/sandboxes?state=ACTIVE');
    assert.deepEqual([list.items[0].id, list.total, list.stateCounts.RUNNING], [id, 1, 1]);
    const { body: record } = await browser.get(`/sandboxes/${id}`);
    assert.equal(record.observedState, 'RUNNING');
    assert.ok(record.events.length > 0 && record.usageSegments.length > 0 && record.billingPeriods.length > 0);
    const { body: events } = await browser.get(`/sandboxes/${id}/audit?kind=events`);
    assert.equal(events.total, record.auditCounts.events);

    for (const [method, path] of [
      ['GET', ''],
      ['GET', '/audit'],
      ['DELETE', ''],
    ] as const) {
      const answer = await stranger.send(method, `/sandboxes/${id}${path}`);
      assert.deepEqual([answer.status, answer.body.error.code], [404, 'SANDBOX_NOT_FOUND']);
    }
    assert.equal((await stranger.get('/sandboxes')).body.total, 0);

    // A member sees the sandboxes of its own keys only, and a viewer changes none.
    const member = await signIn(customer.accountId, 'member@example.com', 'member');
    const viewer = await signIn(customer.accountId, 'viewer@example.com', 'viewer');
    for (const [method, path] of [
      ['GET', ''],
      ['GET', '/audit'],
      ['DELETE', ''],
    ] as const) {
      const answer = await member.send(method, `/sandboxes/${id}${path}`);
      assert.deepEqual([answer.status, answer.body.error.code], [404, 'SANDBOX_NOT_FOUND']);
    }
    assert.equal((await member.get('/sandboxes')).body.total, 0);
    assert.equal((await viewer.get('/sandboxes')).body.total, 1);
    assert.equal((await viewer.send('DELETE', `/sandboxes/${id}`)).body.error.code, 'FORBIDDEN');

    const forged = await browser.send('DELETE', `/sandboxes/${id}`, undefined, { origin: 'https://evil.example' });
    assert.equal(forged.status, 403);
    const ended = await browser.send('DELETE', `/sandboxes/${id}`);
    assert.deepEqual([ended.status, ended.body.type], [202, 'TERMINATE']);
    await until(
      'it has ended',
      async () => (await browser.get(`/sandboxes/${id}`)).body.observedState === 'TERMINATED',
      30_000,
    );
    assert.equal((await browser.send('DELETE', `/sandboxes/${id}`)).body.noop, true);
    const { body: overview } = await browser.get('/overview');
    const { body: last } = await browser.get(`/sandboxes/${id}`);
    assert.equal(overview.spend.days[29].sandboxesUsd, last.totalCost);
  });

  describe('at every route', () => {
    const routes = ownRoutes().filter((route) => route.listener === 'public' && route.auth === 'session');
    let ids: Readonly<Record<string, string>>;
    before(async () => {
      const { id } = await createSandbox(gateway, customer.key, creation('everything'));
      const { headers } = await gateway.call('/v1/messages', { key: customer.key, body: BODY });
      const requestId = String(headers['x-svc-request-id']);
      await gateway.record(customer.key, requestId);
      const make = async (path: string, body: object) => String((await browser.send('POST', path, body)).body.id);
      const webhookId = await make('/webhooks', { url: 'https://hooks.example/' });
      ids = {
        ...{ id, requestId, webhookId, keyId: customer.keyId },
        deliveryId: await make(`/webhooks/${webhookId}/test`, {}),
        teamId: await make('/teams', { name: 'a team' }),
        budgetId: await make('/budgets', { scope: 'account', window: 'day', limitUsd: '5' }),
        invitationId: await make('/invitations', { email: 'invited@example.com', role: 'viewer' }),
        userId: (await browser.get('/session')).body.user.id,
      };
    });
    after(() => browser.send('DELETE', `/sandboxes/${ids['id']}`));

    it('is tested in this file, which finds at least 18 routes', () => assert.ok(routes.length >= 18));

    for (const route of routes) {
      const { method } = route;
      const path = () => fill(route.path, ids).replace('/console/api', '');
      const change = route.path.endsWith('/rotate') ? { graceSeconds: 60 } : { name: 'changed' };
      const bodyOf = () => (['POST', 'PUT', 'PATCH'].includes(method) ? change : undefined);
      it(`demands a session: ${nameOf(route)}`, async () => {
        const { status, body } = await new TestBrowser(gateway.url).send(method, path(), bodyOf());
        assert.deepEqual([status, body.error.code], [401, 'NOT_SIGNED_IN']);
      });
      if (method === 'GET') {
        it(`answers in the shape that the route declares: ${nameOf(route)}`, async () => {
          assert.equal((await browser.get(path())).status, 200);
        });
      }
      if (method !== 'GET') {
        it(`refuses a change that a page of another origin sends: ${nameOf(route)}`, async () => {
          for (const headers of [
            { 'x-csrf-token': '' },
            { origin: 'https://evil.example' },
            { 'sec-fetch-site': 'same-site' },
          ]) {
            const { status } = await browser.send(method, path(), bodyOf(), headers as Record<string, string>);
            assert.equal(status, 403, JSON.stringify(headers));
          }
        });
      }
      if (route.path.includes('{')) {
        it(`returns 404 for objects of another account: ${nameOf(route)}`, async () => {
          assert.equal((await stranger.send(method, path(), bodyOf())).status, 404);
          const { accountId: _account, ...own } = (await browser.get(`/keys/${ids['keyId']}`)).body;
          assert.deepEqual([own.status, own.name === 'changed'], ['active', false]);
        });
      }
    }
  });

  it('does not accept an API key, and routes for API keys do not accept a console session', async () => {
    const asKey = await fetch(`${gateway.url}/console/api/keys`, { headers: { 'x-api-key': customer.key } });
    assert.equal(asKey.status, 401);
    const asSession = await fetch(`${gateway.url}/v1/usage`, { headers: { cookie: browser.cookie } });
    assert.equal(asSession.status, 401);
    const direct = await gateway.call('/console/api/session', { method: 'GET', headers: { host: 'one.p.localhost' } });
    assert.equal(direct.status, 404);
  });

  it('is absent from the OpenAPI document, because that document is for programs', async () => {
    const { json } = await gateway.call('/openapi.json', { method: 'GET' });
    assert.deepEqual(
      Object.keys(json.paths).filter((path) => path.startsWith('/console')),
      [],
    );
  });
});
