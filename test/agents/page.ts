import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Cell, NOT_TRIED } from './cell';
import { CLIENTS } from './clients';
import type { Client, Setup } from './clients/client';
import { TRANSLATED } from './clients/translated';
import { FEATURES } from './features';

export const PAGE = resolve(__dirname, '../../docs/clients.md');
const PACKAGE = join(__dirname, 'package.json');

const YES = 'yes';
const NO = '**no**';
const NONE = '–';

/** Returns the versions of the packages that package.json pins. */
export function pinnedVersions(): Readonly<Record<string, string>> {
  const { dependencies, devDependencies } = JSON.parse(readFileSync(PACKAGE, 'utf8')) as Record<
    string,
    Record<string, string>
  >;
  return { ...dependencies, ...devDependencies };
}

/** Returns the text of docs/clients.md for the results of all clients and features. */
export function clientsPage(cells: readonly Cell[]): string {
  const agents = CLIENTS.filter(({ kind }) => kind === 'agent');
  const sdks = CLIENTS.filter(({ kind }) => kind === 'SDK');
  return [
    HEAD,
    '## What works\n',
    `\`yes\` works, ${NO} does not, \`${NONE}\` is something that the client does not have. After each cell the bill equals what the vendor would charge.\n`,
    '### Agents\n',
    matrix(agents, cells),
    '### SDKs\n',
    matrix(sdks, cells),
    '### Agents at upstreams that speak another protocol\n',
    'The gateway [translates](routing.md#translating). Codex has `web_search = "disabled"`, because the search is one of its own vendor.\n',
    matrix(TRANSLATED, cells),
    '### What the features mean\n',
    table([['feature', 'works when'], ...FEATURES.map(({ name, means }) => [name, means])]),
    ...reasons(cells),
    '## How to point a client at the gateway\n',
    POINTING,
    ...setups(),
    UNTRIED,
  ].join('\n');
}

/** Returns the pairs that the document says work, as `client feature`. */
export function promised(page: string): ReadonlySet<string> {
  const works = cellsOf(page).filter(({ state }) => state === 'works');
  return new Set(works.map(({ client, feature }) => cellName(client, feature)));
}

const STATES: ReadonlyMap<string, Cell['state']> = new Map([
  [YES, 'works'],
  [NO, 'fails'],
  [NONE, 'lacks'],
]);

/** Returns the cells that the document shows. */
export function cellsOf(page: string): readonly Cell[] {
  const found: Cell[] = [];
  let features: readonly string[] = [];
  for (const line of page.split('\n')) {
    if (!line.startsWith('| ')) continue;
    const [first = '', ...cells] = line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim());
    if (first === 'client') features = cells;
    const client = [...CLIENTS, ...TRANSLATED].find((each) => nameOf(each) === first);
    if (client === undefined) continue;
    for (const [index, cell] of cells.entries()) {
      const [state, feature = ''] = [STATES.get(cell), features[index]];
      const reasons = reasonsTold(page, nameOf(client), feature);
      if (state !== undefined) found.push({ client: client.id, feature, state, reasons, ...NOT_TRIED });
    }
  }
  return found;
}

/** Returns why a client lacks a feature, from the lists below the tables. */
function reasonsTold(page: string, name: string, feature: string): readonly string[] {
  const lines = page.split('\n').filter((line) => line.startsWith(`- ${name}: `));
  return lines.flatMap((line) => line.match(`[:,] ${feature} \\((.*?)\\)(, |$)`)?.slice(1, 2) ?? []);
}

export function cellName(client: string, feature: string): string {
  return `${client}: ${feature}`;
}

export function nameOf({ title, protocol }: Client): string {
  const only = CLIENTS.filter((each) => each.title === title).length < 2;
  return only ? title : `${title}, ${protocol}`;
}

const HEAD = `# Clients

\`npm run agents -- --write\` writes this page: it runs each program unmodified, as its package has it, against a gateway whose vendor follows a script. The vendor counts what
it would charge, by its own prices, and the gateway's bill must be the same to 1e-8 USD. \`npm run agents\` fails when something does not work that this page promises
([testing](testing.md#the-programs-people-use)).
`;

const POINTING = `\`sk-svc-…\` is an API key. A strategy stands behind the host, as in \`https://gateway.example/cost\` or \`https://gateway.example/cost/v1\`. The names of models are those of
\`GET /v1/models\`.

### Money

Agents ask for up to 128,000 tokens of output in every turn, and all of it is held. With \`onInsufficient: clamp\` of \`reserve-settle\` a call holds half of what is left instead ([little money](money.md#little-money)): switch it on for agents.
`;

