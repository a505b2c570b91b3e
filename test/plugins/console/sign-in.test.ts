import assert from 'node:assert/strict';
import { hashToken } from '../../../core/sign-in/sessions';
import { signedInBrowser, TestBrowser } from '../../support/console';
import { openDesk, PASSWORD, type TestDesk } from '../../support/desk';

for (const name of ['Postgres', 'PGlite'] as const) {
  describe(`signing in to the console (${name})`, function () {
    this.timeout(30_000);
    let desk: TestDesk;
    let person: { userId: string; email: string };
    let accountId: string;
    before(async () => {
      desk = await openDesk(name);
      ({ accountId } = await desk.customer('5'));
      person = await desk.person(accountId);
    });
    after(() => desk.close());

    /** Defines a test that runs on Postgres only, because checking a password is slow and does not depend on the store. */
    const onPostgres = (title: string, test: () => Promise<void>) =>
      name === 'Postgres' ? it(title, test) : undefined;
    const newBrowser = () => new TestBrowser(desk.publicUrl);
    const signedIn = () => signedInBrowser(desk.publicUrl, desk.database, accountId);

    it('sets a cookie that scripts cannot read, and stores only a hash of the cookie in the database', async () => {
      const browser = newBrowser();
      const { status, headers, body } = await browser.signIn(person.email.toUpperCase(), PASSWORD);
      assert.equal(status, 201);
      assert.equal(body.user.email, person.email);
      assert.equal(body.account.id, accountId);
      const [cookie = ''] = headers.getSetCookie();
      assert.match(cookie, /^tollgate-session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=604800$/);
      const token = /=([\w-]+);/.exec(cookie)?.[1] ?? '';
      const stored = JSON.stringify(await desk.database('user_sessions'));
      assert.ok(!stored.includes(token));
      assert.ok(stored.includes(hashToken(token)));
      assert.equal(headers.get('cache-control'), 'no-store');
      const shown = await browser.get('/session');
      assert.deepEqual(shown.body, body);
    });

    onPostgres('has one answer for a wrong password and for an address nobody has', async () => {
      const { userId, email } = await desk.person(accountId);
      const answers = [
        await newBrowser().signIn(email, 'a wrong password'),
        await newBrowser().signIn('nobody@example.com', PASSWORD),
        await newBrowser().signIn('no\0body@example.com', PASSWORD),
      ];
      await desk.admin('PATCH', `/users/${userId}`, { status: 'disabled' });
      answers.push(await newBrowser().signIn(email, PASSWORD));
      for (const { status, body, headers } of answers) {
        assert.deepEqual([status, body.error.code, headers.getSetCookie()], [401, 'SIGN_IN_FAILED', []]);
        assert.equal(body.error.message, answers[0]?.body.error.message);
      }
    });

    onPostgres('takes changes from its own page only', async () => {
      const browser = await signedIn();
      const from = (headers: Record<string, string>) => browser.send('POST', '/keys', { name: 'forged' }, headers);
      for (const headers of [
        { origin: 'https://evil.example' },
        { origin: 'null' },
        { origin: '' },
        { 'sec-fetch-site': 'cross-site' },
        { 'sec-fetch-site': 'same-site' },
        { 'sec-fetch-site': 'none' },
        { 'x-csrf-token': '' },
        { 'x-csrf-token': 'x'.repeat(43) },
      ]) {
        const { status, body } = await from(headers as Record<string, string>);
        assert.deepEqual([status, body.error.code], [403, 'FORBIDDEN'], JSON.stringify(headers));
      }
      assert.equal((await from({ 'sec-fetch-site': 'same-origin', origin: '' })).status, 201);
      const { body: listed } = await browser.get('/keys');
      assert.equal(listed.items.filter((key: { name: string }) => key.name === 'forged').length, 1);
      const form = await newBrowser().send(
        'POST',
        '/session',
        { email: person.email, password: PASSWORD },
        { origin: 'https://evil.example' },
      );
      assert.deepEqual([form.status, form.headers.getSetCookie()], [403, []]);
    });

    onPostgres('takes no token of another session', async () => {
      const [one, other] = [await signedIn(), await signedIn()];
      const { status } = await one.send('DELETE', '/session', undefined, { 'x-csrf-token': other.csrfToken });
      assert.equal(status, 403);
      assert.equal((await one.get('/session')).status, 200);
    });

    onPostgres('ends with the sign-out: the old cookie is worth nothing', async () => {
      const [browser, elsewhere] = [await signedIn(), await signedIn()];
      const { cookie } = browser;
      const out = await browser.send('DELETE', '/session');
      assert.equal(out.status, 204);
      assert.match(out.headers.getSetCookie()[0] ?? '', /^tollgate-session=; .*Max-Age=0$/);
      assert.equal((await browser.get('/session', { cookie })).status, 401);
      assert.equal((await elsewhere.get('/session')).status, 200);
    });

    onPostgres('ends everywhere, and with a new password everywhere else', async () => {
      const { email } = await desk.person(accountId);
      const browsers = [newBrowser(), newBrowser(), newBrowser()] as const;
      for (const browser of browsers) await browser.signIn(email, PASSWORD);
      const [here, there, third] = browsers;
      const before = here.cookie;
      const wrong = await here.send('PUT', '/password', { current: 'a wrong one', password: 'another long password' });
      assert.deepEqual([wrong.status, wrong.body.error.code], [401, 'SIGN_IN_FAILED']);
      const short = await here.send('PUT', '/password', { current: PASSWORD, password: 'short' });
      assert.deepEqual([short.status, short.body.error.param], [400, 'password']);
      const changed = await here.send('PUT', '/password', { current: PASSWORD, password: 'another long password' });
      assert.equal(changed.status, 200);
      assert.notEqual(here.cookie, before);
      assert.equal((await here.get('/session')).status, 200);
      assert.equal((await there.get('/session')).status, 401);
      assert.equal((await newBrowser().signIn(email, PASSWORD)).status, 401);
      assert.equal((await third.signIn(email, 'another long password')).status, 201);
      assert.equal((await here.send('DELETE', '/sessions')).status, 204);
      assert.equal((await third.get('/session')).status, 401);
    });

    it('starts a session that ends some time after its last use, and at the latest some time after its start', async () => {
      for (const [column, change] of [
        ['used_at', "used_at - interval '12 hours 1 second'"],
        ['expires_at', "now() - interval '1 second'"],
      ] as const) {
        const browser = await signedIn();
        const token_hash = hashToken(browser.cookie.split('=')[1] ?? '');
        await desk
          .database('user_sessions')
          .where({ token_hash })
          .update({ [column]: desk.database.raw(change) });
        assert.equal((await browser.get('/session')).status, 401, column);
      }
      const browser = await signedIn();
      const token_hash = hashToken(browser.cookie.split('=')[1] ?? '');
      const anHourAgo = desk.database.raw("now() - interval '1 hour'");
      await desk.database('user_sessions').where({ token_hash }).update({ used_at: anHourAgo });
      assert.equal((await browser.get('/session')).status, 200);
      const row = await desk.database('user_sessions').where({ token_hash }).first();
      assert.ok(Date.now() - row.used_at.getTime() < 30_000);
    });

    it('by a one-time link works once, and fails after the link has expired or the password was changed', async () => {
      const { userId, email } = await desk.person(accountId);
      const link = async () => {
        const { status, body } = await desk.admin('POST', `/users/${userId}/sign-in-link`, {});
        assert.equal(status, 201);
        assert.match(body.path, /^\/console\/sign-in#token=[\w-]{43}$/);
        return String(body.path).split('token=')[1] ?? '';
      };
      const token = await link();
      assert.ok(!JSON.stringify(await desk.database('sign_in_links')).includes(token));
      const answers = await Promise.all([1, 2, 3, 4].map(() => newBrowser().send('POST', '/session/link', { token })));
      assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 401, 401, 401]);
      assert.equal(answers.find(({ status }) => status === 201)?.body.user.email, email);

      const old = await link();
      await desk.database('sign_in_links').update({ expires_at: desk.database.raw("now() - interval '1 second'") });
      assert.equal((await newBrowser().send('POST', '/session/link', { token: old })).status, 401);
      const replaced = await link();
      await desk.admin('PATCH', `/users/${userId}`, { password: 'another long password' });
      assert.equal((await newBrowser().send('POST', '/session/link', { token: replaced })).status, 401);
      await desk.admin('PATCH', `/users/${userId}`, { status: 'disabled' });
      assert.equal((await desk.admin('POST', `/users/${userId}/sign-in-link`, {})).status, 409);
    });

    onPostgres('leaves a row in the audit log', async () => {
      const { body } = await desk.admin('GET', `/audit?subject=user:${person.userId}&action=session.begin`);
      assert.ok(body.items.length > 0);
      assert.deepEqual([body.items[0].actor, body.items[0].after], [`user:${person.userId}`, { way: 'password' }]);
    });

    onPostgres('is slowed for whoever guesses, and then the right password does not help', async () => {
      const { email } = await desk.person(accountId);
      await desk.database('sign_in_attempts').delete();
      const answers: number[] = [];
      const guesses = Array.from({ length: 7 }, () => newBrowser().signIn(email, 'a guess'));
      for (const guess of guesses) answers.push((await guess).status);
      assert.deepEqual(answers.sort(), [401, 401, 401, 401, 401, 429, 429]);
      await desk.database('sign_in_attempts').update({ next_at: desk.database.raw("now() + interval '20 seconds'") });
      const { status, body, headers } = await newBrowser().signIn(email, PASSWORD);
      assert.deepEqual([status, body.error.code], [429, 'SIGN_IN_SLOWED']);
      assert.ok(body.error.details.retryAfterSeconds >= 15);
      assert.equal(headers.get('retry-after'), String(body.error.details.retryAfterSeconds));
      await desk.database('sign_in_attempts').delete();
    });
  });
}
