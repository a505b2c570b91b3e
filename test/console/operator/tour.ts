import { expect } from 'chai';
import { parse, stringify } from 'yaml';
import { type ConsoleWindow, pictureTaker } from '../../support/console-page';
import { type Configured, MODEL } from '../../support/gateway';
import type { TestOperatorPage } from '../../support/operator-page';
import { createSandbox, creation, terminate } from '../../support/sandboxes';
import { until } from '../../support/until';
import { messagesAnswer, messagesFailure } from '../../support/upstream';

const ANSWER = messagesAnswer({ text: 'Hi there', usage: { input: 1_000, output: 200 } });

const ROLLOUT = `
rollouts:
  second-for-large:
    change: { upstreams: { model: ${MODEL}, add: [second] } }
    stickyBy: request
    stages:
      - { share: 50, hold: 30m }
      - { share: 100, hold: 24h }
    guards:
      errorRate: { above: 0.01, minCalls: 100 }
      p95FirstTokenMs: { times: 1.2, minCalls: 200 }
`;

/** Declares what an operator does in an hour; each step needs the steps before it. */
export function tour(the: () => TestOperatorPage): void {
  describe('an hour of an operator', () => {
    let window: ConsoleWindow;
    let page: ConsoleWindow['page'];
    let accountId: string;
    let keyId: string;
    let key: string;

    before(async () => {
      window = await the().openWindow({ viewport: { width: 1_440, height: 900 }, deviceScaleFactor: 1 });
      page = window.page;
      for (const upstream of the().upstreams) upstream.always(ANSWER);
      const limits = { name: 'web', monthlyLimit: '100', callsPerMinute: 6_000 };
      ({ accountId, keyId, key } = await the().gateway.newCustomer('250', limits));
      await the().gateway.admin('PATCH', `/admin/v1/accounts/${accountId}`, { name: 'Acme' });
    });
    after(() => window?.[Symbol.asyncDispose]());

    const call = (secret = key) =>
      the().gateway.call('/v1/messages', {
        key: secret,
        body: { model: MODEL, max_tokens: 300, messages: [{ role: 'user', content: 'Hello' }] },
      });
    const calls = async (count: number) => {
      for (let made = 0; made < count; made += 1) await call();
    };
    const go = (name: string) => page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name }).click();
    const row = (table: string, name: RegExp) => page.getByRole('table', { name: table }).getByRole('row', { name });
    const dialog = () => page.getByRole('dialog');
    const picture = pictureTaker('operator', () => page);

    it('the sign-in refuses a wrong token with a message, and opens the requested page with the right one', async () => {
      await page.goto('/operator/upstreams');
      await page.getByLabel('Operator token').fill('not a token');
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByText('The operator token is wrong, expired or revoked.').waitFor();
      await page.getByLabel('Operator token').fill(the().gateway.adminToken);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('heading', { name: 'Upstreams' }).waitFor();
      expect(await page.content()).not.to.contain(the().gateway.adminToken);
    });

    it('the start page shows that an upstream was ejected after failures', async () => {
      await go('Now');
      await page.getByText('2 upstreams available, 1 node with the same configuration').waitFor();
      await calls(20);
      the().upstreams[0].always(messagesFailure(529));
      the().upstreams[1].always(messagesFailure(529));
      await calls(2);
      the().upstreams[1].always(ANSWER);
      await until('it is ejected', async () => {
        await call();
        return (await page.getByText('Ejected after failures').count()) > 0;
      });
      await page.getByRole('link', { name: 'first' }).waitFor();
      await until('calls and failures are counted', async () => {
        const text = (await page.getByRole('region', { name: 'The last sixty seconds' }).textContent()) ?? '';
        return /2\d calls.*[1-9]\d* calls?p99/.test(text) || /\d\d calls.*\d calls/.test(text);
      });
      await picture('now');
    });

    it("the page of the failing upstream shows its prices, and a test call shows the upstream's answer", async () => {
      await page.getByRole('link', { name: 'first' }).click();
      await dialog().getByText('has no `reporting`').waitFor();
      expect(await dialog().textContent())
        .to.contain('Ejected after failures')
        .and.contain(MODEL)
        .and.contain('$15.00');
      await picture('upstream');
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: 'Test first' }).click();
      await dialog().getByRole('button', { name: 'Test' }).click();
      await dialog().getByText('Failed', { exact: true }).waitFor();
      expect(await dialog().textContent()).to.contain('529');
      await picture('test');
      await dialog().getByRole('button', { name: 'Close' }).last().click();
    });

    it('the operator disables the failing upstream with a reason, and another upstream answers calls', async () => {
      await page.getByRole('button', { name: 'Disable first' }).click();
      await dialog().getByLabel('Reason').fill('answers 529 since noon');
      await dialog().getByRole('button', { name: 'Disable' }).click();
      await row('Upstreams', /first/).getByText('Disabled by an operator').waitFor();
      await row('Upstreams', /first/).getByText('answers 529 since noon').waitFor();
      await picture('upstreams');
      expect((await call()).status).to.equal(200);
    });

    it('the operator tests the upstream after it has recovered, and enables it', async () => {
      the().upstreams[0].always(ANSWER);
      await page.getByRole('button', { name: 'Test first' }).click();
      await dialog().getByRole('button', { name: 'Test' }).click();
      await dialog().getByText('Answered', { exact: true }).waitFor();
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: 'Enable first' }).click();
      await dialog().getByRole('button', { name: 'Enable' }).click();
      await row('Upstreams', /first/).getByText('Available').waitFor();
    });

    it('an invalid configuration is refused with the line of the mistake, and the edited text is kept', async () => {
      await go('Configuration');
      await page.getByRole('button', { name: 'Edit' }).click();
      const text = dialog().getByLabel('gateway.config.yml');
      await until('the text is there', async () => (await text.inputValue()).includes('serviceEndpoints'));
      await text.fill(`${await text.inputValue()}${ROLLOUT.replace('[second]', '[third]')}`);
      await dialog().getByRole('button', { name: 'Check' }).click();
      await dialog().getByRole('alert').waitFor();
      expect(await dialog().textContent())
        .to.match(/gateway\.config\.yml:\d+/)
        .and.contain('third');
      await picture('mistake');
      await text.fill((await text.inputValue()).replace('[third]', '[second]'));
    });

    it('the corrected configuration is applied after the page has listed its changes', async () => {
      await dialog().getByRole('button', { name: 'Check' }).click();
      await dialog().getByRole('list', { name: 'What it changes' }).waitFor();
      expect(await dialog().textContent()).to.contain('second-for-large');
      await dialog().getByLabel('Note').fill('second for half of the calls');
      await picture('apply');
      await dialog()
        .getByRole('button', { name: /^Apply to/ })
        .click();
      await row('Revisions', /^2 /).getByText('second for half of the calls').waitFor();
      await row('Nodes', /:/).getByText('In force').waitFor();
      await page.getByRole('button', { name: 'Details of revision 2' }).click();
      await dialog().getByText('Added: second-for-large', { exact: false }).first().waitFor();
      expect(await dialog().locator('.is-gone').count()).to.equal(0);
      await picture('configuration');
      await page.keyboard.press('Escape');
    });

    it("the first check of an edited text reports another operator's newer revision, the second lists the changes", async () => {
      await page.getByRole('button', { name: 'Edit' }).click();
      const text = dialog().getByLabel('gateway.config.yml');
      await until('the text is there', async () => (await text.inputValue()).includes('second-for-large'));
      const loaded = await text.inputValue();
      const other = loaded.replace('minCalls: 100 ', 'minCalls: 150 ');
      expect((await the().gateway.admin('POST', '/admin/v1/config/revisions', { text: other })).status).to.equal(201);
      await text.fill(loaded.replace('minCalls: 200 ', 'minCalls: 250 '));
      await dialog().getByRole('button', { name: 'Check' }).click();
      await dialog()
        .getByRole('alert')
        .getByText(/^Revision 3 .* was applied meanwhile/)
        .waitFor();
      expect(await dialog().getByRole('list', { name: 'What it changes' }).count()).to.equal(0);
      await dialog().getByRole('button', { name: 'Check' }).click();
      const changes = dialog().getByRole('list', { name: 'What it changes' });
      await changes.waitFor();
      expect(await changes.textContent())
        .to.contain('150')
        .and.contain('250');
      await page.keyboard.press('Escape');
    });

    it('a list of prices becomes a proposal that shows each difference, and what a guard stopped', async () => {
      const { text } = (await the().gateway.admin('GET', '/admin/v1/config/revisions/3')).json as { text: string };
      const config = parse(text) as Configured;
      const price = { input: 3, output: 15, cacheWrite: 3.75, cacheRead: 0.3, source: 'litellm', date: '2026-11-01' };
      for (const name of ['first', 'second']) config['serviceEndpoints'][name].models[MODEL].price = price;
      config['serviceEndpoints'].second.models[MODEL].price = { ...price, source: undefined };
      const applied = { text: stringify(config, { aliasDuplicateObjects: false }) };
      expect((await the().gateway.admin('POST', '/admin/v1/config/revisions', applied)).status).to.equal(201);
      const [input_cost_per_token, output_cost_per_token] = [2.5e-6, 1.25e-5];
      const its = { input_cost_per_token, output_cost_per_token, cache_read_input_token_cost: 6e-8 };
      const list = { [MODEL]: { litellm_provider: 'first', ...its } };
      await go('Catalogue');
      await page.getByRole('button', { name: 'Read a list' }).click();
      await dialog().getByLabel('List').selectOption('A file');
      const file = { name: 'list.json', mimeType: 'application/json', buffer: Buffer.from(JSON.stringify(list)) };
      await dialog().getByLabel('File').setInputFiles(file);
      await dialog().getByRole('button', { name: 'Read the list' }).click();
      const found = page.getByRole('table', { name: 'Prices that differ' }).locator('tbody tr');
      await until('all differences are shown', async () => (await found.count()) === 8);
      expect(await found.allTextContents()).to.satisfy(
        ([input = '', , vanished = '', cheap = '', hand = '']: string[]) =>
          /input\$3\.00\$2\.50-16\.6 %proposed/.test(input) &&
          vanished.includes('the list does not name it') &&
          cheap.includes('beyond a factor of two') &&
          hand.includes('written by hand'),
      );
    });

    it('the operator accepts and refuses prices, and the accepted ones are charged from the chosen time on', async () => {
      await page.getByRole('button', { name: 'Accept all' }).click();
      await until('both are accepted', async () => (await page.getByText('accepted', { exact: true }).count()) === 2);
      await page.getByRole('button', { name: `Refuse output of ${MODEL}` }).click();
      await page.getByText('refused', { exact: true }).waitFor();
      await picture('catalogue');
      await page.getByRole('button', { name: 'Apply' }).click();
      await dialog().getByLabel('Hold from').fill('2999-01-01T00:00');
      await dialog().getByLabel('Note').fill('prices of the new year');
      await picture('prices');
      await dialog().getByRole('button', { name: 'Apply' }).click();
      await page.getByText('Waits', { exact: true }).waitFor();
      await page.getByRole('button', { name: `Refuse input of ${MODEL}` }).click();
      await page.getByText('Open', { exact: true }).waitFor();
      await page.getByRole('button', { name: `Accept input of ${MODEL}` }).click();
      await page.getByText('accepted', { exact: true }).waitFor();
      await page.getByRole('button', { name: 'Apply' }).click();
      await dialog().getByRole('button', { name: 'Apply' }).click();
      await page.getByText('Applied', { exact: true }).waitFor();
      await page.getByText('Applied as revision 5').waitFor();
      const { json } = await the().gateway.admin('GET', '/admin/v1/upstreams/first');
      expect(json.models[0].pricePerMillion).to.include({ input: '2.50000000', output: '15.00000000' });
      await go('Configuration');
      await page
        .getByText('prices of the new year')
        .or(page.getByText(/^proposal /))
        .first()
        .waitFor();
      await picture('applied');
      const { headers } = await until('the upstream with the new price answers', async () => {
        const answer = await call();
        return answer.headers['x-routing-provider'] === 'first' ? answer : undefined;
      });
      expect(headers['x-ai-cost']).to.equal('0.00550000');
      const record = await the().gateway.record(key, String(headers['x-svc-request-id']));
      const { json: inForce } = await the().gateway.admin('GET', '/admin/v1/config/revision');
      expect([record['cost'], record['configRevision']]).to.deep.equal(['0.00550000', inForce.revision]);
    });

    it('the page shows control and treatment of the rollout that the new configuration started', async () => {
      await go('Rollouts');
      await page.getByText('running', { exact: true }).waitFor();
      await calls(30);
      const seen = page.getByRole('table', { name: /Results of second-for-large/ });
      await until('both groups have calls', async () => {
        const texts = await seen.locator('tbody tr').allTextContents();
        return texts.length === 2 && texts.every((text) => /^(Control|Treatment)[1-9]/.test(text));
      });
      await picture('rollouts');
    });

    it('the operator rolls the rollout back with a reason', async () => {
      await page.getByRole('button', { name: 'Roll back second-for-large' }).click();
      await dialog().getByLabel('Reason').fill('to be looked at on Monday');
      await dialog().getByRole('button', { name: 'Roll back' }).click();
      await page.getByText('rolled back', { exact: true }).waitFor();
      await page.getByText('to be looked at on Monday').waitFor();
      the().upstreams[1].always(messagesFailure(500));
      expect((await call()).status).to.equal(200);
      the().upstreams[1].always(ANSWER);
    });

    it('the search finds a customer by the last characters of an API key', async () => {
      const { spentUsd } = (await the().gateway.balance(key)).key;
      await the().gateway.admin('PATCH', `/admin/v1/keys/${keyId}`, { balanceLimit: spentUsd });
      expect((await call()).status).to.equal(402);
      await go('Accounts');
      await page.getByLabel('Search accounts, keys, users').fill(key.slice(-4));
      await row('Accounts', /Acme/).getByRole('link').click();
      await page.getByRole('heading', { name: 'Acme' }).waitFor();
      expect(await row('API keys', /web/).textContent()).to.contain('of $');
    });

    it("a raised limit applies to the key's next call", async () => {
      await page.getByRole('button', { name: 'Edit web' }).click();
      await dialog().getByLabel('Total').fill('25');
      await picture('limits');
      await dialog().getByRole('button', { name: 'Save' }).click();
      await row('API keys', /of \$25\.00/).waitFor();
      expect((await call()).status).to.equal(200);
    });

    it('a key is rotated, and its old secret works until the grace period ends', async () => {
      await page.getByRole('button', { name: 'Rotate web' }).click();
      await dialog().getByLabel('The old secret works for').selectOption('1 hour');
      await picture('rotate');
      await dialog().getByRole('button', { name: 'Rotate the key' }).click();
      await dialog().getByRole('heading', { name: 'Your new secret' }).waitFor();
      const old = key;
      key = (await dialog().locator('.secret code').textContent()) ?? '';
      await dialog().getByRole('button', { name: 'Done' }).click();
      await row('API keys', /web/).getByText('old secret until').waitFor();
      expect([(await call(old)).status, (await call()).status]).to.deep.equal([200, 200]);
    });

    it('a key is created for the account, and its secret is shown once', async () => {
      await page.getByRole('button', { name: 'Create a key' }).click();
      await dialog().getByLabel('Name').fill('batch');
      await dialog().getByText('Only these').click();
      await dialog().getByLabel(MODEL).check();
      await dialog().getByRole('button', { name: 'Create the key' }).click();
      const made = (await dialog().locator('.secret code').textContent()) ?? '';
      await dialog().getByRole('button', { name: 'Done' }).click();
      await row('API keys', /batch/).getByText(MODEL).waitFor();
      expect((await call(made)).status).to.equal(200);
    });

    it('a credit is booked only once, and with its exact amount', async () => {
      const balanceUsd = () =>
        the()
          .gateway.balance(key)
          .then((balance) => balance.balanceUsd);
      const before = await balanceUsd();
      await page.getByRole('button', { name: 'Credit' }).click();
      await dialog().getByLabel('Amount').fill('12.34567891');
      await dialog().getByLabel('Note').fill('invoice 17');
      await dialog().getByRole('button', { name: 'Book the credit' }).dblclick();
      await dialog().waitFor({ state: 'detached' });
      const units = (usd: string) => BigInt(usd.replace('.', ''));
      await until('it is booked', async () => units(await balanceUsd()) - units(before) === 1_234_567_891n);
      await picture('account');
    });

    it('the operator limits what the account spends in a week, and the budget shows what is spent already', async () => {
      const show = (view: string) => page.locator('main').getByText(view, { exact: true }).click();
      await show('Team');
      await page.getByRole('button', { name: 'Create a budget' }).click();
      await dialog().getByLabel('Limits').selectOption('account');
      await dialog().getByLabel('Window').selectOption('week');
      await dialog().getByLabel('Limit', { exact: true }).fill('100');
      await dialog().getByRole('button', { name: 'Create the budget' }).click();
      await row('Budgets, newest first', /^Acme.*per week \$0\.[1-9]\d* of \$100\.00/).waitFor();
      await picture('account-team');
      await show('Alerts');
      await row('Budgets with the percentages', /^Acme.*50, 80, 100 %/).waitFor();
      await page.getByText('No webhook yet.').waitFor();
      await picture('account-alerts');
      await show('Money and keys');
    });

    it('a key is revoked only after a confirmation, and the gateway refuses its next call', async () => {
      await page.getByRole('button', { name: 'Revoke web' }).click();
      await dialog().getByRole('button', { name: 'Keep it' }).click();
      expect((await call()).status).to.equal(200);
      await page.getByRole('button', { name: 'Revoke web' }).click();
      await dialog().getByRole('button', { name: 'Revoke the key' }).click();
      await row('API keys', /web/).getByText('Revoked').waitFor();
      expect((await call()).status).to.equal(401);
    });

    it('the operator freezes and unfreezes an account', async () => {
      await page.getByRole('button', { name: 'Freeze', exact: true }).click();
      await dialog().getByRole('button', { name: 'Freeze' }).click();
      await page.getByText('Frozen', { exact: true }).waitFor();
      await page.getByRole('button', { name: 'Unfreeze' }).click();
      await dialog().getByRole('button', { name: 'Unfreeze' }).click();
      await page.getByRole('button', { name: 'Freeze', exact: true }).waitFor();
    });

    it("the page lists a customer's sandbox with its state, until the sandbox has ended", async () => {
      const other = await the().gateway.newCustomer('20');
      const { id } = await createSandbox(the().gateway, other.key, creation('seen by an operator'));
      await go('Sandboxes');
      await row('Sandboxes', new RegExp(id)).getByText('Running').waitFor();
      await page.getByText('No supplier has an instance without a sandbox.').waitFor();
      await picture('sandboxes');
      await terminate(the().gateway, other.key, id);
      await page.getByText('No sandbox is active.').waitFor();
    });

    it('the page verifies the ledger and shows that it found no violation', async () => {
      await go('Ledger');
      await page.getByRole('button', { name: 'Verify' }).click();
      await page.getByText('No violations', { exact: true }).waitFor();
      expect(await page.getByRole('status').first().textContent()).to.match(/2 accounts and \d+ entries verified/);
      await page.getByText('Every charge was complete.').waitFor();
      await picture('ledger');
    });

    it('the audit log contains every change that the operator made', async () => {
      await go('Audit');
      const actions = page.getByRole('table', { name: /Changes/ }).locator('tbody td:nth-child(2)');
      await page
        .getByRole('table', { name: /Changes/ })
        .getByText('account.freeze', { exact: true })
        .waitFor();
      expect(await actions.allTextContents()).to.include.members([
        'operator-session.begin',
        'upstream.disable',
        'upstream.test',
        'config.apply',
        'proposal.create',
        'proposal.review',
        'proposal.apply',
        'rollout.rollback',
        'key.update',
        'key.rotate',
        'key.create',
        'account.credit',
        'key.revoke',
        'account.freeze',
      ]);
      await picture('audit');
      await page.getByLabel('Action', { exact: true }).fill('key.revoke');
      await until('one change fits', async () => (await actions.count()) === 1);
      await page.getByRole('button', { name: 'Details of key.revoke' }).click();
      await dialog().getByRole('heading', { name: 'Before' }).waitFor();
      await page.keyboard.press('Escape');
    });

    it('the old cookie is refused after the sign-out', async () => {
      const [cookie] = await page.context().cookies();
      expect(cookie).to.include({ name: 'tollgate-operator', httpOnly: true, sameSite: 'Strict' });
      await page.getByRole('button', { name: /^Operator/ }).click();
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.getByLabel('Operator token').waitFor();
      const answer = await fetch(`${the().gateway.adminUrl}/admin/v1/accounts`, {
        headers: { cookie: `${cookie?.name}=${cookie?.value}` },
      });
      expect(answer.status).to.equal(401);
    });

    it('the browser logs no error on any page of the tour', () => expect(window.complaints).to.deep.equal([]));
  });
}
