import { expect } from 'chai';
import { CLIENTS } from '../agents/clients';
import { FEATURES } from '../agents/features';
import { nameOf, pinnedVersions, promised, setups } from '../agents/page';
import { textOf } from '../support/sources';

const page = textOf('docs/clients.md');

describe('docs/clients.md', () => {
  it('shows every client with the pinned versions and the setup that `npm run agents` uses', () => {
    expect(setups().filter((setup) => !page.includes(setup))).to.deep.equal([]);
  });

  it('has a row for every client and a column for every feature', () => {
    for (const client of CLIENTS) {
      const row = page.split('\n').find((line) => line.startsWith(`| ${nameOf(client)} `)) ?? '';
      expect(row.split('|').slice(2, -1), nameOf(client)).to.have.length(FEATURES.length);
    }
    expect([...promised(page)]).to.include('claude-code: hello');
  });

  it('covers every package that test/agents pins', () => {
    const shown = CLIENTS.flatMap(({ packages }) => packages);
    const beside = ['@langchain/core', 'zod'];
    expect(Object.keys(pinnedVersions()).filter((name) => ![...shown, ...beside].includes(name))).to.deep.equal([]);
  });
});
