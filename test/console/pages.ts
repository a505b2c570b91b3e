import { expect } from 'chai';
import { ask } from '../support/calls';
import { showPage, type TestConsole } from '../support/console-page';
import { createSandbox, creation, terminate } from '../support/sandboxes';
import { messagesAnswer } from '../support/upstream';
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
      ['/console/team'],
      ['/console/team', async (page) => page.getByRole('button', { name: 'Invite' }).click()],
      ['/console/alerts'],
      ['/console/alerts', async (page) => page.getByRole('button', { name: 'Create a webhook' }).click()],
      ['/console/invitation'],
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

    it('groups usage by a tag whose name is typed, and narrows the filter to one value', async () => {
      const { gateway, upstreams, key } = the();
      for (const upstream of upstreams) upstream.always(messagesAnswer());
      for (const customer of ['4711', '4711', '4712']) {
        const headers = { 'x-svc-tags': `customer=${customer}` };
        const answer = await gateway.call('/v1/messages', { key, headers, body: ask() });
        await gateway.record(key, answer.headers['x-svc-request-id'] ?? '');
      }
      await using window = await the().signIn('/console');
      const { page } = window;
      await showPage(page, '/console/usage');
      await page.getByRole('button', { name: 'Group by' }).press('Enter');
      await page.getByRole('combobox').fill('customer');
      await page.getByRole('option', { name: 'customer' }).waitFor();
      await page.keyboard.press('Enter');
      const groups = page.getByRole('table', { name: /by customer/ });
      await groups.getByRole('row', { name: /^4711 2 / }).waitFor();
      await groups.getByRole('link', { name: '4712' }).press('Enter');
      await page.waitForURL(/tags=customer%3D4712/);
      await groups.getByRole('row', { name: /^4711/ }).waitFor({ state: 'detached' });
      expect(await groups.locator('tbody tr').count()).to.equal(1);
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
