import { expect } from 'chai';
import { type ConsoleWindow, findingsOf, showPage, type TestConsole } from '../support/console-page';

/** A page, and what one does to see the rest of it. */
export type Shown = readonly [path: string, open?: (page: ConsoleWindow['page']) => Promise<void>];

export interface Looks {
  readonly the: () => Pick<TestConsole, 'signIn' | 'openWindow'>;
  readonly home: string;
  readonly widths: readonly number[];
  readonly all: () => readonly Shown[];
}

/** What every page has to be in a browser, the console's and the operator's. */
export function looksOf({ the, home, widths, all }: Looks): void {
  // Only colours differ.
  for (const [colorScheme, rules] of [
    ['light', undefined],
    ['dark', ['color-contrast', 'link-in-text-block']],
  ] as const) {
    it(`is usable by everybody in the ${colorScheme} theme, and breaks no rule of its own`, async () => {
      await using window = await the().signIn(home, { colorScheme });
      for (const [path, open] of all()) {
        await showPage(window.page, path);
        await open?.(window.page);
        expect(await findingsOf(window.page, rules), path).to.deep.equal([]);
      }
      expect(window.complaints).to.deep.equal([]);
    }).timeout(90_000);
  }

  it('the sign-in too', async () => {
    await using window = await the().openWindow();
    await window.page.goto(home);
    await window.page.getByRole('button', { name: 'Sign in' }).waitFor();
    expect(await findingsOf(window.page)).to.deep.equal([]);
    expect(window.complaints).to.deep.equal([]);
  });

  it('fits from a phone to a wide screen', async () => {
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
}
