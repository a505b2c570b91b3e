import { expect } from 'chai';
import { showPage, type TestConsole } from '../support/console-page';
import { createSandbox, creation, terminate } from '../support/sandboxes';
import { looksOf, type Shown } from './looks-of';

const WIDTHS = [360, 1_024, 1_680];

/** Declares what holds for every page of the console, whatever its content. */
export function pages(the: () => TestConsole): void {
  describe('every page of the console', () => {
    let sandboxPath: string;
    let sandboxId: string;

    before(async () => {
      ({ id: sandboxId } = await createSandbox(the().gateway, the().key, creation('looked at')));
      sandboxPath = `/console/sandboxes/${sandboxId}`;
    });
    after(async () => {
      await terminate(the().gateway, the().key, sandboxId);
    });

    /** The path of each page, and the action that opens a dialog or menu on it. */
    const all = (): readonly Shown[] => [
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

    looksOf({ the, home: '/console', widths: WIDTHS, all });

    it('has popovers that fit on the screen of a phone', async () => {
      await using window = await the().signIn('/console');
      await window.page.setViewportSize({ width: WIDTHS[0] ?? 0, height: 800 });
      await showPage(window.page, '/console/usage');
      for (const name of [/^Range/, /^Model/, /^Status/, /^Columns/]) {
        await window.page.getByRole('button', { name }).click();
        const box = await window.page.locator('.popover-sheet').boundingBox();
        expect((box?.x ?? 0) + (box?.width ?? 0), String(name)).to.be.at.most(360);
        await window.page.keyboard.press('Escape');
      }
    });

    it('requests totals and chart once for each filter, and again only if newer records exist', async () => {
      await using window = await the().signIn('/console');
      const { page } = window;
      const asked: string[] = [];
      page.on('request', (request) => {
        const [, name = ''] = /\/api\/usage\/(totals|series)\?/.exec(request.url()) ?? [];
        if (name !== '') asked.push(name);
      });
      /** Waits until the page has polled for newer records. */
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
  });
}
