import assert from 'node:assert/strict';
import { openEgress } from '../../../core/egress';
import { TestBrowser } from '../../support/console';
import { openDesk, type TestAnswer, type TestDesk } from '../../support/desk';
import { startProvider, type TestProvider } from '../../support/oidc';

const START = '/oidc/start?returnTo=/console/usage';

describe('signing in to the console with an identity provider', function () {
  this.timeout(60_000);
  let provider: TestProvider;
  let desk: TestDesk;
  let email: string;
  let userId: string;
  const egress = openEgress();

  before(async () => {
    provider = await startProvider();
    process.env['TEST_OIDC_SECRET'] = provider.clientSecret;
    const { url: issuer, clientId } = provider;
    const oidc = { name: 'Acme', issuer, clientId, clientSecret: { env: 'TEST_OIDC_SECRET' }, allowPrivate: true };
    desk = await openDesk('Postgres', { egress, settings: { oidc } });
    ({ userId, email } = await desk.person((await desk.customer()).accountId));
  });
  after(async () => {
    delete process.env['TEST_OIDC_SECRET'];
    await desk.close();
    await provider.close();
    await egress.close();
  });

  /** The whole journey; `change` may tamper with the way back. */
  async function travel(browser: TestBrowser, change: (back: URL) => void = () => {}): Promise<TestAnswer> {
    const start = await browser.get(START);
    assert.equal(start.status, 302);
    const back = await provider.visit(start.headers.get('location') ?? '');
    assert.equal(back.origin + back.pathname, `${desk.publicUrl}/console/api/oidc/callback`);
    change(back);
    return browser.get(back.pathname.replace('/console/api', '') + back.search);
  }

  it('is offered, and goes there with PKCE, state and nonce', async () => {
    const browser = new TestBrowser(desk.publicUrl);
    const { body } = await browser.get('/sign-in');
    assert.deepEqual(body, { password: true, oidc: { name: 'Acme', startUrl: '/console/api/oidc/start' } });
    const start = await browser.get(START);
    const url = new URL(start.headers.get('location') ?? '');
    for (const name of ['state', 'nonce', 'code_challenge'])
      assert.ok((url.searchParams.get(name) ?? '').length >= 43, name);
    assert.equal(url.searchParams.get('code_challenge_method'), 'S256');
    assert.match(
      start.headers.getSetCookie()[0] ?? '',
      /^tollgate-oidc=[\w-]+; Path=\/; HttpOnly; SameSite=Lax; Max-Age=600$/,
    );
  });

  for (const [where, onlyUserInfo] of [
    ['the ID token', false],
    ['the userinfo endpoint', true],
  ] as const) {
    it(`signs in whoever has the verified address of ${where}`, async () => {
      provider.person = { claims: { email: email.toUpperCase(), email_verified: true }, onlyUserInfo };
      const browser = new TestBrowser(desk.publicUrl);
      const answer = await travel(browser);
      assert.deepEqual([answer.status, answer.headers.get('location')], [303, '/console/usage']);
      const { status, body } = await browser.get('/session');
      assert.deepEqual([status, body.user.id], [200, userId]);
    });
  }

  it('tells the page why nobody is signed in', async () => {
    const verified = { email, email_verified: true };
    for (const [word, person, change] of [
      ['denied', { claims: verified, refuses: true }],
      ['unknown', { claims: { email: 'nobody@example.com', email_verified: true } }],
      ['unverified', { claims: { email } }],
      ['unverified', { claims: { email, email_verified: 'true' } }],
      ['unverified', { claims: {} }],
      ['failed', { claims: verified, forged: true }],
      ['failed', { claims: verified, instead: { nonce: 'another' } }],
      ['failed', { claims: verified, instead: { aud: 'another' } }],
      ['failed', { claims: verified, instead: { iss: 'https://evil.example' } }],
      ['failed', { claims: verified, instead: { exp: 1 } }],
      ['failed', { claims: verified }, (back: URL) => back.searchParams.set('code', 'made-up')],
      ['expired', { claims: verified }, (back: URL) => back.searchParams.set('state', 'made-up')],
    ] as const) {
      provider.person = person;
      const browser = new TestBrowser(desk.publicUrl);
      const answer = await travel(browser, change);
      const said = [answer.status, answer.headers.get('location')];
      assert.deepEqual(said, [303, `/console/sign-in#error=${word}`], JSON.stringify(person));
      assert.equal((await browser.get('/session')).status, 401);
    }
  });

  it('takes the way back from the browser that set out only, and once', async () => {
    provider.person = { claims: { email, email_verified: true } };
    const [browser, other] = [new TestBrowser(desk.publicUrl), new TestBrowser(desk.publicUrl)];
    const start = await browser.get(START);
    const back = await provider.visit(start.headers.get('location') ?? '');
    const path = back.pathname.replace('/console/api', '') + back.search;
    assert.equal((await other.get(path)).headers.get('location'), '/console/sign-in#error=expired');
    const { cookie } = browser;
    assert.equal((await browser.get(path)).headers.get('location'), '/console/usage');
    assert.equal((await other.get(path, { cookie })).headers.get('location'), '/console/sign-in#error=failed');
  });

  it('does not sign in who is disabled', async () => {
    const person = await desk.person((await desk.customer()).accountId);
    await desk.admin('PATCH', `/users/${person.userId}`, { status: 'disabled' });
    provider.person = { claims: { email: person.email, email_verified: true } };
    const answer = await travel(new TestBrowser(desk.publicUrl));
    assert.equal(answer.headers.get('location'), '/console/sign-in#error=unknown');
  });

  it('goes on to no other place than the console', async () => {
    for (const returnTo of [
      'https://evil.example',
      '//evil.example',
      '/console//evil.example',
      '/console/../v1',
      '/consolex',
      '/console\\evil',
      '',
    ])
      assert.equal(
        (await new TestBrowser(desk.publicUrl).get(`/oidc/start?returnTo=${encodeURIComponent(returnTo)}`)).status,
        400,
        returnTo,
      );
  });

  it('is not there where none is configured, and says so where it cannot be asked', async () => {
    const oidc = { name: 'Away', issuer: 'http://127.0.0.1:9', clientId: 'x' };
    const away = await openDesk('Postgres', { egress, settings: { oidc } });
    const { status, headers } = await new TestBrowser(away.publicUrl).get('/oidc/start');
    assert.deepEqual([status, headers.get('location')], [303, '/console/sign-in#error=failed']);
    await away.close();
    const none = await openDesk('Postgres');
    const browser = new TestBrowser(none.publicUrl);
    assert.deepEqual((await browser.get('/sign-in')).body, { password: true, oidc: null });
    for (const path of ['/oidc/start', '/oidc/callback']) assert.equal((await browser.get(path)).status, 404);
    await none.close();
  });
});
