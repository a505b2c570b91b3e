import { expect } from 'chai';
import type { ConsoleWindow } from '../../support/console-page';
import { signInWith, type TestOperatorPage } from '../../support/operator-page';

/** Declares what the page shows to each role, and which changes the gateway accepts from it. */
export function operators(the: () => TestOperatorPage): void {
  describe("an operator on the operators' page", () => {
    let accountId: string;
    before(async () => {
      ({ accountId } = await the().gateway.newCustomer('5'));
      const path = `/admin/v1/accounts/${accountId}`;
      const user = { email: 'cho@acme.example', password: 'correct horse battery' };
      await the().gateway.admin('POST', `${path}/users`, user);
      await the().gateway.admin('POST', `${path}/budgets`, { scope: 'account', window: 'day', limitUsd: '5' });
    });

    async function newToken(name: string, role: string): Promise<{ id: string; token: string }> {
      const made = await the().gateway.admin('POST', '/admin/v1/tokens', { name, role, expiresAt: null });
      expect(made.status, made.text).to.equal(201);
      return made.json;
    }

    async function signIn(token: string, path: string): Promise<ConsoleWindow> {
      const window = await the().openWindow();
      await signInWith(window.page, path, token);
      return window;
    }

    const CHANGES = [
      'Disable',
      'Test',
      'Create an account',
      'Credit',
      'Debit',
      'Freeze',
      'Create a key',
      'Edit',
      'Rotate',
      'Revoke',
      'Create a token',
      'Invite',
      'Create a team',
      'Create a budget',
      'Change',
      'Create a webhook',
      'Reload',
      'Read a list',
      'Accept',
      'Apply',
    ];

    it('sees no button for changes with the role "read"', async () => {
      const { token } = await newToken('looker', 'read');
      await using window = await signIn(token, '/operator');
      const { page } = window;
      await page.getByText('read: read only').waitFor();
      for (const path of [
        'upstreams',
        'rollouts',
        'accounts',
        `accounts/${accountId}`,
        `accounts/${accountId}?view=team`,
        `accounts/${accountId}?view=alerts`,
        'catalogue',
        'configuration',
        'sandboxes',
        'ledger',
        'tokens',
      ]) {
        await page.goto(`/operator/${path}`);
        await page.locator('main h1').waitFor();
        await page.locator('main tbody th').first().or(page.locator('main .empty')).first().waitFor();
        for (const name of CHANGES)
          expect(
            await page.getByRole('button', { name: new RegExp(`^${name}`) }).count(),
            `${name} on ${path}`,
          ).to.equal(0);
      }
      expect(window.complaints).to.deep.equal([]);
    });

    it('gets 403 for a change that the page sends with the role "read"', async () => {
      const { token } = await newToken('pusher', 'read');
      await using window = await signIn(token, '/operator');
      const refused = (await window.page.evaluate(`(async () => {
        const { csrfToken } = await (await fetch('/operator/api/session')).json();
        const headers = { 'content-type': 'application/json', 'x-csrf-token': csrfToken };
        const answer = await fetch('/admin/v1/accounts/${accountId}/freeze', { method: 'POST', headers, body: '{}' });
        return { status: answer.status, code: (await answer.json()).error.code };
      })()`)) as object;
      expect(refused).to.deep.equal({ status: 403, code: 'OPERATOR_ROLE_NEEDED' });
      const account = await the().gateway.admin('GET', `/admin/v1/accounts/${accountId}`);
      expect(account.json.status).to.equal('active');
    });

    it('makes a change with the role "write", and the audit log names the operator\'s token', async () => {
      const { token } = await newToken('changer', 'write');
      await using window = await signIn(token, `/operator/accounts/${accountId}`);
      const { page } = window;
      await page.getByRole('button', { name: 'Freeze', exact: true }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Freeze' }).click();
      await page.getByText('Frozen', { exact: true }).waitFor();
      const { json } = await the().gateway.admin('GET', '/admin/v1/audit?actor=token:changer&action=account.freeze');
      expect(json.items).to.have.length(1);
    });

    it('creates and revokes a token with the role "owner", and the page shows the token once', async () => {
      await using window = await the().signIn('/operator');
      const { page } = window;
      const dialog = page.getByRole('dialog');
      const statusWith = async (token: string) =>
        (await the().gateway.admin('GET', '/admin/v1/tokens/own', undefined, { authorization: `Bearer ${token}` }))
          .status;
      await page.getByRole('link', { name: 'Tokens' }).click();
      await page.getByRole('button', { name: 'Create a token' }).click();
      await dialog.getByLabel('Name').fill('not a name');
      await dialog.getByLabel('Role').selectOption('write');
      await dialog.getByRole('button', { name: 'Create the token' }).click();
      await dialog.getByText('name: expected up to 64 letters').waitFor();
      await dialog.getByLabel('Name').fill('grace');
      await dialog.getByLabel('Expires').fill('2999-01-01T00:00');
      await dialog.getByRole('button', { name: 'Create the token' }).click();
      const token = (await dialog.locator('.secret code').textContent()) ?? '';
      await page.keyboard.press('Escape');
      expect(await dialog.isVisible(), 'Escape does not lose the token').to.equal(true);
      await dialog.getByRole('button', { name: 'Done' }).click();
      const row = page.getByRole('row', { name: /^grace/ });
      expect(await row.textContent())
        .to.contain(`…${token.slice(-4)}`)
        .and.contain('write')
        .and.contain('Jan 1, 2999')
        .and.contain('Active');
      expect(await page.content()).not.to.contain(token);
      expect(await statusWith(token)).to.equal(200);
      await page.getByRole('button', { name: 'Revoke grace' }).click();
      await dialog.getByRole('button', { name: 'Keep it' }).click();
      expect(await statusWith(token)).to.equal(200);
      await page.getByRole('button', { name: 'Revoke grace' }).click();
      await dialog.getByRole('button', { name: 'Revoke the token' }).click();
      await row.getByText('Revoked').waitFor();
      expect(await page.getByRole('button', { name: 'Revoke grace' }).count()).to.equal(0);
      expect(await statusWith(token)).to.equal(401);
      expect(window.complaints).to.deep.equal([]);
    });

    it('sees the list of tokens without the role "owner", and why creating a token needs that role', async () => {
      const { token } = await newToken('no-owner', 'write');
      await using window = await signIn(token, '/operator/tokens');
      const { page } = window;
      await page.getByText('You are signed in with the role write. Only the role owner creates').waitFor();
      await page.getByRole('row', { name: /^no-owner/ }).waitFor();
      expect(await page.locator('main').getByRole('button').count()).to.equal(0);
    });

    it('is refused with the role "metrics", and the message says that the token does not open the page', async () => {
      const { token } = await newToken('scraper', 'metrics');
      await using window = await the().openWindow();
      const { page } = window;
      await page.goto('/operator');
      await page.getByLabel('Operator token').fill(token);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByText('"scraper" has the role "metrics"').waitFor();
    });

    it('is signed out at once if the token is revoked, and sees the same page after a new sign-in', async () => {
      const { id, token } = await newToken('leaver', 'write');
      await using window = await signIn(token, '/operator/audit?action=account.freeze');
      const { page } = window;
      await page.getByRole('heading', { name: 'Audit' }).waitFor();
      await the().gateway.admin('DELETE', `/admin/v1/tokens/${id}`);
      await page.getByText('Your session has ended, or its token was revoked.').waitFor();
      await page.getByLabel('Operator token').fill(the().gateway.adminToken);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('heading', { name: 'Audit' }).waitFor();
      expect(new URL(page.url()).search).to.equal('?action=account.freeze');
    });
  });
}
