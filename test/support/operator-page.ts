import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Browser, BrowserContextOptions } from 'playwright-core';
import { startBrowser } from './browser';
import { type ConsoleWindow, openWindowAt } from './console-page';
import { startGateway, type TestGateway } from './gateway';
import { SANDBOX_GATEWAY } from './sandboxes';
import { PROJECT } from './sources';
import { startUpstream, type TestUpstream } from './upstream';

/** A gateway with the current operator's page, and a browser. */
export interface TestOperatorPage {
  readonly gateway: TestGateway;
  readonly browser: Browser;
  /** The two upstreams of the one model; the first one has priority. */
  readonly upstreams: readonly [TestUpstream, TestUpstream];
  /** Opens a window on the sign-in. */
  openWindow(options?: BrowserContextOptions): Promise<ConsoleWindow>;
  /** Opens a window on this page, signed in with the admin token. */
  signIn(path: string, options?: BrowserContextOptions): Promise<ConsoleWindow>;
  stop(): Promise<void>;
}

export async function openOperatorPage(): Promise<TestOperatorPage> {
  await promisify(execFile)(
    process.execPath,
    [join(PROJECT, 'node_modules/vite/bin/vite.js'), 'build', 'console', '--mode', 'operator', '--logLevel', 'warn'],
    { cwd: PROJECT },
  );
  const [first, second] = [await startUpstream(), await startUpstream()];
  const gateway = await startGateway({
    ...SANDBOX_GATEWAY,
    env: { CONFIG_SOURCE: 'database' },
    upstreams: { first: { url: first.url, tier: 'official' }, second: { url: second.url } },
  });
  const browser = await startBrowser();
  const openWindow = (options: BrowserContextOptions = {}) =>
    openWindowAt(browser, { baseURL: gateway.adminUrl, ...options });
  return {
    gateway,
    browser,
    upstreams: [first, second],
    openWindow,
    signIn: async (path, options) => {
      const window = await openWindow(options);
      await signInWith(window.page, path, gateway.adminToken);
      return window;
    },
    stop: async () => {
      await browser.close();
      await gateway.stop();
      await first.stop();
      await second.stop();
    },
  };
}

export async function signInWith(page: ConsoleWindow['page'], path: string, token: string): Promise<void> {
  await page.goto(path);
  await page.getByLabel('Operator token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('navigation', { name: 'Pages' }).waitFor();
}
