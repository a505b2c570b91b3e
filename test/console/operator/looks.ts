import { expect } from 'chai';
import { type ConsoleWindow, tabTo } from '../../support/console-page';
import type { TestOperatorPage } from '../../support/operator-page';
import { looksOf, type Shown } from '../looks-of';

const WIDTHS = [390, 820, 1_440];

/** Declares what holds for every page of operators, whatever its content. */
export function looks(the: () => TestOperatorPage): void {
  describe('every page of operators', () => {
    let accountId: string;
    let proposalId: string;
    before(async () => {
      const list = { 'acme-large': { litellm_provider: 'first', input_cost_per_token: 4e-6 } };
      const proposal = { source: 'litellm', text: JSON.stringify(list) };
      proposalId = (await the().gateway.admin('POST', '/admin/v1/catalogue/proposals', proposal)).json.id;
      ({ accountId } = await the().gateway.newCustomer('5', {
        name: 'a key with a name that is much longer than others',
      }));
      const path = `/admin/v1/accounts/${accountId}`;
      await the().gateway.admin('POST', `${path}/users`, {
        email: 'ana@acme.example',
        password: 'correct horse battery',
      });
      await the().gateway.admin('POST', `${path}/teams`, { name: 'a team' });
      await the().gateway.admin('POST', `${path}/budgets`, { scope: 'account', window: 'day', limitUsd: '5' });
      const token = { name: `a-token-with-the-longest-name-${'x'.repeat(34)}`, role: 'read', expiresAt: null };
      await the().gateway.admin('POST', '/admin/v1/tokens', token);
    });

    const click = (name: RegExp | string) => async (page: ConsoleWindow['page']) =>
      page.getByRole('button', { name }).first().click();

    /** The path of each page, and the action that opens a dialog or menu on it. */
    const all = (): readonly Shown[] => [
      ['/operator'],
      ['/operator/upstreams'],
      ['/operator/upstreams?upstream=first'],
      ['/operator/upstreams', click(/^Test/)],
      ['/operator/upstreams', click(/^Disable/)],
      ['/operator/rollouts'],
      ['/operator/accounts'],
      ['/operator/accounts?search=nothing-fits-this'],
      [`/operator/accounts/${accountId}`],
      [`/operator/accounts/${accountId}`, click('Credit')],
      [`/operator/accounts/${accountId}`, click(/^Edit/)],
      [`/operator/accounts/${accountId}`, click(/^Rotate/)],
      [`/operator/accounts/${accountId}`, click(/^Revoke/)],
      [`/operator/accounts/${accountId}?view=team`],
      [`/operator/accounts/${accountId}?view=alerts`],
      ['/operator/catalogue'],
      ['/operator/catalogue', click('Read a list')],
      [`/operator/catalogue/${proposalId}`],
      ['/operator/configuration'],
      ['/operator/configuration', click(/^Edit/)],
      ['/operator/configuration', click(/^Details/)],
      ['/operator/sandboxes'],
      ['/operator/ledger', click('Verify')],
      ['/operator/tokens'],
      ['/operator/tokens', click('Create a token')],
      ['/operator/tokens', click(/^Revoke/)],
      ['/operator/audit'],
      ['/operator/audit', click(/^Details/)],
      ['/operator/nowhere'],
    ];

    looksOf({ the, home: '/operator', widths: WIDTHS, all });

    it('works with the keyboard alone: the operator can find, disable and enable an upstream', async () => {
      await using window = await the().openWindow();
      const { page } = window;
      const { keyboard } = page;
      await page.goto('/operator');
      await page.getByLabel('Operator token').waitFor();
      await keyboard.press('Tab');
      await keyboard.type(the().gateway.adminToken);
      await keyboard.press('Enter');
      await page.getByRole('navigation', { name: 'Pages' }).waitFor();
      await tabTo(window, /^Upstreams$/);
      await keyboard.press('Enter');
      await page.getByRole('button', { name: 'Disable second' }).waitFor();
      await tabTo(window, /^Disable\s*second$/);
      await keyboard.press('Enter');
      await page.getByRole('dialog').locator('input:focus').waitFor();
      await keyboard.type('by hand');
      await tabTo(window, /^Disable$/);
      await keyboard.press('Enter');
      const second = page.getByRole('row', { name: /second/ });
      await second.getByText('by hand').waitFor();
      await tabTo(window, /^Enable\s*second$/);
      await keyboard.press('Enter');
      await tabTo(window, /^Enable$/);
      await keyboard.press('Enter');
      await second.getByText('Available').waitFor();
    });

    it('shows a failed request in place of its content, and repeats it after "Try again"', async () => {
      await using window = await the().signIn('/operator');
      const { page } = window;
      let isAway = true;
      await page.route('**/admin/v1/accounts?*', (route) => (isAway ? route.abort() : route.continue()));
      await page.goto('/operator/accounts');
      await page.getByRole('alert').getByText('The gateway does not answer.').waitFor();
      isAway = false;
      await page.getByRole('button', { name: 'Try again' }).click();
      await page.getByRole('table', { name: 'Accounts' }).locator('tbody th').first().waitFor();
      expect(await page.getByRole('alert').count()).to.equal(0);
    });
  });
}
