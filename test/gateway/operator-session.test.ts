import assert from 'node:assert/strict';
import { Agent, request } from 'undici';
import { startGateway, type TestGateway } from '../support/gateway';

const PAGE = '/operator/api/session';

interface Sent {
  readonly method?: string;
  readonly body?: object;
  readonly headers?: Record<string, string>;
  /** An address of this machine. */
  readonly from?: string;
}

describe("The session of the operator's page", function () {
  this.timeout(90_000);
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway({ upstreams: { acme: { url: 'http://127.0.0.1:9' } } });
  });
  after(() => gateway.stop());

  async function send(path: string, { method = 'GET', body, headers = {}, from = '127.0.0.1' }: Sent = {}) {
    const dispatcher = new Agent({ localAddress: from });
    const answer = await request(`${gateway.adminUrl}${path}`, {
      dispatcher,
      method: method as 'GET',
      headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await answer.body.text();
    await dispatcher.close();
    return {
      status: answer.statusCode,
      headers: answer.headers,
      text,
      json: text === '' ? undefined : JSON.parse(text),
    };
  }

  /** The headers that the page's own scripts send. */
  const own = () => ({ 'sec-fetch-site': 'same-origin', origin: gateway.adminUrl });
  const signIn = (token: string, headers: Record<string, string> = own(), from?: string) =>
    send(PAGE, { method: 'POST', body: { token }, headers, ...(from !== undefined && { from }) });

  async function session() {
    const { status, headers, json } = await signIn(gateway.adminToken);
    assert.equal(status, 201);
    const said = String(headers['set-cookie']);
    const [cookie = ''] = said.split(';');
    return { cookie, said, csrf: json.csrfToken as string, json };
  }

  it('is a cookie that no script reads and no other site sends', async () => {
    const { said, json } = await session();
    assert.match(said, /^tollgate-operator=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/);
    assert.deepEqual(json.operator, { name: 'admin', role: 'owner' });
    assert.ok(!JSON.stringify(json).includes(gateway.adminToken));
  });

  it('may read the admin API, whose answers no cache may keep', async () => {
    const { cookie } = await session();
    const { status, headers } = await send('/admin/v1/accounts', { headers: { cookie } });
    assert.equal(status, 200);
    assert.equal(headers['cache-control'], 'no-store');
    assert.equal((await send('/admin/v1/accounts')).json.error.code, 'INVALID_API_KEY');
    const forged = { cookie: `tollgate-operator=${'x'.repeat(43)}` };
    assert.equal((await send('/admin/v1/accounts', { headers: forged })).json.error.code, 'NOT_SIGNED_IN');
  });

  it('may change something only from the page itself and with its CSRF token', async () => {
    const { cookie, csrf } = await session();
    const create = async (headers: Record<string, string>) =>
      (await send('/admin/v1/accounts', { method: 'POST', body: { name: 'made' }, headers: { cookie, ...headers } }))
        .status;
    assert.equal(await create({}), 403, 'neither');
    assert.equal(await create(own()), 403, 'no token');
    assert.equal(await create({ ...own(), 'x-csrf-token': `${csrf.slice(0, -1)}-` }), 403, 'a wrong token');
    assert.equal(await create({ 'x-csrf-token': csrf }), 403, 'no origin');
    assert.equal(await create({ ...own(), 'sec-fetch-site': 'cross-site', 'x-csrf-token': csrf }), 403, 'another site');
    // The console or a sandbox may be at another port of the same host, and browsers send the cookie from there too.
    assert.equal(await create({ ...own(), 'sec-fetch-site': 'same-site', 'x-csrf-token': csrf }), 403, 'another port');
    assert.equal(await create({ origin: gateway.url, 'x-csrf-token': csrf }), 403, "another port's origin");
    assert.equal(await create({ ...own(), 'x-csrf-token': csrf }), 201);
  });

  it('can begin only from the page itself', async () => {
    assert.equal((await signIn(gateway.adminToken, {})).status, 403);
    assert.equal((await signIn(gateway.adminToken, { origin: 'https://elsewhere.example' })).status, 403);
  });

  it('ends with the sign-out', async () => {
    const { cookie, csrf } = await session();
    assert.equal((await send(PAGE, { method: 'DELETE', headers: { cookie, ...own() } })).status, 403);
    const ended = await send(PAGE, { method: 'DELETE', headers: { cookie, ...own(), 'x-csrf-token': csrf } });
    assert.equal(ended.status, 204);
    assert.match(String(ended.headers['set-cookie']), /^tollgate-operator=; .*Max-Age=0/);
    for (const path of [PAGE, '/admin/v1/accounts'])
      assert.equal((await send(path, { headers: { cookie } })).json.error.code, 'NOT_SIGNED_IN');
  });

  it('is not valid at the public listener, which does not have the page', async () => {
    const { cookie, csrf } = await session();
    const headers = { cookie: cookie.replace('operator', 'session'), 'x-csrf-token': csrf };
    const asked = (path: string) => gateway.call(path, { method: 'GET', headers });
    assert.equal((await asked('/console/api/session')).status, 401);
    assert.equal((await asked('/operator')).status, 404);
    assert.equal((await asked('/admin/v1/accounts')).status, 404);
  });

  it('belongs to a page whose headers forbid frames of other sites, foreign content and referrers', async () => {
    const dispatcher = new Agent();
    const answer = await request(`${gateway.adminUrl}/operator/accounts`, { dispatcher });
    await answer.body.dump();
    await dispatcher.close();
    assert.match(String(answer.headers['content-security-policy']), /default-src 'none'.*frame-ancestors 'none'/);
    assert.equal(answer.headers['referrer-policy'], 'no-referrer');
  });

  it('ends when its token is replaced, but not with a restart', async () => {
    const { cookie } = await session();
    const { stores, dataFolder } = gateway;
    await gateway.stop();
    const options = { upstreams: { acme: { url: 'http://127.0.0.1:9' } }, stores, dataFolder };
    gateway = await startGateway(options);
    assert.equal(
      (await send('/admin/v1/accounts', { headers: { cookie } })).status,
      200,
      'a restart alone ends nothing',
    );
    await gateway.stop();
    gateway = await startGateway({ ...options, env: { ADMIN_TOKEN: 'another token of the tests' } });
    assert.equal((await send('/admin/v1/accounts', { headers: { cookie } })).status, 401);
  });
});
