import { expect } from 'chai';
import { type ConsoleWindow, findingsOf, showPage, type TestConsole } from '../support/console-page';

/** The path of a page, and the action that opens a dialog or menu on it. */
export type Shown = readonly [path: string, open?: (page: ConsoleWindow['page']) => Promise<void>];

export interface Looks {
  readonly the: () => Pick<TestConsole, 'signIn' | 'openWindow'>;
  readonly home: string;
  readonly widths: readonly number[];
  readonly all: () => readonly Shown[];
}

/** Declares what holds for every page in a browser, in the console and in the operator's page. */
export function looksOf({ the, home, widths, all }: Looks): void {
  // Only colours differ between the themes, so the dark one is checked only by the rules for colours.
  for (const [colorScheme, rules] of [
    ['light', undefined],
    ['dark', ['color-contrast', 'link-in-text-block']],
  ] as const) {
    it(`no page breaks an accessibility rule in the ${colorScheme} theme, and the browser logs no error`, async () => {
      await using window = await the().signIn(home, { colorScheme });
      for (const [path, open] of all()) {
        await showPage(window.page, path);
        await open?.(window.page);
        expect(await findingsOf(window.page, rules), path).to.deep.equal([]);
      }
      expect(window.complaints).to.deep.equal([]);
    }).timeout(90_000);
  }

  it('the sign-in page breaks no accessibility rule', async () => {
    await using window = await the().openWindow();
    await window.page.goto(home);
    await window.page.getByRole('button', { name: 'Sign in' }).waitFor();
    expect(await findingsOf(window.page)).to.deep.equal([]);
    expect(window.complaints).to.deep.equal([]);
  });

  it('no page needs horizontal scrolling at any width from a phone to a wide screen', async () => {
    await using window = await the().signIn(home);
    for (const path of new Set(all().map(([each]) => each))) {
      await showPage(window.page, path);
      for (const width of widths) {
        await window.page.setViewportSize({ width, height: 800 });
        const wider = await window.page.evaluate('document.documentElement.scrollWidth - window.innerWidth');
        expect(wider, `${path} at ${width}`).to.be.at.most(0);
      }
    }
  }).timeout(60_000);
  it('the first page loads nothing from another origin, and at most 200 KiB in total', async () => {
    await using window = await the().openWindow();
    const { page } = window;
    const sizes: Promise<number>[] = [];
    const origins = new Set<string>();
    page.on('response', (response) => origins.add(new URL(response.url()).origin));
    page.on('requestfinished', (request) => {
      sizes.push(request.sizes().then(({ responseBodySize }) => responseBodySize));
    });
    await page.goto(home);
    await page.getByRole('button', { name: 'Sign in' }).waitFor();
    const bytes = (await Promise.all(sizes)).reduce((sum, each) => sum + each, 0);
    expect([...origins]).to.deep.equal([new URL(page.url()).origin]);
    expect(bytes).to.be.within(10_000, 200 * 1_024);
  });
}