const UNTRIED = `### Cursor, Cline

These run inside an editor, so they are not tried here. Their documents and published guides say:

- **Cursor**: Settings, Models, API Keys: switch on _Override OpenAI Base URL_, set it to \`https://gateway.example/v1\` and the OpenAI API key to the API key. Add the models by their names. Cursor calls from its own
  servers, so the gateway must be reachable from the internet. Completion in the editor keeps using Cursor's own models.
- **Cline**: Settings, API Provider: _OpenAI Compatible_, base URL \`https://gateway.example/v1\`, the API key and the model's name. Or _Anthropic_ with _Use custom base URL_ \`https://gateway.example\`.
`;

const EXAMPLE = { url: 'https://gateway.example', key: 'sk-svc-…' };

/** Returns a table with one row a client and one column a feature. */
function matrix(clients: readonly Client[], cells: readonly Cell[]): string {
  const rows = clients.map((client) => [
    nameOf(client),
    ...FEATURES.map(({ name }) => mark(cells.find((cell) => cell.client === client.id && cell.feature === name))),
  ]);
  return table([['client', ...FEATURES.map(({ name }) => name)], ...rows]);
}

function mark(cell: Cell | undefined): string {
  if (cell?.state === 'works') return YES;
  return cell?.state === 'lacks' ? NONE : NO;
}

function reasons(cells: readonly Cell[]): readonly string[] {
  const told = (state: Cell['state']) =>
    [...CLIENTS, ...TRANSLATED].flatMap((client) => {
      const own = FEATURES.flatMap(({ name }) =>
        cells.filter((cell) => cell.client === client.id && cell.feature === name && cell.state === state),
      );
      const parts = own.map(({ feature, reasons: [reason = ''] }) => `${feature} (${reason})`);
      return own.length === 0 ? [] : [`- ${nameOf(client)}: ${parts.join(', ')}`];
    });
  const failing = told('fails');
  return [
    ...(failing.length === 0 ? [] : ['### What does not work\n', ...failing, '']),
    '### What a client does not have\n',
    ...told('lacks'),
    '',
  ];
}

/** Returns the section of each program: its versions and its configuration for the gateway, once for protocols that share it. */
export function setups(): readonly string[] {
  const titles = [...new Set(CLIENTS.map(({ title }) => title))];
  return titles.map((title) => {
    const own = CLIENTS.filter((client) => client.title === title);
    const notes = own.flatMap(({ note }) => (note === undefined ? [] : [`${note}\n`]));
    return `### ${title}\n\n${versionsOf(own)}\n\n${[...waysOf(own), ...notes].join('\n')}`;
  });
}

function versionsOf(clients: readonly Client[]): string {
  const versions = pinnedVersions();
  const names = [...new Set(clients.flatMap(({ packages }) => packages))];
  return names.map((name) => `\`${name}\` ${versions[name] ?? ''}`).join(', ');
}

function waysOf(clients: readonly Client[]): readonly string[] {
  const ways = new Map<string, string[]>();
  for (const { setup, model, protocol } of clients) {
    const way = shown(setup({ ...EXAMPLE, model }));
    ways.set(way, [...(ways.get(way) ?? []), protocol]);
  }
  return [...ways].map(([way, protocols]) => (ways.size === 1 ? way : `${protocols.join(' and ')}:\n\n${way}`));
}

function shown({ env, files, code }: Setup): string {
  const blocks = [
    ...(Object.keys(env).length === 0 ? [] : [fenced('sh', exportsOf(env))]),
    ...Object.entries(files).map(
      ([path, text]) => `\`~/${path}\`:\n\n${fenced(path.split('.').pop() ?? '', text.trimEnd())}`,
    ),
    ...(code === undefined ? [] : [fenced('ts', code)]),
  ];
  return blocks.join('\n');
}

/** Returns the lines of a shell that set these variables. */
export function exportsOf(env: Setup['env']): string {
  return Object.entries(env)
    .map(([name, value]) => `export ${name}=${value}`)
    .join('\n');
}

function fenced(language: string, text: string): string {
  return `\`\`\`${language}\n${text}\n\`\`\`\n`;
}

/** Returns a table in which all cells of a column have the same width; the first row is its head. */
function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)));
  const [head, ...rest] = rows.map((row) => `| ${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(' | ')} |\n`);
  return [head, `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |\n`, ...rest].join('');
}
