import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Cell, NOT_TRIED } from './cell';
import { CLIENTS } from './clients';
import type { Client, Setup } from './clients/client';
import { TRANSLATED } from './clients/translated';
import { FEATURES } from './features';

export const PAGE = resolve(__dirname, '../../docs/clients.md');
const PACKAGE = join(__dirname, 'package.json');

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
  return [
    HEAD,
    '## What works\n',
    `These have every feature of the table but for what the lists below it name, and are billed what the vendor would charge: ${namesOf(CLIENTS)}; where the upstream speaks another protocol ([translated](routing.md#translating)) ${namesOf(TRANSLATED)}.\n`,
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

/** Returns what the document says of each client that it names and each feature. */
export function cellsOf(page: string): readonly Cell[] {
  const [, works = ''] = page.split('\n## What works\n');
  const [named = ''] = works.split('\n| ');
  const [, failing = ''] = page.split(`\n${FAILING}\n`);
  return ALL.filter((client) => named.includes(nameOf(client))).flatMap((client) =>
    FEATURES.map(({ name: feature }): Cell => {
      const cell = { client: client.id, feature, ...NOT_TRIED };
      const lacks = client.lacks[feature];
      if (lacks !== undefined) return { ...cell, state: 'lacks', reasons: [lacks] };
      const reasons = reasonsTold(failing, nameOf(client), feature);
      return { ...cell, state: reasons.length === 0 ? 'works' : 'fails', reasons };
    }),
  );
}

/** Returns why a feature of a client fails, from the list of what does not work. */
function reasonsTold(failing: string, name: string, feature: string): readonly string[] {
  const lines = failing.split('\n').filter((line) => /^- (.*?): /.exec(line)?.[1]?.split('; ').includes(name));
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

\`npm run agents -- --write\` writes this page: it runs each program unmodified against a gateway whose vendor follows a script ([testing](testing.md#the-programs-people-use)).
`;

const POINTING = `\`sk-svc-…\` is an API key. A strategy stands behind the host, as in \`https://gateway.example/cost\` or \`https://gateway.example/cost/v1\`. Models have the names of \`GET /v1/models\`.

### Money

Agents ask for up to 128,000 tokens of output in every turn, and all of it is held. With \`onInsufficient: clamp\` of \`reserve-settle\` a call holds half of what is left instead ([little money](money.md#little-money)): switch it on for agents.

### Tags

\`X-SVC-Tags: project=alpha,customer=4711\` says for whom a call is ([contract](contract.md#42-what-reaches-the-upstream)): records, totals and budgets tell these calls apart. SDKs take headers for all calls (\`defaultHeaders\`, in Python \`default_headers\`) or for one (\`headers\`, \`extra_headers\`); Claude Code takes \`ANTHROPIC_CUSTOM_HEADERS="X-SVC-Tags: project=alpha"\`. The end user stands in the body: \`metadata.user_id\`, \`safety_identifier\` or \`user\`.

### Where calls go

A client that can send headers demands regions, retention or prices with \`X-SVC-Require\` ([demands](routing.md#where-a-call-may-go)), such as \`ANTHROPIC_CUSTOM_HEADERS="X-SVC-Require: region=eu; trains=no"\`. For all others the operator sets \`require\` of the key. Tools that run at the vendor, such as web search, are then refused, as are images by address.
`;

const UNTRIED = `### Cursor, Cline

These run inside an editor and are not tried here. Their documents say:

- **Cursor**: Settings, Models, API Keys: switch on _Override OpenAI Base URL_, set it to \`https://gateway.example/v1\` and the OpenAI API key to the API key. Add the models by name. Cursor calls from its own servers, so the gateway must be reachable from the internet. Completion keeps using Cursor's own models.
- **Cline**: Settings, API Provider: _OpenAI Compatible_, base URL \`https://gateway.example/v1\`, the API key and the model's name. Or _Anthropic_ with _Use custom base URL_ \`https://gateway.example\`.
`;

const ALL = [...CLIENTS, ...TRANSLATED];
const FAILING = '### What does not work';
const EXAMPLE = { url: 'https://gateway.example', key: 'sk-svc-…' };

function namesOf(clients: readonly Client[]): string {
  return clients.map(nameOf).join('; ');
}

/** Returns the lists of what fails and what clients lack, with one line for clients of which the same is said. */
function reasons(cells: readonly Cell[]): readonly string[] {
  const told = (state: Cell['state']) => {
    const lines = new Map<string, Client[]>();
    for (const client of ALL) {
      const own = FEATURES.flatMap(({ name }) => {
        const cell = cells.find((each) => each.client === client.id && each.feature === name);
        if (cell === undefined) return state === 'fails' ? `${name} (not tried)` : [];
        return cell.state === state ? `${name} (${cell.reasons[0] ?? ''})` : [];
      });
      if (own.length > 0) lines.set(own.join(', '), [...(lines.get(own.join(', ')) ?? []), client]);
    }
    return [...lines].map(([parts, clients]) => `- ${namesOf(clients)}: ${parts}`);
  };
  const failing = told('fails');
  return [
    ...(failing.length === 0 ? [] : [`${FAILING}\n`, ...failing, '']),
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
