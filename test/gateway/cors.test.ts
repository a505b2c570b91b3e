import { expect } from 'chai';
import { request } from 'undici';
import { ask, askIn, PATH, PROTOCOLS } from '../support/calls';
import { DIALECT } from '../support/dialects';
import { failToStart, startGateway, type TestGateway } from '../support/gateway';
import { startUpstream, type TestUpstream } from '../support/upstream';

const APP = 'https://app.example.com';
const OTHER = 'https://other.example.com';
const DOMAIN = 'gateway.example';

describe('Pages of other origins', () => {
  let upstream: TestUpstream;
  let gateway: TestGateway;
  let key: string;

  const start = async (origins?: readonly string[]) => {
    gateway = await startGateway({
      upstreams: { acme: { url: upstream.url } },
      ...(origins !== undefined && { system: { cors: { origins } } }),
      env: { DIRECT_DOMAIN: DOMAIN },
    });
    ({ key } = await gateway.newCustomer('10'));
  };
  before(async () => {
    upstream = await startUpstream();
  });
  after(() => upstream?.stop());
  beforeEach(() => upstream.reset());

  /** Sends the preflight request of a browser for a call with a key and a JSON body. */
  async function preflight(path: string, origin: string, headers: Record<string, string> = {}) {
    const answer = await request(`${gateway.url}${path}`, {
      method: 'OPTIONS',
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization,content-type,x-stainless-lang',
        ...headers,
      },
    });
    await answer.body.dump();
    return { status: answer.statusCode, headers: answer.headers };
  }

  function expectNothing(headers: Record<string, unknown>) {
    expect(Object.keys(headers).filter((name) => name.startsWith('access-control-'))).to.deep.equal([]);
  }

  describe('that `cors.origins` names', () => {
    before(() => start([APP, 'http://localhost:3000']));
    after(() => gateway?.stop());

    for (const path of [
      ...['/v1/messages', '/v1/chat/completions', '/cost/v1/chat/completions', '/v1/messages/count_tokens'],
      ...['/v1/models', '/v1/balance', '/v1/usage.csv', '/v1/sandboxes/x/commands', '/openapi.json', '/nothing'],
    ]) {
      it(`can call ${path}`, async () => {
        const { status, headers } = await preflight(path, APP);
        expect(status).to.equal(204);
        expect(headers).to.include({
          'access-control-allow-origin': APP,
          'access-control-allow-headers': 'authorization,content-type,x-stainless-lang',
          vary: 'Origin',
        });
        expect(headers['access-control-allow-methods']).to.include('POST').and.include('DELETE');
        expect(headers).not.to.have.property('access-control-allow-credentials');
        expect(upstream.calls).to.have.length(0);
      });
    }

    for (const protocol of PROTOCOLS) {
      it(`can read the answer to a ${protocol} call and the gateway's headers`, async () => {
        upstream.next(DIALECT[protocol].answer());
        const body = askIn(protocol);
        const { headers } = await gateway.call(PATH[protocol], { key, headers: { origin: APP }, body });
        expect(headers).to.include({ 'access-control-allow-origin': APP, vary: 'Origin' });
        const exposed = String(headers['access-control-expose-headers']).toLowerCase().split(', ');
        const ours = Object.keys(headers).filter((name) => /^(x-(svc|routing|ai)-|request-id|x-request-id)/.test(name));
        expect(ours).to.include.members(['x-ai-cost', 'x-routing-provider', 'x-svc-request-id', 'request-id']);
        expect(exposed).to.include.members(ours);
      });
    }

    for (const [what, path, options, status] of [
      ['a wrong key', '/v1/messages', { key: 'sk-svc-wrong', body: ask() }, 401],
      ['an unknown model', '/v1/messages', { body: ask({ model: 'nobody' }) }, 400],
      ['a wrong method', '/v1/messages', { method: 'PUT', body: {} }, 405],
      ['an unknown path', '/nothing', { method: 'GET' }, 404],
      ["a wrong key at the gateway's own API", '/v1/balance', { method: 'GET', key: 'sk-svc-wrong' }, 401],
    ] as const) {
      it(`can read the error answer to ${what}`, async () => {
        const answer = await gateway.call(path, { key, ...options, headers: { origin: APP } });
        expect(answer.status).to.equal(status);
        expect(answer.headers).to.include({ 'access-control-allow-origin': APP });
        expect(answer.headers['access-control-expose-headers']).to.include('X-SVC-Request-Id');
      });
    }

    for (const origin of [OTHER, 'null', `${APP}.evil.example`, 'http://app.example.com', `${APP}:8443`]) {
      it(`do not include pages of ${origin}, which get no CORS headers`, async () => {
        const { status, headers } = await preflight('/v1/messages', origin);
        expect(status).to.equal(405);
        expectNothing(headers);
        const answer = await gateway.call('/v1/balance', { method: 'GET', key, headers: { origin } });
        expect(answer.status).to.equal(200);
        expectNothing(answer.headers);
        expect(answer.headers, 'no cache gives it to another page').to.include({ vary: 'Origin' });
      });
    }

    for (const path of ['/console', '/console/api/session', '/console/api/keys']) {
      it(`cannot call ${path}`, async () => {
        const { status, headers } = await preflight(path, APP);
        expect(status).not.to.equal(204);
        expectNothing(headers);
        expectNothing((await gateway.call(path, { method: 'GET', headers: { origin: APP } })).headers);
      });
    }

    it('cannot call the admin listener', async () => {
      const answer = await gateway.admin('GET', '/admin/v1/accounts', undefined, { origin: APP });
      expect(answer.status).to.equal(200);
      expectNothing(answer.headers);
    });
  });

  describe('with `cors.origins: ["*"]`', () => {
    before(() => start(['*']));
    after(() => gateway?.stop());

    it('can make calls and read answers, but without cookies', async () => {
      const { status, headers } = await preflight('/v1/chat/completions', OTHER);
      expect(status).to.equal(204);
      expect(headers).to.include({ 'access-control-allow-origin': '*' });
      expect(headers).not.to.have.property('access-control-allow-credentials');
      const answer = await gateway.call('/v1/balance', { method: 'GET', key, headers: { origin: 'null' } });
      expect(answer.headers).to.include({ 'access-control-allow-origin': '*' });
    });
  });

  describe('without `cors.origins`', () => {
    before(() => start());
    after(() => gateway?.stop());

    it('can neither make calls nor read answers', async () => {
      const { status, headers } = await preflight('/v1/chat/completions', APP);
      expect(status).to.equal(405);
      expectNothing(headers);
      const answer = await gateway.call('/v1/balance', { method: 'GET', key, headers: { origin: APP } });
      expectNothing(answer.headers);
      expect(answer.headers).not.to.have.property('vary');
    });
  });

  for (const origin of [
    'app.example.com',
    `${APP}/`,
    `${APP}/path`,
    `${APP}:443`,
    'https://App.example.com',
    'https://*.x.y',
  ]) {
    it(`make the gateway fail to start if \`cors.origins\` contains the invalid origin ${origin}`, async () => {
      const { code, output } = await failToStart({
        upstreams: { acme: { url: upstream.url } },
        system: { cors: { origins: [origin] } },
      });
      expect(code).to.equal(78);
      expect(output)
        .to.include('cors.origins[0]')
        .and.include('expected an origin such as https://app.example.com, or *');
    });
  }
});
