import type { Browser, Page } from 'playwright-core';
import { startBrowser } from '../../test/support/browser';
import { signedInBrowser, type TestBrowser } from '../../test/support/console';
import { startUpstreamNginx } from '../nginx';
import { attempt, type Scenario } from '../scenario';
import { runTollgate } from '../subjects/tollgate';
import type { Metrics, Round } from '../table';
import { fillUsageRecords, patientDatabase, RARE_MODEL } from '../usage-records';

const FIRST_VIEW_MS = 1_000;
const FILTERED_MS = 300;

/** The query of each filter on the console's usage page, over three months. The page reads records, totals and chart at the same time. */
const FILTERS: Readonly<Record<string, string>> = {
  'no filter': '',
  key: '&key={key}',
  model: '&model=model-0',
  upstream: '&upstream=upstream-0',
  'status 200': '&status=200',
  'status 429': '&status=429',
  'key, model': '&key={key}&model=model-0',
  'rare model': `&model=${RARE_MODEL}`,
};

/** The single queries of the console's usage page, each of which is measured separately. */
const PARTS: Readonly<Record<string, string>> = {
  overview: 'overview?timeZone=Europe/Berlin',
  records: 'usage?limit=50{range}',
  totals: 'usage/totals?{range}',
  'chart by model': 'usage/series?by=model&timeZone=Europe/Berlin{range}',
  'chart by key': 'usage/series?by=key&timeZone=Europe/Berlin{range}',
  'chart by model, Asia/Kolkata': 'usage/series?by=model&timeZone=Asia/Kolkata{range}',
  'chart by upstream of a key': 'usage/series?by=upstream&timeZone=Europe/Berlin{range}&key={key}',
};

const FIRST_OVERVIEW = 'page: first view of the overview';
const FIRST_USAGE = 'page: first view of usage';
const FILTERED = 'page: filter to result';

/** Measures the console's queries over many records, both as HTTP requests with a session and in a real browser. */
export const console: Scenario = {
  name: 'console',
  summary: 'what the console shows of many usage records: its requests, and its page in Chromium',
  includes: () => false,
  defaults: { rounds: 3, records: 1_000_000, pages: 20 },
  layout: ({ records }) => ({
    columns: [
      { key: 'p50Ms', title: 'p50 ms', digits: 0 },
      { key: 'p99Ms', title: 'p99 ms', digits: 0 },
    ],
    targets: [
      ...Object.keys(FILTERS).map((name) => ({
        what: `a filter in ≤ ${FILTERED_MS} ms`,
        subject: `filter: ${name}`,
        column: 'p50Ms',
        atMost: FILTERED_MS,
      })),
      ...[FIRST_OVERVIEW, FIRST_USAGE].map((subject) => ({
        what: `a first view in ≤ ${FIRST_VIEW_MS} ms`,
        subject,
        column: 'p50Ms',
        atMost: FIRST_VIEW_MS,
      })),
      { what: `a filter in ≤ ${FILTERED_MS} ms`, subject: FILTERED, column: 'p50Ms', atMost: FILTERED_MS },
    ],
    notes: [
      `${records} records over three months, 6 of 10 of the account that looks at all of its own; see bench/usage-records.ts.`,
      'filter: records, totals and chart at once, as the page asks for them, until the last is there.',
      'page: until records, totals and chart are drawn; a first view with an empty cache, a filter from the click on it.',
    ],
  }),
  run: async (rig, _subjects, { rounds, records, pages }) => {
    const upstream = await startUpstreamNginx(rig);
    const tollgate = await runTollgate(rig, { upstreamUrl: upstream.url, fastLane: true });
    const database = patientDatabase(tollgate.databaseUrl);
    rig.onStop(() => database.destroy());
    rig.options.progress(`console: making ${records} records`);
    await fillUsageRecords(database, records, tollgate.customer);
    const session = await signedInBrowser(tollgate.url, database, tollgate.customer.accountId);
    const browser = await startBrowser();
    rig.onStop(() => browser.close());
    const range = threeMonths();
    const fill = (asked: string) =>
      asked.replace('{range}', `&${range}`).replace('{key}', tollgate.customer.keyId).replace('?&', '?');
    const done: Round[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const metrics: Record<string, Round[string]> = {};
      const measure = async (name: string, times: number, work: () => Promise<number>) => {
        const result = await attempt(rig, () => repeat(times, work));
        metrics[name] = 'value' in result ? result.value : { failed: result.failure };
      };
      for (const [name, asked] of Object.entries(PARTS))
        await measure(name, pages, () => time(() => ask(session, fill(asked))));
      for (const [name, asked] of Object.entries(FILTERS))
        await measure(`filter: ${name}`, pages, () => time(() => askAll(session, fill(`{range}${asked}`))));
      const inPage = (path: string, work: (page: Page) => Promise<number>) => () =>
        withPage(browser, tollgate.url, session, path, work);
      await measure(FIRST_OVERVIEW, 5, inPage('', sinceNavigation('main:has(.stat-value):not(:has(.bone))')));
      await measure(FIRST_USAGE, 5, inPage(`/usage?${range}`, sinceNavigation(DRAWN)));
      await measure(FILTERED, 5, inPage(`/usage?${range}`, filterByStatus));
      rig.options.progress(`round ${round + 1}/${rounds} done`);
      done.push(metrics);
    }
    return { rounds: done, unavailable: {}, versions: {} };
  },
};

