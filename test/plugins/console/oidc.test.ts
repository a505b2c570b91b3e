import assert from 'node:assert/strict';
import { GatewayError } from '../../../core/base/errors';
import { beginSession } from '../../../core/sign-in/sessions';
import { findBySignIn, findUser } from '../../../core/sign-in/users';
import { openEgress } from '../../../core/wire/egress';
import { signedInBrowser, TestBrowser } from '../../support/console';
import { openDesk, PASSWORD, type TestAnswer, type TestDesk } from '../../support/desk';
import { startProvider, type TestProvider } from '../../support/oidc';
import { rejection } from '../../support/rejection';
import { listen } from '../../support/serve';

const START = '/oidc/start?returnTo=/console/usage';

describe('signing in to the console with an identity provider', function () {
  this.timeout(60_000);
  let provider: TestProvider;
  let desk: TestDesk;
  let email: string;
  let userId: string;
  const egress = openEgress();
  let oidc: object;

  before(async () => {
    provider = await startProvider();
    process.env['TEST_OIDC_SECRET'] = provider.clientSecret;
    const { url: issuer, clientId } = provider;
    oidc = { name: 'Acme', issuer, clientId, clientSecret: { env: 'TEST_OIDC_SECRET' }, allowPrivate: true };
    desk = await openDesk('Postgres', { egress, settings: { oidc } });
    ({ userId, email } = await desk.person((await desk.customer()).accountId));
  });
  after(async () => {
    delete process.env['TEST_OIDC_SECRET'];
    await desk.close();
    await provider.close();
    await egress.close();
  });

  /** Runs the whole sign-in; `change` may modify the return address. */
  async function travel(browser: TestBrowser, change: (back: URL) => void = () => {}): Promise<TestAnswer> {
    const start = await browser.get(START);
    assert.equal(start.status, 302);
    const back = await provider.visit(start.headers.get('location') ?? '');
    assert.equal(back.origin + back.pathname, `${desk.publicUrl}/console/api/oidc/callback`);
    change(back);
    return browser.get(back.pathname.replace('/console/api', '') + back.search);
  }

  it('is offered on the sign-in page, and redirects the browser to the provider with PKCE, state and nonce', async () => {
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
    it(`signs in the user whose verified e-mail address is in the answer of ${where}`, async () => {
      provider.person = { claims: { email: email.toUpperCase(), email_verified: true }, onlyUserInfo };
      const browser = new TestBrowser(desk.publicUrl);
      const answer = await travel(browser);
      assert.deepEqual([answer.status, answer.headers.get('location')], [303, '/console/usage']);
      const { status, body } = await browser.get('/session');
      assert.deepEqual([status, body.user.id], [200, userId]);
    });
  }

  it('tells the page why a sign-in failed', async () => {
    const verified = { email, email_verified: true };
    for (const [word, person, change] of [
      ['denied', { claims: verified, refuses: true }],
      ['unknown', { claims: { sub: 'stranger', email: 'nobody@example.com', email_verified: true } }],
      ['unverified', { claims: { sub: 'stranger', email } }],
      ['unverified', { claims: { sub: 'stranger', email, email_verified: 'true' } }],
      ['unverified', { claims: { sub: 'stranger' } }],
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

  it('accepts the return from the provider only from the browser that started the sign-in, and only once', async () => {
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

  it('does not sign in a disabled user', async () => {
    const person = await desk.person((await desk.customer()).accountId);
    await desk.admin('PATCH', `/users/${person.userId}`, { status: 'disabled' });
    provider.person = { claims: { sub: 'disabled', email: person.email, email_verified: true } };
    const answer = await travel(new TestBrowser(desk.publicUrl));
    assert.equal(answer.headers.get('location'), '/console/sign-in#error=unknown');
    const { body } = await desk.admin('PATCH', `/users/${person.userId}`, { status: 'active' });
    assert.equal(body.identity, null);
  });

  describe("with users bound to the provider's subjects (`sub`)", () => {
    const newPerson = async () => desk.person((await desk.customer()).accountId);

    /** Runs a sign-in with this subject and address. Returns the id of the signed-in user, or the reason for the refusal. */
    async function signIn(sub: string, address?: string, isVerified = true): Promise<string> {
      provider.person = {
        claims: { sub, ...(address !== undefined && { email: address, email_verified: isVerified }) },
      };
      const browser = new TestBrowser(desk.publicUrl);
      const location = (await travel(browser)).headers.get('location') ?? '';
      if (location !== '/console/usage') return location.replace('/console/sign-in#error=', '');
      return (await browser.get('/session')).body.user.id;
    }

    it('refuses another subject with the same verified address', async () => {
      const ada = await newPerson();
      assert.equal(await signIn('ada', ada.email), ada.userId);
      assert.equal(await signIn('successor of ada', ada.email), 'bound');
      assert.equal(await signIn('ada', ada.email), ada.userId);
    });

    it('ends the password and the sessions of a user that an invitation made, because the link proves no address', async () => {
      const { accountId } = await desk.customer();
      const address = 'invited-elsewhere@example.com';
      const invited = await desk.admin('POST', `/accounts/${accountId}/invitations`, {
        email: address,
        role: 'member',
      });
      const token = String(invited.body.path).split('#token=')[1];
      const browser = new TestBrowser(desk.publicUrl);
      const accepted = await browser.send('POST', '/session/invitation', { token, password: PASSWORD });
      assert.equal(accepted.status, 201);
      assert.equal(await signIn('owner of the address', address), accepted.body.user.id);
      assert.equal((await browser.get('/session')).status, 401);
      assert.equal(await findBySignIn(desk.database, address, PASSWORD), undefined);
      const made = await newPerson();
      assert.equal(await signIn('made by an operator', made.email), made.userId);
      assert.equal((await findBySignIn(desk.database, made.email, PASSWORD))?.id, made.userId);
    });

    it('signs a bound subject in as its own user, whatever address it has', async () => {
      const [bob, carol] = [await newPerson(), await newPerson()];
      assert.equal(await signIn('bob', bob.email), bob.userId);
      assert.equal(await signIn('bob', carol.email), bob.userId);
      assert.equal(await signIn('bob', 'bob@elsewhere.example'), bob.userId);
      assert.equal(await signIn('bob', carol.email, false), bob.userId);
      assert.equal(await signIn('bob'), bob.userId);
      assert.equal(await signIn('carol', carol.email), carol.userId);
    });

    it("binds only one of two subjects that arrive with the user's address at the same moment", async () => {
      const { userId, email: address } = await newPerson();
      const backs: [TestBrowser, string][] = [];
      for (const sub of ['first', 'second', 'first', 'second']) {
        provider.person = { claims: { sub, email: address, email_verified: true } };
        const browser = new TestBrowser(desk.publicUrl);
        const back = await provider.visit((await browser.get(START)).headers.get('location') ?? '');
        backs.push([browser, back.pathname.replace('/console/api', '') + back.search]);
      }
      const answers = await Promise.all(backs.map(([browser, path]) => browser.get(path)));
      const locations = answers.map(({ headers }) => headers.get('location'));
      const refused = '/console/sign-in#error=bound';
      assert.deepEqual([...locations].sort(), ['/console/usage', '/console/usage', refused, refused].sort());
      assert.equal(locations[0], locations[2]);
      const { body } = await desk.admin('GET', `/audit?subject=user:${userId}&action=user.bind`);
      assert.equal(body.items.length, 1);
    });

    it('records in the audit log which subject was bound, and shows it to operators', async () => {
      const { userId, email: address } = await newPerson();
      await signIn('dora', address);
      const identity = { issuer: provider.url, subject: 'dora' };
      const { body: rows } = await desk.admin('GET', `/audit?subject=user:${userId}&action=user.bind`);
      assert.deepEqual([rows.items[0].actor, rows.items[0].after], [`user:${userId}`, identity]);
      const { body: user } = await desk.admin('PATCH', `/users/${userId}`, { status: 'active' });
      const { boundAt, ...shown } = user.identity;
      assert.deepEqual(shown, identity);
      assert.ok(Date.now() - Date.parse(boundAt) < 60_000);
    });

    it('ends the sessions of a user that an operator unbinds, and binds the next subject', async () => {
      const { userId, email: address } = await newPerson();
      assert.equal(await signIn('erin', address), userId);
      const { status, body } = await desk.admin('DELETE', `/users/${userId}/identity`);
      assert.deepEqual([status, body.id, body.identity], [200, userId, null]);
      assert.deepEqual(await desk.database('user_sessions').where({ user_id: userId }), []);
      assert.equal(await signIn('erin again', address), userId);
      assert.equal(await signIn('erin', address), 'bound');
      const { body: rows } = await desk.admin('GET', `/audit?subject=user:${userId}&action=user.unbind`);
      const [{ actor, before, after }] = rows.items;
      assert.deepEqual([actor, before, after], ['admin', { issuer: provider.url, subject: 'erin' }, null]);
    });

    it('starts no session for a subject that was unbound after it was recognised', async () => {
      const { userId, email: address } = await newPerson();
      await signIn('frank', address);
      const user = await findUser(desk.database, userId);
      await desk.admin('DELETE', `/users/${userId}/identity`);
      const times = { idleMs: 60_000, lifetimeMs: 60_000 };
      const error = await rejection(beginSession(desk.database, user, 'oidc', times));
      assert.ok(error instanceof GatewayError && error.code === 'SIGN_IN_FAILED');
    });
  });

  it('redirects only to pages of the console', async () => {
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

  it('is not offered without configuration, and reports an error if the provider is unreachable', async () => {
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

  it('repeats a failed discovery of the provider only after a while, not for each visitor', async () => {
    let asked = 0;
    const broken = await listen((_request, response) => {
      asked += 1;
      response.writeHead(500).end();
    });
    const oidc = { name: 'Broken', issuer: broken.url, clientId: 'x', allowPrivate: true };
    const visited = await openDesk('Postgres', { egress, settings: { oidc } });
    for (let visit = 0; visit < 10; visit += 1) {
      const { headers } = await new TestBrowser(visited.publicUrl).get('/oidc/start');
      assert.equal(headers.get('location'), '/console/sign-in#error=failed');
    }
    assert.equal(asked, 1);
    await visited.close();
    await broken.close();
  });

  it('is slowed for a network address that starts or finishes too many sign-ins, which then reach no provider', async () => {
    const visited = await openDesk('Postgres', { egress, settings: { oidc } });
    const attempts = visited.database('sign_in_attempts');
    await attempts.clone().delete();
    const wordOf = async (path: string, browser = new TestBrowser(visited.publicUrl)) =>
      (await browser.get(path)).headers.get('location') ?? '';
    const person = await visited.person((await visited.customer()).accountId);
    provider.person = { claims: { sub: 'frequent', email: person.email, email_verified: true } };
    const browser = new TestBrowser(visited.publicUrl);
    const signIn = async () => {
      const back = await provider.visit(await wordOf(START, browser));
      return wordOf(back.pathname.replace('/console/api', '') + back.search, browser);
    };
    for (let turn = 0; turn < 35; turn += 1) assert.equal(await signIn(), '/console/usage');
    const back = await provider.visit(await wordOf(START, browser));
    for (let start = 0; start < 59; start += 1) assert.match(await wordOf(START), /code_challenge/);
    const slowed = '/console/sign-in#error=slowed';
    assert.equal(await wordOf(START), slowed);
    assert.equal(await wordOf(back.pathname.replace('/console/api', '') + back.search, browser), slowed);
    await attempts.clone().delete();
    assert.equal(await signIn(), '/console/usage');
    await visited.close();
  });

  describe('without passwords', () => {
    let only: TestDesk;
    before(async () => {
      only = await openDesk('Postgres', { egress, settings: { oidc, passwordSignIn: false } });
    });
    after(() => only.close());

    it('the identity provider is the only method that the page offers', async () => {
      const { body } = await new TestBrowser(only.publicUrl).get('/sign-in');
      assert.deepEqual(body, { password: false, oidc: { name: 'Acme', startUrl: '/console/api/oidc/start' } });
    });

    it('the gateway refuses even the right password, names the provider, and counts no failed attempt', async () => {
      const person = await only.person((await only.customer()).accountId);
      for (const password of [PASSWORD, 'a wrong password']) {
        const { status, body, headers } = await new TestBrowser(only.publicUrl).signIn(person.email, password);
        assert.deepEqual([status, body.error.code, headers.getSetCookie()], [403, 'FORBIDDEN', []]);
        assert.match(body.error.message, /Password sign-in is disabled.*Acme/);
      }
      assert.deepEqual(await only.database('sign_in_attempts'), []);
    });

    it('the gateway refuses to change a password, and the page does not offer the change', async () => {
      const { accountId } = await only.customer();
      const { email } = await only.person(accountId);
      const browser = await signedInBrowser(only.publicUrl, only.database, accountId);
      assert.equal((await browser.get('/session')).body.passwordSignIn, false);
      const answer = await browser.send('PUT', '/password', { current: PASSWORD, password: 'another long password' });
      assert.deepEqual([answer.status, answer.body.error.code], [403, 'FORBIDDEN']);
      assert.ok(await findBySignIn(only.database, email, PASSWORD));
    });

    it("users can sign in with an operator's one-time link while the provider is unavailable", async () => {
      const { userId } = await only.person((await only.customer()).accountId);
      const { body: link } = await only.admin('POST', `/users/${userId}/sign-in-link`, {});
      const token = link.path.replace('/console/sign-in#token=', '');
      const { status, body } = await new TestBrowser(only.publicUrl).send('POST', '/session/link', { token });
      assert.deepEqual([status, body.user.id], [201, userId]);
    });
  });
});
