import Anthropic from '@anthropic-ai/sdk';
import { expect } from 'chai';
import type { ConsoleWindow, TestConsole } from '../support/console-page';
import { CREDIT_USD } from '../support/console-page';
import { MODEL } from '../support/gateway';
import { units } from '../support/sandboxes';
import { until } from '../support/until';
import { messagesAnswer, messagesFailure } from '../support/upstream';

const STRATEGIES = ['default', 'quality', 'speed', 'cost'];

/** Declares what a customer does on the first day; each step needs the steps before it. */
export function journey(the: () => TestConsole): void {
  describe("a customer's first day in the console", () => {
    let window: ConsoleWindow;
    let page: ConsoleWindow['page'];
    let apiKey: string;
    let csv: string;

    before(async () => {
      window = await the().openWindow({ acceptDownloads: true });
      page = window.page;
      for (const upstream of the().upstreams) {
        upstream.always(messagesAnswer({ text: 'Hi there', usage: { input: 1_000, output: 200 } }));
      }
    });
    after(() => window?.[Symbol.asyncDispose]());

    const client = () => new Anthropic({ baseURL: the().gateway.url, apiKey, maxRetries: 0 });
    const say = (words: string, headers: Record<string, string> = {}) =>
      client().messages.create(
        { model: MODEL, max_tokens: 300, messages: [{ role: 'user', content: words }] },
        { headers },
      );
    const rows = () => page.getByRole('table', { name: 'Usage records' }).locator('tbody tr');

    it('the sign-in refuses a wrong password with a message, and opens the requested page with the right one', async () => {
      await page.goto('/console/keys');
      await page.getByLabel('E-mail address').fill(the().email);
      await page.getByLabel('Password').fill('not the password');
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByText('Wrong e-mail address or password.').waitFor();
      await page.getByLabel('Password').fill(the().password);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('heading', { name: 'API Keys' }).waitFor();
      expect(new URL(page.url()).pathname).to.equal('/console/keys');
    });

    it('the customer creates a key, which the dialog shows only once and Escape does not close', async () => {
      await page.getByRole('button', { name: 'Create a key' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByLabel('Name').fill('journey');
      await dialog.getByLabel('Total').fill('1.5');
      await dialog.getByLabel('Calls per minute').fill('60');
      await dialog.getByText('Only these').click();
      await dialog.getByLabel(MODEL).check();
      await dialog.getByRole('button', { name: 'Create the key' }).click();
      apiKey = (await dialog.locator('.secret code').textContent()) ?? '';
      expect(apiKey).to.match(/^sk-svc-[0-9A-Za-z]{46}$/);
      for (const _ of [1, 2, 3]) await page.keyboard.press('Escape');
      expect(await dialog.isVisible(), 'Escape does not lose the key').to.equal(true);
      await dialog.getByRole('button', { name: 'Done' }).click();
      const row = page.getByRole('row', { name: /journey/ });
      expect(await row.textContent())
        .to.contain(`${apiKey.slice(0, 11)}…${apiKey.slice(-4)}`)
        .and.contain('of $1.50');
      expect(await page.content()).not.to.contain(apiKey);
    });

    it('the records show a call made through an SDK, without a reload', async () => {
      await page.getByRole('link', { name: 'Usage Records', exact: true }).click();
      await page.getByText('No calls in this range').waitFor();
      await say('Hello');
      await rows().first().waitFor();
      const text = await rows().first().textContent();
      expect(text).to.contain(MODEL).and.contain('journey').and.contain('$0.00600000');
    });

    it('the record of a call that failed over lists each attempt with its upstream and status', async () => {
      the().upstreams[0].next(messagesFailure(529), messagesFailure(529));
      await say('Hello again');
      const row = rows().filter({ hasText: 'attempts' });
      await row.getByRole('link').click();
      const sheet = page.getByRole('dialog');
      await sheet.getByText('$0.00600000').first().waitFor();
      const attempts = await sheet.locator('.attempts li').allTextContents();
      expect(attempts.length).to.be.greaterThan(1);
      expect(attempts[0]).to.contain('first').and.contain('529');
      expect(attempts.at(-1)).to.contain('second').and.contain('answered');
      await page.keyboard.press('Escape');
      expect(await sheet.isVisible()).to.equal(false);
    });

    it('a filter is kept in the page address, and the CSV export has exactly the filtered records', async () => {
      await the().gateway.call('/v1/messages', {
        key: the().key,
        body: { model: MODEL, max_tokens: 300, messages: [{ role: 'user', content: 'Not of the journey' }] },
      });
      await until('three records', async () => (await rows().count()) === 3);
      await page.getByRole('button', { name: 'Key' }).click();
      await page.getByRole('combobox').fill('jour');
      await page.getByRole('option', { name: /journey/ }).click();
      await until('two records', async () => (await rows().count()) === 2);
      expect(new URL(page.url()).searchParams.get('key')).to.match(/^[0-9a-f-]{36}$/);
      await page.reload();
      await until('two records again', async () => (await rows().count()) === 2);

      const download = page.waitForEvent('download');
      await page.getByRole('link', { name: 'CSV' }).click();
      csv = await textOf(await (await download).createReadStream());
      const lines = csv.trimEnd().split('\r\n');
      expect(lines).to.have.length(3);
      expect(lines.slice(1).every((line) => line.includes('journey'))).to.equal(true);
    });

    it('the costs in the CSV add up to what the ledger charged', async () => {
      const [head = '', ...lines] = csv.trimEnd().split('\r\n');
      const at = head.split(',').indexOf('cost');
      const sum = lines.reduce((total, line) => total + units(line.split(',')[at] ?? ''), 0n);
      const balance = await the().gateway.balance(apiKey);
      expect(units(balance.key['spentUsd'] ?? '')).to.equal(sum);
      expect(units(balance.balanceUsd)).to.equal(units(`${CREDIT_USD}.00000000`) - sum - 600_000n);
      await page.locator('.stat', { hasText: 'Cost' }).getByText('$0.012', { exact: true }).first().waitFor();
    });

    it('the record of a call links to all calls of its session and to their total cost', async () => {
      const session = { 'x-claude-code-session-id': 'task-7', 'x-claude-code-agent-id': 'agent-a1' };
      await say('Begin', session);
      await say('Continue', session);
      await until('four records', async () => (await rows().count()) === 4);
      await rows().first().getByRole('link').click();
      await page.getByRole('dialog').getByRole('button', { name: 'All calls of this session' }).click();
      await until('two records', async () => (await rows().count()) === 2);
      expect(new URL(page.url()).searchParams.get('session')).to.equal('task-7');
      await page.locator('.stat', { hasText: 'Cost' }).getByText('$0.012', { exact: true }).first().waitFor();

      await page.getByRole('button', { name: 'Agent' }).click();
      await page.getByRole('combobox').fill('agent-b2');
      await page.getByRole('option', { name: 'agent-b2' }).click();
      await page.getByText('No matching records').waitFor();
      await page.getByRole('button', { name: 'Clear' }).click();
      await until('all records', async () => (await rows().count()) === 5);
    });

    it('the chosen columns of the table are kept after a reload', async () => {
      await page.getByRole('button', { name: 'Columns' }).click();
      await page.getByLabel('Request id').check();
      await page.getByLabel('Upstream', { exact: true }).uncheck();
      await page.reload();
      await rows().first().waitFor();
      const heads = await page.getByRole('table', { name: 'Usage records' }).locator('thead th').allTextContents();
      expect(heads).to.include('Request id').and.not.include('Upstream');
    });

    it('the overview shows the balance, the models with their prices, and an example call to copy', async () => {
      await page.getByRole('link', { name: 'Overview', exact: true }).click();
      await page.getByText('$19.97', { exact: true }).first().waitFor();
      const models = await page.getByRole('table', { name: /Models/ }).textContent();
      expect(models).to.contain(MODEL).and.contain('$3.00').and.contain('$15.00');
      expect(await page.getByRole('region', { name: 'Example: curl' }).textContent()).to.contain(
        `${the().gateway.url}/v1/messages`,
      );
      await page.getByText('Chat', { exact: true }).click();
      await page.getByText('OpenAI · TypeScript').click();
      const snippet = await page.getByRole('region', { name: 'Example: OpenAI · TypeScript, Chat' }).textContent();
      expect(snippet).to.contain(`baseURL: '${the().gateway.url}/v1'`).and.contain(`model: '${MODEL}'`);
    });

    it('the example calls use the address of the chosen strategy', async () => {
      const shown = () => page.getByRole('region', { name: 'Example: OpenAI · TypeScript, Chat' }).textContent();
      const strategies = page.getByRole('combobox', { name: 'Strategy' });
      expect(await strategies.locator('option').allTextContents()).to.deep.equal(STRATEGIES);
      for (const strategy of STRATEGIES.slice(1)) {
        await strategies.selectOption(strategy);
        expect(await shown()).to.contain(`baseURL: '${the().gateway.url}/${strategy}/v1'`);
      }
      await strategies.selectOption('default');
      expect(await shown()).to.contain(`baseURL: '${the().gateway.url}/v1'`);
    });

    it('the overview shows the settings for coding agents, and names each protocol that no model supports', async () => {
      const shown = (name: string) => page.getByRole('region', { name: `Example: ${name}, Agents` }).textContent();
      await page.getByText('Agents', { exact: true }).click();
      expect(await shown('Claude Code')).to.equal(
        [
          `export ANTHROPIC_BASE_URL=${the().gateway.url}`,
          'export ANTHROPIC_AUTH_TOKEN="$TOLLGATE_API_KEY"',
          `export ANTHROPIC_MODEL=${MODEL}`,
        ].join('\n'),
      );
      await page.getByText('OpenCode', { exact: true }).click();
      await page.getByText('Put these lines into ~/.config/opencode/opencode.json.').waitFor();
      expect(await shown('OpenCode'))
        .to.contain(`"tollgate/${MODEL}"`)
        .and.contain('"npm": "@ai-sdk/anthropic"');
      await page.getByText('Codex', { exact: true }).click();
      expect(await shown('Codex')).to.contain(`base_url = "${the().gateway.url}/v1"`);
      await page.getByText('Embeddings', { exact: true }).click();
      await page.getByText('No model that you may call speaks embeddings.').waitFor();
    });

    it('the customer sets expiry and addresses of a key, and an invalid value shows an error beside its field', async () => {
      await page.getByRole('navigation').getByRole('link', { name: 'API Keys' }).click();
      await page.getByRole('button', { name: 'Edit journey' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByLabel('Expires').fill('2999-01-01T00:00');
      await dialog.getByLabel('Allowed addresses').fill('acme');
      await dialog.getByRole('button', { name: 'Save' }).click();
      await dialog.getByText('allowedAddresses[0]: expected an address or a range').waitFor();
      await dialog.getByLabel('Allowed addresses').fill('127.0.0.1, 2001:db8::/32');
      await dialog.getByRole('button', { name: 'Save' }).click();
      await dialog.waitFor({ state: 'detached' });
      const row = page.getByRole('row', { name: /journey/ });
      await row.getByText('Jan 1, 2999').waitFor();
      await row.getByText('from 2 ranges').waitFor();
      expect((await say('From here?')).type).to.equal('message');
    });

    it('rotating a key shows the new secret, and the old secret stops working after the chosen grace period', async () => {
      const old = apiKey;
      await page.getByRole('button', { name: 'Rotate journey' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByLabel('The old secret works for').selectOption('Stop it now');
      await dialog.getByRole('button', { name: 'Rotate the key' }).click();
      await dialog.getByRole('heading', { name: 'Your new secret' }).waitFor();
      apiKey = (await dialog.locator('.secret code').textContent()) ?? '';
      expect(apiKey)
        .to.match(/^sk-svc-[0-9A-Za-z]{46}$/)
        .and.not.equal(old);
      await dialog.getByRole('button', { name: 'Done' }).click();
      expect(await page.getByRole('row', { name: /journey/ }).textContent()).to.contain(`…${apiKey.slice(-4)}`);
      expect((await say('With the new one')).type).to.equal('message');
      const refused = await new Anthropic({ baseURL: the().gateway.url, apiKey: old, maxRetries: 0 }).models
        .list()
        .then(() => undefined)
        .catch((error: unknown) => error);
      expect(refused).to.be.instanceOf(Anthropic.AuthenticationError);
    });

    it('a key is revoked only after a confirmation, and the gateway refuses its next call', async () => {
      await page.getByRole('navigation').getByRole('link', { name: 'API Keys' }).click();
      await page.getByRole('button', { name: 'Revoke journey' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Keep it' }).click();
      expect((await say('Still there?')).type).to.equal('message');
      await page.getByRole('button', { name: 'Revoke journey' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Revoke the key' }).click();
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      const refused = await say('And now?').catch((error: unknown) => error);
      expect(refused).to.be.instanceOf(Anthropic.AuthenticationError);
      await until(
        'the key left the list',
        async () => (await page.getByRole('row', { name: /journey/ }).count()) === 0,
      );
    });

    it('the browser logs no error on any page of the first day', () => expect(window.complaints).to.deep.equal([]));
  });
}

async function textOf(stream: NodeJS.ReadableStream): Promise<string> {
  let text = '';
  for await (const chunk of stream) text += String(chunk);
  return text;
}
