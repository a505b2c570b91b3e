import { expect } from 'chai';
import type { TestConsole } from '../support/console-page';
import { createSandbox, creation, terminate } from '../support/sandboxes';

/** Declares what the console shows of a sandbox from its start to its bill. */
export function sandboxes(the: () => TestConsole): void {
  describe('a sandbox in the console', () => {
    it('is shown while it runs, ends after a click on its button, and then has a bill that adds up', async () => {
      await using window = await the().signIn('/console/sandboxes');
      const { page } = window;
      await page.getByText('No sandbox is running').waitFor();
      const { id } = await createSandbox(the().gateway, the().key, creation('seen in the console'));
      await page.getByRole('link', { name: 'small' }).click();
      await page.getByRole('heading', { name: 'small' }).waitFor();
      await page.locator('.page-head').getByText('Running').waitFor();
      await page.locator('.lane', { hasText: 'Paid' }).getByText('held').waitFor();

      await page.getByRole('button', { name: 'Terminate' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Terminate' }).click();
      await page.locator('.page-head').getByText('Terminated').waitFor();
      expect(await page.getByRole('button', { name: /Terminat/ }).count()).to.equal(0);

      const record = (await the().gateway.call(`/v1/sandboxes/${id}`, { method: 'GET', key: the().key })).json;
      const periods = await page.getByRole('table', { name: /Billing periods/ }).textContent();
      expect(periods).to.contain('= the cost above').and.contain(`$${record.totalCost}`);
      expect(await page.locator('.lane', { hasText: 'State' }).locator('.bar').count()).to.be.greaterThan(0);
      expect(await page.getByRole('list').filter({ hasText: 'by the supplier' }).count()).to.be.greaterThan(0);

      await page.getByRole('link', { name: 'Sandboxes' }).first().click();
      await page.getByText('Past').click();
      await page.getByRole('row', { name: /small/ }).getByText('Terminated').waitFor();
      expect(window.complaints).to.deep.equal([]);
      await terminate(the().gateway, the().key, id);
    });
  });
}
