import { expect } from 'chai';
import { type Receiver, startReceiver } from '../store/webhooks/receiver';
import { type ConsoleWindow, pictureTaker, type TestConsole } from '../support/console-page';
import { MODEL } from '../support/gateway';
import { until } from '../support/until';
import { messagesAnswer } from '../support/upstream';

/** Declares what an owner does with alerts; each step needs the steps before it. */
export function alerts(the: () => TestConsole): void {
  describe('the alerts of the console', () => {
    let window: ConsoleWindow;
    let page: ConsoleWindow['page'];
    let receiver: Receiver;

    before(async () => {
      receiver = await startReceiver();
      window = await the().signIn('/console/alerts', { viewport: { width: 1_440, height: 900 } });
      page = window.page;
      the().upstreams[0].always(messagesAnswer({ text: 'Hi there', usage: { input: 1_000, output: 200 } }));
    });
    after(async () => {
      await window?.[Symbol.asyncDispose]();
      await receiver?.close();
    });

    const picture = pictureTaker('console', () => page);
    const dialog = () => page.getByRole('dialog').last();
    const rows = (table: RegExp) => page.getByRole('table', { name: table }).locator('tbody tr');
    const typesReceived = () => receiver.received.map(({ event }) => event.type);
    const confirm = (verb: string) => dialog().getByRole('button', { name: verb, exact: true }).click();

    it('the owner creates a webhook, whose secret the dialog shows only once, and it receives a test', async () => {
      await page.getByText('No webhook yet.').waitFor();
      await page.getByRole('button', { name: 'Create a webhook' }).click();
      await dialog().getByLabel('Address').fill('ftp://acme.example');
      await confirm('Create the webhook');
      await dialog().getByText('url: expected a URL that begins with https://').waitFor();
      await dialog().getByLabel('Address').fill(receiver.url);
      await confirm('Create the webhook');
      const secret = (await dialog().locator('.secret code').textContent()) ?? '';
      expect(secret).to.match(/^whsec_/);
      await page.keyboard.press('Escape');
      await dialog().getByRole('button', { name: 'Done' }).click();
      expect(await page.content()).not.to.contain(secret);
      await page.getByRole('button', { name: /^Test http/ }).click();
      await confirm('Send the test');
      await rows(/^Webhooks/)
        .getByText('delivered')
        .waitFor();
      expect(typesReceived()).to.deep.equal(['webhook.test']);
    });

    it('a budget that reaches a threshold and a low balance are events on the page, and the webhook receives them', async () => {
      const limited = { name: 'limited', balanceLimit: '0.05' };
      const { json } = await the().gateway.admin('POST', `/admin/v1/accounts/${the().accountId}/keys`, limited);
      const { availableUsd } = await the().gateway.balance(json.key);
      await page.getByRole('button', { name: 'Change of the balance' }).click();
      await dialog().getByLabel('Report a balance below').fill(availableUsd);
      await confirm('Save');
      await page.getByText(/^A balance below \$1\d\.\d\d is reported/).waitFor();
      for (let made = 0; made < 5; made += 1) {
        const body = { model: MODEL, max_tokens: 300, messages: [{ role: 'user', content: 'Hello' }] };
        expect((await the().gateway.call('/v1/messages', { key: json.key, body })).status).to.equal(200);
      }
      await rows(/^Events/)
        .getByText('limited reached 50 %: $0.03 of $0.05 in total')
        .waitFor();
      await rows(/^Events/)
        .getByText(/^The balance is \$/)
        .waitFor();
      await until('both are received', async () => receiver.received.length === 3);
      expect(typesReceived().slice(1)).to.have.members(['budget.reached', 'balance.low']);
      await picture('alerts');
    });

    it('the deliveries of a webhook are listed, and one that is sent again has the same id', async () => {
      await page.getByRole('button', { name: /^Deliveries of/ }).click();
      const list = dialog()
        .getByRole('table', { name: /^Deliveries/ })
        .locator('tbody tr');
      await until('three deliveries', async () => (await list.count()) === 3);
      await dialog().getByRole('button', { name: 'Send again budget.reached' }).click();
      await until('it is received again', async () => receiver.received.length === 4);
      const again = receiver.received.filter(({ event }) => event.type === 'budget.reached');
      const ids = again.map(({ headers }) => headers['webhook-id']);
      expect(ids).to.have.length(2);
      expect(new Set(ids).size).to.equal(1);
      await picture('webhook');
    });

    it('the owner rotates, disables and removes a webhook, each after a confirmation', async () => {
      const sheet = page.getByRole('dialog').first();
      // The sheet has buttons of the same names, so the click waits for the dialog over it.
      const confirmOver = (verb: string) =>
        page.getByRole('dialog').nth(1).getByRole('button', { name: verb, exact: true }).click();
      await sheet.getByRole('button', { name: 'Rotate the secret' }).click();
      await confirmOver('Rotate the secret');
      expect(await page.getByRole('dialog').nth(1).locator('.secret code').textContent()).to.match(/^whsec_/);
      await dialog().getByRole('button', { name: 'Done' }).click();
      await sheet.getByRole('button', { name: 'Disable' }).click();
      await confirmOver('Disable');
      await sheet.getByText('Disabled', { exact: true }).waitFor();
      await sheet.getByRole('button', { name: 'Enable' }).waitFor();
      await sheet.getByRole('button', { name: 'Remove' }).click();
      await confirmOver('Remove the webhook');
      await page.getByText('No webhook yet.').waitFor();
      expect(window.complaints).to.deep.equal([]);
    });
  });
}