/** Returns the period of all records that bench/usage-records.ts writes. */
function threeMonths(): string {
  const now = new Date();
  const fromMs = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1);
  return `from=${new Date(fromMs).toISOString()}&to=${new Date(fromMs + 90 * 86_400_000 + 1).toISOString()}`;
}

async function repeat(times: number, work: () => Promise<number>): Promise<Metrics> {
  const measured: number[] = [];
  for (let index = 0; index < times; index += 1) measured.push(await work());
  measured.sort((one, two) => one - two);
  const at = (share: number) => measured[Math.ceil(measured.length * share) - 1] ?? 0;
  return { p50Ms: at(0.5), p99Ms: at(0.99) };
}

async function time(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}

async function ask(session: TestBrowser, path: string): Promise<void> {
  const { status, body } = await session.get(`/${path}`);
  if (status !== 200) throw new Error(`${path} responded with ${status}: ${JSON.stringify(body)}`);
}

async function askAll(session: TestBrowser, query: string): Promise<void> {
  await Promise.all([
    ask(session, `usage?limit=50${query}`),
    ask(session, `usage/totals?${query.slice(1)}`),
    ask(session, `usage/series?by=model&timeZone=Europe/Berlin${query}`),
  ]);
}

/** Opens a signed-in browser window with an empty cache, and runs the work on its page. */
async function withPage(
  browser: Browser,
  url: string,
  session: TestBrowser,
  path: string,
  work: (page: Page) => Promise<number>,
): Promise<number> {
  const context = await browser.newContext({ reducedMotion: 'reduce', timezoneId: 'Europe/Berlin' });
  try {
    const [name = '', value = ''] = session.cookie.split('=');
    await context.addCookies([{ name, value, url }]);
    const page = await context.newPage();
    await page.goto(`${url}/console${path}`, { waitUntil: 'commit' });
    return await work(page);
  } finally {
    await context.close();
  }
}

/** The CSS selector that matches once the usage page shows records, totals and chart, and no data of the previous filter. */
const DRAWN = 'main:has(tbody tr td):has(.stat-value):has(.uplot):not(:has(.bone)):not(:has(.kind-stale))';

function sinceNavigation(drawn: string) {
  return async (page: Page) => {
    await page.locator(drawn).first().waitFor();
    return page.evaluate(() => performance.now());
  };
}

async function filterByStatus(page: Page): Promise<number> {
  await page.locator(DRAWN).waitFor();
  await page.getByRole('button', { name: 'Status' }).click();
  const option = page.getByRole('option', { name: /^200/ });
  await option.waitFor();
  // Starts the clock at the page's own click event, because the browser driver first scrolls to the option and waits until the option stops moving.
  await page.evaluate("addEventListener('click', () => performance.mark('asked'), { capture: true, once: true })");
  await option.click();
  await page.getByText('none failed').waitFor();
  await page.locator(DRAWN).waitFor();
  return page.evaluate<number>("performance.now() - performance.getEntriesByName('asked')[0].startTime");
}
