import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { AxeResults } from 'axe-core';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { startBrowser } from './browser';
import { startGateway, type TestGateway } from './gateway';
import { startProvider, type TestProvider } from './oidc';
import { SANDBOX_GATEWAY } from './sandboxes';
import { PROJECT } from './sources';
import { until } from './until';
import { startUpstream, type TestUpstream } from './upstream';

const AXE = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

/** A gateway with the current console, a user, and a browser. */
export interface TestConsole {
  readonly gateway: TestGateway;
  readonly browser: Browser;
  /** The two upstreams of the one model; the first one has priority. */
  readonly upstreams: readonly [TestUpstream, TestUpstream];
  /** The identity provider, which replaces passwords. */
  readonly provider: TestProvider;
  readonly accountId: string;
  /** A key that exists from the start. */
  readonly key: string;
  readonly email: string;
  readonly password: string;
  /** Opens a window without a signed-in user. */
  openWindow(options?: BrowserContextOptions): Promise<ConsoleWindow>;
  /** Opens a window on this page of the console, signed in by a one-time link. */
  signIn(path: string, options?: BrowserContextOptions): Promise<ConsoleWindow>;
  stop(): Promise<void>;
}

export interface ConsoleWindow extends AsyncDisposable {
  readonly page: Page;
  /** The errors of the browser: failed scripts, and resources that the content security policy blocked. */
  readonly complaints: readonly string[];
}

/** Browser settings without animations, so that tests need not wait for them. */
const STILL = { timezoneId: 'Europe/Berlin', reducedMotion: 'reduce' } as const;

const EMAIL = 'ana@acme.example';
const PASSWORD = 'correct horse battery';
/** The credit of the account. */
export const CREDIT_USD = '20';

export async function openConsole(): Promise<TestConsole> {
  await promisify(execFile)(
    process.execPath,
    [join(PROJECT, 'node_modules/vite/bin/vite.js'), 'build', 'console', '--mode', 'console', '--logLevel', 'warn'],
    { cwd: PROJECT },
  );
  const [first, second] = [await startUpstream(), await startUpstream()];
  const provider = await startProvider();
  const { url: issuer, clientId, clientSecret } = provider;
  const oidc = { name: 'Acme', issuer, clientId, clientSecret: { env: 'OIDC_SECRET' }, allowPrivate: true };
  const gateway = await startGateway({
    ...SANDBOX_GATEWAY,
    plugins: { ...SANDBOX_GATEWAY.plugins, console: { oidc } },
    env: { OIDC_SECRET: clientSecret, WEBHOOKS_ALLOW_PRIVATE: 'true' },
    upstreams: {
      first: { url: first.url, tier: 'official' },
      second: { url: second.url },
    },
  });
  const { accountId, key } = await gateway.newCustomer(CREDIT_USD, { name: 'first key' });
  const user = await gateway.admin('POST', `/admin/v1/accounts/${accountId}/users`, {
    email: EMAIL,
    password: PASSWORD,
  });
  const browser = await startBrowser();

  const openWindow = (options: BrowserContextOptions = {}) =>
    openWindowAt(browser, { baseURL: gateway.url, ...options });

  return {
    gateway,
    browser,
    upstreams: [first, second],
    provider,
    accountId,
    key,
    email: EMAIL,
    password: PASSWORD,
    openWindow,
    signIn: async (path, options) => {
      const link = await gateway.admin('POST', `/admin/v1/users/${user.json.id}/sign-in-link`, {});
      const window = await openWindow(options);
      await window.page.goto(link.json.path);
      await window.page.getByRole('navigation', { name: 'Pages' }).waitFor();
      if (path !== '/console') await window.page.goto(path);
      return window;
    },
    stop: async () => {
      await browser.close();
      await gateway.stop();
      await provider.close();
      await first.stop();
      await second.stop();
    },
  };
}

export async function openWindowAt(browser: Browser, options: BrowserContextOptions): Promise<ConsoleWindow> {
  const context = await browser.newContext({ ...STILL, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    // Ignores failed requests, because the page reports them itself.
    const isAnswer = /^Failed to load resource: the server responded with a status of 4/.test(message.text());
    if (['error', 'warning'].includes(message.type()) && !isAnswer) complaints.push(message.text());
  });
  return { page, complaints, [Symbol.asyncDispose]: () => context.close() };
}

/** Opens a page and waits until it is complete. */
export async function showPage(page: ConsoleWindow['page'], path: string): Promise<void> {
  await page.goto(path);
  await page.locator('main h1').waitFor();
  await until(`${path} is complete`, async () => (await page.locator('.bone, .chart-bone, .is-stale').count()) === 0);
}

/** Presses Tab until the element with this name has the focus. */
export async function tabTo({ page }: Pick<ConsoleWindow, 'page'>, name: RegExp): Promise<void> {
  for (let pressed = 0; pressed < 60; pressed += 1) {
    await page.keyboard.press('Tab');
    const focused = (await page.evaluate(
      'document.activeElement.getAttribute("aria-label") ?? document.activeElement.innerText ?? ""',
    )) as string;
    if (name.test(focused.trim())) return;
  }
  throw new Error(`Tab does not reach ${name}`);
}

/** Returns a function that saves a picture of a page, such as `docs/images/console-team.png`, in the folder `PICTURES`. Without it there are none. */
export function pictureTaker(of: string, pageOf: () => ConsoleWindow['page']): (name: string) => Promise<void> {
  const folder = process.env['PICTURES'];
  return async (name) => {
    if (folder === undefined) return;
    const page = pageOf();
    await page.mouse.move(0, 0);
    await until('nothing loads', async () => (await page.locator('.bone, .chart-bone, .is-stale').count()) === 0);
    await page.screenshot({ path: join(folder, `${of}-${name}.png`) });
  };
}

/** Returns the accessibility violations that axe finds. */
export async function findingsOf(page: ConsoleWindow['page'], rules?: readonly string[]): Promise<readonly string[]> {
  await page.evaluate(AXE);
  const { violations } = (await page.evaluate(
    `axe.run(${JSON.stringify({ runOnly: rules, resultTypes: ['violations'] })})`,
  )) as AxeResults;
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(
      ({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join('\n')}`,
    );
}
