import { expect } from 'chai';
import type { TestConsole } from '../support/console-page';

/** Declares how sessions of the console begin and end. */
export function sessions(the: () => TestConsole): void {
  describe('a session of the console', () => {
    it('ends with the sign-out, after which its cookie is refused', async () => {
      await using window = await the().signIn('/console/keys');
      const { page } = window;
      const [cookie] = await page.context().cookies();
      expect(cookie).to.include({ httpOnly: true, sameSite: 'Strict' });
      await page.getByRole('button', { name: /^Account/ }).click();
      await page.getByRole('button', { name: 'Sign out', exact: true }).click();
      await page.getByRole('heading', { name: 'Sign in to Tollgate' }).waitFor();
      const answer = await fetch(`${the().gateway.url}/console/api/keys`, {
        headers: { cookie: `${cookie?.name}=${cookie?.value}` },
      });
      expect(answer.status).to.equal(401);
    });

    it('leads to the sign-in page when the session ends, and after the sign-in back to the same page', async () => {
      await using window = await the().signIn('/console/usage?status=200&by=key');
      const { page } = window;
      await page.getByRole('heading', { name: 'Usage Records', exact: true }).waitFor();
      await page.context().clearCookies();
      await page.getByText('Your session has ended.').waitFor();
      await page.getByLabel('E-mail address').fill(the().email);
      await page.getByLabel('Password').fill(the().password);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('heading', { name: 'Usage Records', exact: true }).waitFor();
      expect(new URL(page.url()).search).to.equal('?status=200&by=key');
    });

    it("begins with a one-time link, which works only once and is removed from the page's address", async () => {
      const users = await the().gateway.admin('GET', `/admin/v1/accounts/${the().accountId}/users`);
      const link = await the().gateway.admin('POST', `/admin/v1/users/${users.json.items[0].id}/sign-in-link`, {});
      for (const isFirst of [true, false]) {
        await using window = await the().openWindow();
        const { page } = window;
        await page.goto(link.json.path);
        if (isFirst) await page.getByRole('heading', { name: 'Overview' }).waitFor();
        else await page.getByText('This link was already used').waitFor();
        expect(new URL(page.url()).hash).to.equal('');
      }
    });

    it('begins with a sign-in at an identity provider, and opens the requested page', async () => {
      the().provider.person = { claims: { email: the().email, email_verified: true } };
      // Use another name of this machine, because in production the identity provider is another site.
      await using window = await the().openWindow({ baseURL: the().gateway.url.replace('127.0.0.1', 'localhost') });
      const { page, complaints } = window;
      await page.goto('/console/usage?status=200');
      await page.getByRole('button', { name: 'Continue with Acme' }).click();
      await page.getByRole('heading', { name: 'Usage Records', exact: true }).waitFor();
      const { pathname, search } = new URL(page.url());
      expect(pathname + search).to.equal('/console/usage?status=200');
      await page.reload();
      await page.getByRole('heading', { name: 'Usage Records', exact: true }).waitFor();
      expect(complaints).to.deep.equal([]);
    });

    it('does not begin if the user refuses at the identity provider, and the sign-in page says so', async () => {
      the().provider.person = { claims: {}, refuses: true };
      await using window = await the().openWindow();
      const { page } = window;
      await page.goto('/console');
      await page.getByRole('button', { name: 'Continue with Acme' }).click();
      await page.getByText('The sign-in was refused or cancelled.').waitFor();
      await page.getByRole('button', { name: 'Continue with Acme' }).waitFor();
      expect(new URL(page.url()).hash).to.equal('');
    });

    it('does not begin for another identity with the same e-mail address, and the page refers the user to the operator', async () => {
      for (const [sub, text] of [
        ['person', 'Overview'],
        ['successor', 'is bound to another identity of the provider. Ask the operator to unbind it.'],
      ] as const) {
        the().provider.person = { claims: { sub, email: the().email, email_verified: true } };
        await using window = await the().openWindow();
        const { page } = window;
        await page.goto('/console');
        await page.getByRole('button', { name: 'Continue with Acme' }).click();
        await page.getByText(text).first().waitFor();
      }
    });

    it('begins without a password field if password sign-in is switched off', async () => {
      await using window = await the().openWindow();
      const { page } = window;
      await page.route('**/console/api/sign-in', async (route) => {
        const ways = await (await route.fetch()).json();
        await route.fulfill({ json: { ...ways, password: false } });
      });
      await page.goto('/console');
      await page.getByRole('button', { name: 'Continue with Acme' }).waitFor();
      expect(await page.getByLabel('Password').count()).to.equal(0);
      expect(await page.getByText('or', { exact: true }).count()).to.equal(0);
    });

    it('offers no change of the password if password sign-in is switched off', async () => {
      for (const passwordSignIn of [true, false]) {
        await using window = await the().openWindow();
        const { page } = window;
        await page.route('**/console/api/session{,/link}', async (route) => {
          const response = await route.fetch();
          if (!response.ok()) return route.fulfill({ response });
          await route.fulfill({ response, json: { ...(await response.json()), passwordSignIn } });
        });
        const { json: users } = await the().gateway.admin('GET', `/admin/v1/accounts/${the().accountId}/users`);
        const link = await the().gateway.admin('POST', `/admin/v1/users/${users.items[0].id}/sign-in-link`, {});
        await page.goto(link.json.path);
        await page.getByRole('button', { name: /^Account/ }).click();
        await page.getByRole('button', { name: 'Sign out everywhere' }).waitFor();
        const offers = await page.getByRole('button', { name: 'Change password' }).count();
        expect(offers).to.equal(passwordSignIn ? 1 : 0);
      }
    });

    it('shows a key name that contains HTML as plain text', async () => {
      const name = '<img src=x onerror="document.title=\'run\'">';
      await the().gateway.admin('POST', `/admin/v1/accounts/${the().accountId}/keys`, { name });
      await using window = await the().signIn('/console/keys');
      const { page, complaints } = window;
      await page.getByRole('link', { name }).waitFor();
      expect(await page.locator('main img').count()).to.equal(0);
      expect(await page.title()).to.equal('API Keys · Tollgate');
      expect(complaints).to.deep.equal([]);
    });
  });
}
