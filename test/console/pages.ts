import { expect } from 'chai';
import type { ConsoleWindow, TestConsole } from '../support/console-page';
import { findingsOf, showPage } from '../support/console-page';
import { createSandbox, creation, terminate } from '../support/sandboxes';

const WIDTHS = [360, 1_024, 1_680];

/** What every page has to be, whatever is on it. */
export function pages(the: () => TestConsole): void {
  describe('every page', () => {
    let sandboxPath: string;
    let sandboxId: string;

    before(async () => {
      ({ id: sandboxId } = await createSandbox(the().gateway, the().key, creation('looked at')));
      sandboxPath = `/console/sandboxes/${sandboxId}`;
    });
    after(async () => {
      await terminate(the().gateway, the().key, sandboxId);
    });

    /** The page, and what one does to see the rest of it. */
    const all = (): readonly (readonly [string, ((page: ConsoleWindow['page']) => Promise<void>)?])[] => [
      ['/console'],
      ['/console/usage'],
      ['/console/usage', async (page) => page.locator('tr.opens a').first().click()],
      ['/console/usage', async (page) => page.getByRole('button', { name: 'Model' }).click()],
      ['/console/keys'],
      ['/console/keys', async (page) => page.getByRole('button', { name: 'Create a key' }).click()],
      ['/console/sandboxes'],
      [sandboxPath],
      ['/console/nowhere'],
    ];

    // Only colours differ.
    for (const [colorScheme, rules] of [
      ['light', undefined],
      ['dark', ['color-contrast', 'link-in-text-block']],
    ] as const) {
      it(`is usable by everybody in the ${colorScheme} theme, and breaks no rule of its own`, async () => {
        await using window = await the().signIn('/console', { colorScheme });
        for (const [path, open] of all()) {
          await showPage(window.page, path);
          await open?.(window.page);
          expect(await findingsOf(window.page, rules), path).to.deep.equal([]);
        }
        expect(window.complaints).to.deep.equal([]);
      }).timeout(60_000);
    }

    it('the sign-in too', async () => {
      await using window = await the().openWindow();
      await window.page.goto('/console');
      await window.page.getByRole('button', { name: 'Sign in' }).waitFor();
      expect(await findingsOf(window.page)).to.deep.equal([]);
      expect(window.complaints).to.deep.equal([]);
    });

    it('fits from a phone to a wide screen', async () => {
      await using window = await the().signIn('/console');
      for (const path of new Set(all().map(([each]) => each))) {
        await showPage(window.page, path);
        for (const width of WIDTHS) {
          await window.page.setViewportSize({ width, height: 800 });
          const wider = await window.page.evaluate('document.documentElement.scrollWidth - window.innerWidth');
          expect(wider, `${path} at ${width}`).to.be.at.most(0);
        }
      }
      await window.page.setViewportSize({ width: WIDTHS[0] ?? 0, height: 800 });
      await showPage(window.page, '/console/usage');
      for (const name of [/^Range/, /^Model/, /^Status/, /^Columns/]) {
        await window.page.getByRole('button', { name }).click();
        const box = await window.page.locator('.popover-sheet').boundingBox();
        expect((box?.x ?? 0) + (box?.width ?? 0), String(name)).to.be.at.most(360);
        await window.page.keyboard.press('Escape');
      }
    });

    it('asks once for what a view shows, and again only for what is new', async () => {
      await using window = await the().signIn('/console');
      const { page } = window;
      const asked: string[] = [];
      page.on('request', (request) => {
        const [, name = ''] = /\/api\/usage\/(totals|series)\?/.exec(request.url()) ?? [];
        if (name !== '') asked.push(name);
      });
      /** The newest records are asked for again when all is there. */
      const looksAgain = () => page.waitForResponse((response) => response.status() === 304);
      await showPage(page, '/console/usage');
      await looksAgain();
      expect(asked.toSorted()).to.deep.equal(['series', 'totals']);
      await page.getByRole('button', { name: 'Status' }).click();
      await page.getByRole('option', { name: /^200/ }).click();
      await page.waitForURL(/status=200/);
      await looksAgain();
      await looksAgain();
      expect(asked.toSorted()).to.deep.equal(['series', 'series', 'totals', 'totals']);
    });

    it('loads nothing from elsewhere, and is light', async () => {
      await using window = await the().openWindow();
      const { page } = window;
      let bytes = 0;
      const elsewhere: string[] = [];
      page.on('response', async (response) => {
        if (!response.url().startsWith(the().gateway.url)) elsewhere.push(response.url());
      });
      page.on('requestfinished', async (request) => {
        const sizes = await request.sizes();
        bytes += sizes.responseBodySize;
      });
      await page.goto('/console');
      await page.getByRole('button', { name: 'Sign in' }).waitFor();
      expect(elsewhere).to.deep.equal([]);
      expect(bytes).to.be.within(10_000, 200 * 1_024);
    });
  });
}
