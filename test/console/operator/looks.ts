import { expect } from 'chai';
import type { ConsoleWindow } from '../../support/console-page';
import { findingsOf, showPage } from '../../support/console-page';
import type { TestOperatorPage } from '../../support/operator-page';

const WIDTHS = [390, 820, 1_440];

/** What every page has to be, whatever is on it. */
export function looks(the: () => TestOperatorPage): void {
  describe('every page of operators', () => {
    let accountId: string;
    before(async () => {
      ({ accountId } = await the().gateway.newCustomer('5', {
        name: 'a key with a name that is much longer than others',
      }));
    });

    const click = (name: RegExp | string) => async (page: ConsoleWindow['page']) =>
      page.getByRole('button', { name }).first().click();

    /** The page, and what one does to see the rest of it. */
    const all = (): readonly (readonly [string, ((page: ConsoleWindow['page']) => Promise<void>)?])[] => [
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
      [`/operator/accounts/${accountId}`, click(/^Limits/)],
      [`/operator/accounts/${accountId}`, click(/^Revoke/)],
      ['/operator/configuration'],
      ['/operator/configuration', click('Change it')],
      ['/operator/configuration', click(/^Look/)],
      ['/operator/sandboxes'],
      ['/operator/ledger', click('Verify')],
      ['/operator/audit'],
      ['/operator/audit', click(/^Look/)],
      ['/operator/nowhere'],
    ];

    // Only colours differ.
    for (const [colorScheme, rules] of [
      ['light', undefined],
      ['dark', ['color-contrast', 'link-in-text-block']],
    ] as const) {
      it(`is usable by everybody in the ${colorScheme} theme, and breaks no rule of its own`, async () => {
        await using window = await the().signIn('/operator', { colorScheme });
        for (const [path, open] of all()) {
          await showPage(window.page, path);
          await open?.(window.page);
          expect(await findingsOf(window.page, rules), path).to.deep.equal([]);
        }
        expect(window.complaints).to.deep.equal([]);
      }).timeout(90_000);
    }

    it('the sign-in too', async () => {
      await using window = await the().openWindow();
      await window.page.goto('/operator');
      await window.page.getByRole('button', { name: 'Sign in' }).waitFor();
      expect(await findingsOf(window.page)).to.deep.equal([]);
    });

    it('fits from a phone to a wide screen', async () => {
      await using window = await the().signIn('/operator');
      for (const path of new Set(all().map(([each]) => each))) {
        await showPage(window.page, path);
        for (const width of WIDTHS) {
          await window.page.setViewportSize({ width, height: 800 });
          const wider = await window.page.evaluate('document.documentElement.scrollWidth - window.innerWidth');
          expect(wider, `${path} at ${width}`).to.be.at.most(0);
        }
      }
    }).timeout(60_000);

    it('works with the keyboard alone: an upstream is found, disabled and enabled', async () => {
      await using window = await the().openWindow();
      const { page } = window;
      const { keyboard } = page;
      /** Goes on by Tab until what has this name is reached. */
      const tabTo = async (name: RegExp) => {
        for (let pressed = 0; pressed < 60; pressed += 1) {
          await keyboard.press('Tab');
          const focused = (await page.evaluate(
            'document.activeElement.getAttribute("aria-label") ?? document.activeElement.innerText ?? ""',
          )) as string;
          if (name.test(focused.trim())) return;
        }
        throw new Error(`Tab does not reach ${name}`);
      };
      await page.goto('/operator');
      await page.getByLabel('Operator token').waitFor();
      await keyboard.press('Tab');
      await keyboard.type(the().gateway.adminToken);
      await keyboard.press('Enter');
      await page.getByRole('navigation', { name: 'Pages' }).waitFor();
      await tabTo(/^Upstreams$/);
      await keyboard.press('Enter');
      await page.getByRole('button', { name: 'Disable second' }).waitFor();
      await tabTo(/^Disable\s*second$/);
      await keyboard.press('Enter');
      await page.getByRole('dialog').locator('input:focus').waitFor();
      await keyboard.type('by hand');
      await tabTo(/^Disable$/);
      await keyboard.press('Enter');
      const second = page.getByRole('row', { name: /second/ });
      await second.getByText('by hand').waitFor();
      await tabTo(/^Enable\s*second$/);
      await keyboard.press('Enter');
      await tabTo(/^Enable$/);
      await keyboard.press('Enter');
      await second.getByText('Available').waitFor();
    });

    it('says in place what could not be shown, and tries again', async () => {
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

    it('loads nothing from elsewhere, and is light', async () => {
      await using window = await the().openWindow();
      const { page } = window;
      let bytes = 0;
      const elsewhere: string[] = [];
      page.on('response', (response) => {
        if (!response.url().startsWith(the().gateway.adminUrl)) elsewhere.push(response.url());
      });
      page.on('requestfinished', async (request) => {
        bytes += (await request.sizes()).responseBodySize;
      });
      await page.goto('/operator');
      await page.getByRole('button', { name: 'Sign in' }).waitFor();
      expect(elsewhere).to.deep.equal([]);
      expect(bytes).to.be.within(10_000, 200 * 1_024);
    });
  });
}
