import { expect } from 'chai';
import { type ConsoleWindow, pictureTaker, type TestConsole, tabTo } from '../support/console-page';
import { MODEL } from '../support/gateway';
import { messagesAnswer } from '../support/upstream';

const PASSWORD = 'correct horse battery';

/** Declares what an owner and a person that it invites do with a team; each step needs the steps before it. */
export function team(the: () => TestConsole): void {
  describe('a team in the console', () => {
    let owner: ConsoleWindow;
    let member: ConsoleWindow;
    let page: ConsoleWindow['page'];
    let apiKey: string;

    before(async () => {
      owner = await the().signIn('/console/team', { viewport: { width: 1_440, height: 900 } });
      member = await the().openWindow();
      page = owner.page;
      the().upstreams[0].always(messagesAnswer({ text: 'Hi there', usage: { input: 1_000, output: 200 } }));
    });
    after(() => Promise.all([owner, member].map((window) => window?.[Symbol.asyncDispose]())));

    const picture = pictureTaker('console', () => page);
    const dialog = (of = page) => of.getByRole('dialog');
    const row = (table: RegExp, name: RegExp, of = page) =>
      of.getByRole('table', { name: table }).getByRole('row', { name });
    const call = () =>
      the().gateway.call('/v1/messages', {
        key: apiKey,
        body: { model: MODEL, max_tokens: 300, messages: [{ role: 'user', content: 'Hello' }] },
      });
    const confirm = async (verb: string, of = page) => {
      await dialog(of).getByRole('button', { name: verb, exact: true }).click();
      await dialog(of).waitFor({ state: 'detached' });
    };

    it('the owner makes a team and a budget for it, which is listed with its bar and with what is left', async () => {
      await page.getByText('No team yet.').waitFor();
      await page.getByRole('button', { name: 'Create a team' }).click();
      await dialog().getByLabel('Name').fill('search');
      await dialog().getByLabel('Demands of upstreams').fill('region');
      await dialog().getByRole('button', { name: 'Create the team' }).click();
      await dialog().getByText('require: expected name=value').waitFor();
      await dialog().getByLabel('Demands of upstreams').fill('context=1000');
      await dialog().getByLabel('Required tags').fill('agent');
      await confirm('Create the team');
      await row(/^Teams/, /^search/)
        .getByRole('button', { name: 'Edit' })
        .click();
      expect(await dialog().getByLabel('Demands of upstreams').inputValue()).to.equal('context=1000');
      expect(await dialog().getByLabel('Required tags').inputValue()).to.equal('agent');
      await dialog().getByLabel('Required tags').fill('');
      await confirm('Save');
      await page.getByRole('button', { name: 'Create a budget' }).click();
      await dialog().getByLabel('Team').selectOption('search');
      await dialog().getByLabel('Limit', { exact: true }).fill('5');
      await dialog().getByLabel('Report at').fill('80 50');
      await dialog().getByRole('button', { name: 'Create the budget' }).click();
      await dialog().getByText('thresholds[1]: expected more than the one before it').waitFor();
      await dialog().getByLabel('Report at').fill('50 80 100');
      await confirm('Create the budget');
      const text = await row(/^Budgets/, /^search/).textContent();
      expect(text).to.contain('Team, per month').and.contain('$0.00 of $5.00').and.contain('$0.00$5.00');
      expect(await row(/^Teams/, /^search/).textContent()).to.contain('$5.00 per month');
    });

    it('the owner invites a person by a link, which opens a session once and is removed from the address', async () => {
      await page.getByRole('button', { name: 'Invite' }).click();
      await dialog().getByLabel('E-mail address').fill('ben@acme.example');
      await dialog().getByLabel('search').check();
      await dialog().getByRole('button', { name: 'Create the link' }).click();
      const link = (await dialog().locator('.secret code').textContent()) ?? '';
      await dialog().getByRole('button', { name: 'Done' }).click();
      expect(await row(/^Open invitations/, /^ben@/).textContent())
        .to.contain('member')
        .and.contain('search');

      await member.page.goto(link);
      await member.page.getByRole('heading', { name: 'Accept the invitation' }).waitFor();
      expect(new URL(member.page.url()).hash).to.equal('');
      await member.page.getByLabel('Your password').fill(PASSWORD);
      await member.page.getByRole('button', { name: 'Accept and sign in' }).click();
      await member.page.getByRole('heading', { name: 'Overview' }).waitFor();

      await using other = await the().openWindow();
      await other.page.goto(link);
      await other.page.getByLabel('Your password').fill(PASSWORD);
      await other.page.getByRole('button', { name: 'Accept and sign in' }).click();
      await other.page.getByText('This invitation was already used, was withdrawn, or has expired.').waitFor();
      await other.page.getByRole('link', { name: 'Sign in' }).click();
      await other.page.getByLabel('E-mail address').waitFor();
    });

    it('a member makes a key in its team, and sees of the account only itself, without buttons to manage it', async () => {
      const { page: own } = member;
      await own.getByRole('link', { name: 'API Keys' }).first().click();
      await own.getByText('No keys yet').waitFor();
      await own.getByRole('button', { name: 'Create a key' }).first().click();
      await dialog(own).getByLabel('Name').fill('laptop');
      expect(await dialog(own).getByLabel('Team').locator('option').allTextContents()).to.deep.equal(['search']);
      expect(await dialog(own).getByLabel('Member').count()).to.equal(0);
      await dialog(own).getByRole('button', { name: 'Create the key' }).click();
      apiKey = (await dialog(own).locator('.secret code').textContent()) ?? '';
      await dialog(own).getByRole('button', { name: 'Done' }).click();
      expect(await row(/^API keys/, /^laptop/, own).textContent())
        .to.contain('search')
        .and.contain('ben@acme.example');

      await own.getByRole('link', { name: 'Team', exact: true }).click();
      await row(/^Teams/, /^search/, own).waitFor();
      const members = own.getByRole('table', { name: /^Members/ }).locator('tbody th');
      expect(await members.allTextContents()).to.deep.equal(['ben@acme.exampleyou']);
      expect(await own.locator('main').getByRole('button').count()).to.equal(0);
      expect(await own.getByRole('link', { name: 'Alerts' }).count()).to.equal(0);
      expect(member.complaints).to.deep.equal([]);
    });

    it('a budget of the member shows what its key spends, and the page Keys names team and member', async () => {
      await page.reload();
      await page.getByRole('button', { name: 'Create a budget' }).click();
      await dialog().getByLabel('Limits').selectOption('member');
      await dialog().getByLabel('Member').selectOption('ben@acme.example');
      await dialog().getByLabel('Window').selectOption('day');
      await dialog().getByLabel('Limit', { exact: true }).fill('0.05');
      await confirm('Create the budget');
      for (let made = 0; made < 2; made += 1) expect((await call()).status).to.equal(200);
      await row(/^Budgets/, /^ben@/)
        .getByText('$0.012', { exact: true })
        .waitFor();
      await row(/^Budgets/, /^search/)
        .getByText('$0.012', { exact: true })
        .waitFor();
      await picture('team');
      await page.getByRole('button', { name: 'Change the budget of ben@acme.example' }).click();
      await dialog().getByLabel('Limit', { exact: true }).fill('0.01');
      await confirm('Save');
      await row(/^Budgets/, /^ben@/)
        .getByText('−$0.002', { exact: true })
        .waitFor();
      expect((await call()).json.error.code).to.equal('BUDGET_EXCEEDED');

      await page.getByRole('link', { name: 'API Keys' }).click();
      expect(await row(/^API keys/, /^laptop/).textContent()).to.contain('searchben@acme.example');
    });

    it('a budget for each value of a tag is listed by the name of the tag, and the budget of one value with its bar', async () => {
      await page.getByRole('link', { name: 'Team', exact: true }).click();
      for (const value of ['', '4711']) {
        await page.getByRole('button', { name: 'Create a budget' }).click();
        await dialog().getByLabel('Limits').selectOption('tag');
        await dialog().getByLabel('Tag', { exact: true }).fill('customer');
        await dialog().getByLabel('Value').fill(value);
        await dialog().getByLabel('Limit', { exact: true }).fill('2');
        await confirm('Create the budget');
      }
      await page.getByLabel('Show').selectOption('tag');
      const rows = page.getByRole('table', { name: /^Budgets/ }).locator('tbody tr');
      await rows.filter({ hasText: /^each customerTag, per month\$2\.00 for each value/ }).waitFor();
      await rows.filter({ hasText: /^customer=4711Tag, per month\$0\.00 of \$2\.00/ }).waitFor();
      expect(await rows.count()).to.equal(2);
      await page.getByLabel('Show').selectOption('');
    });

    it('the owner changes a role, and a viewer sees the whole team without buttons', async () => {
      await page.getByRole('button', { name: 'Change role of ben@acme.example' }).click();
      await dialog().getByLabel('Role').selectOption('viewer');
      await confirm('Change the role');
      await row(/^Members/, /^ben@/)
        .getByText('viewer')
        .waitFor();
      const { page: own } = member;
      await own.reload();
      await row(/^Members/, /^ana@/, own).waitFor();
      await row(/^Budgets/, /^ben@/, own).waitFor();
      for (const path of ['team', 'alerts', 'keys']) {
        await own.goto(`/console/${path}`);
        await own.locator('main tbody th').first().waitFor();
        expect(await own.locator('main').getByRole('button').count(), path).to.equal(0);
      }
    });

    it('the last owner cannot leave, and a removed member is signed out while its keys stop working', async () => {
      await page.getByRole('button', { name: 'Leave ana@acme.example' }).click();
      await dialog().getByRole('button', { name: 'Leave' }).click();
      await dialog().getByText('CONFLICT').waitFor();
      await dialog().getByRole('button', { name: 'Stay' }).click();
      await page.getByRole('button', { name: 'Remove ben@acme.example' }).click();
      expect(await dialog().textContent()).to.contain('1 active key of this member will be revoked: laptop');
      await confirm('Remove');
      await page.getByRole('row', { name: /^ben@.*Change role/ }).waitFor({ state: 'detached' });
      expect((await call()).json.error.code).to.equal('INVALID_API_KEY');
      await member.page.getByText('Your session has ended.').waitFor();
      expect(owner.complaints).to.deep.equal([]);
    });

    it('the page Team works with the keyboard alone: the owner removes the budget and the team', async () => {
      const { keyboard } = page;
      for (const [name, verb] of [
        [/^Remove\s*the budget of search$/, /^Remove the budget$/],
        [/^Remove\s*search$/, /^Remove the team$/],
      ] as const) {
        await tabTo(owner, name);
        await keyboard.press('Enter');
        await dialog().waitFor();
        await tabTo(owner, verb);
        await keyboard.press('Enter');
        await dialog().waitFor({ state: 'detached' });
      }
      await page.getByText('No team yet.').waitFor();
    });
  });
}
