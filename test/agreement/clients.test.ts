import { expect } from 'chai';
import { GROUPS } from '../../console/pages/overview/snippets';
import { CLIENTS } from '../agents/clients';
import { TRANSLATED } from '../agents/clients/translated';
import { FEATURES } from '../agents/features';
import { cellName, cellsOf, clientsPage, exportsOf, pinnedVersions, promised, setups } from '../agents/page';
import { textOf } from '../support/sources';

const page = textOf('docs/clients.md');

describe('docs/clients.md', () => {
  it('lists every client with the pinned versions and the setup that `npm run agents` uses', () => {
    expect(setups().filter((setup) => !page.includes(setup))).to.deep.equal([]);
  });

  it('states for every client and feature whether it works, and the reason if it does not', () => {
    const names = [...CLIENTS, ...TRANSLATED].flatMap(({ id }) => FEATURES.map(({ name }) => cellName(id, name)));
    const cells = cellsOf(page);
    expect(cells.map(({ client, feature }) => cellName(client, feature))).to.have.members(names);
    expect(clientsPage(cells)).to.equal(page);
    expect([...promised(page)])
      .to.include('claude-code: hello')
      .and.not.include('codex: model list');
  });

  it('describes every client whose npm package test/agents pins', () => {
    const shown = CLIENTS.flatMap(({ packages }) => packages);
    const beside = ['@langchain/core', 'zod'];
    expect(Object.keys(pinnedVersions()).filter((name) => ![...shown, ...beside].includes(name))).to.deep.equal([]);
  });

  it('has the same settings for coding agents as the console', () => {
    const tried = CLIENTS.filter(({ title }) => ['Claude Code', 'Codex', 'OpenCode'].includes(title));
    for (const { id, title, protocol, model, setup } of tried) {
      const { TOLLGATE_API_KEY: _, ...env } = setup({ url: BASE, key: '"$TOLLGATE_API_KEY"', model }).env;
      const { files } = setup({ url: BASE, key: '', model });
      const lines = [exportsOf(env), ...Object.values(files)].join('').trimEnd();
      expect(shownBy(title, model, PROTOCOLS[protocol]), id).to.equal(lines);
    }
  });

  it('has the same settings for Cursor and Cline as the console', () => {
    const names = {
      Cursor: ['Settings, Models, API Keys', 'Override OpenAI Base URL', 'OpenAI API key', `${BASE}/v1`],
      Cline: ['Settings, API Provider', 'OpenAI Compatible', `${BASE}/v1`],
    };
    for (const [title, parts] of Object.entries(names)) {
      const [documented = ''] = page.split(`- **${title}**`)[1]?.split('\n- ') ?? [];
      const shown = shownBy(title, 'a-model', 'chat');
      for (const part of parts)
        expect([documented.includes(part), shown.includes(part)], part).to.deep.equal([true, true]);
    }
  });
});

const BASE = 'https://gateway.example';
const PROTOCOLS = { Messages: 'messages', Chat: 'chat', Responses: 'responses' } as const;

function shownBy(title: string, name: string, protocol: (typeof PROTOCOLS)[keyof typeof PROTOCOLS]): string {
  const snippet = GROUPS.flatMap(({ snippets }) => snippets).find((each) => each.name === title);
  const model = { name, protocols: [protocol], context: 200_000, maxOutput: 32_000 };
  return snippet?.write({ url: BASE, model }) ?? '';
}
