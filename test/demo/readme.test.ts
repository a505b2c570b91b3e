import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { parse } from 'yaml';
import { demoServer } from '../../demo/demo-server';
import { claudeCode } from '../agents/clients/claude-code';
import type { Client } from '../agents/clients/client';
import { codex } from '../agents/clients/codex';
import { installAgents, runInEmptyHome } from '../support/agents';
import { startGateway, type TestGateway } from '../support/gateway';
import { PROJECT, textOf } from '../support/sources';
import { chatAnswer, startUpstream, type TestUpstream } from '../support/upstream';

const run = promisify(execFile);
const URL = 'http://127.0.0.1:8080';
const KEY = 'sk-svc-…';

/** Commands that another program runs: on a bare machine, or in a copy of the project. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  'npm run quickstart': 'test/rehearse.sh',
  'npm test': 'test/rehearse.sh',
  'npx tollgate init my-gateway': 'test/long/installed-package.test.ts',
  'cd my-gateway': 'test/long/installed-package.test.ts',
  'npm install': 'test/long/installed-package.test.ts',
  'npx tollgate start --demo': 'test/long/installed-package.test.ts',
};

/** Agents without a terminal: the program of a block, and how it is asked. */
const AGENTS: Readonly<Record<string, { readonly client: Client; readonly asked: string }>> = {
  claude: { client: claudeCode, asked: 'claude -p "say hello"' },
  codex: { client: codex, asked: 'codex exec --skip-git-repo-check "say hello"' },
};

const blocks = [...textOf('README.md').matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map(([, language, text = '']) => ({
  language,
  text,
}));
const textsOf = (language: string) => blocks.filter((block) => block.language === language).map(({ text }) => text);
const withoutComments = (text: string) => text.replaceAll(/ +#.*$/gm, '');

/** The commands of all shell blocks, each block as one list; a line that ends with a backslash continues. */
const scripts = textsOf('sh').map((text) =>
  withoutComments(text)
    .trimEnd()
    .split(/(?<!\\)\n/),
);

describe('the README', function () {
  this.timeout(180_000);
  let demo: Server;
  let acme: TestUpstream;
  let gateway: TestGateway;
  let key: string;
  let folder: string;

  before(async () => {
    await installAgents();
    folder = await mkdtemp(join(tmpdir(), 'tollgate-readme-'));
    demo = demoServer('demo').listen(0, '127.0.0.1');
    await once(demo, 'listening');
    acme = await startUpstream();
    acme.always(chatAnswer());
    const { port } = demo.address() as AddressInfo;
    const { acme: shown } = parse(textsOf('yaml')[0] ?? '').serviceEndpoints;
    gateway = await startGateway({
      upstreams: {},
      configure: (config) => {
        config['serviceEndpoints'] = {
          demo: { ...parse(textOf('gateway.config.yml')).serviceEndpoints.demo, url: `http://127.0.0.1:${port}` },
          acme: { ...shown, url: acme.url, allowPrivate: true },
        };
      },
      env: { DEMO_UPSTREAM_KEY: 'demo', ACME_API_KEY: 'acme' },
    });
    ({ key } = await gateway.newCustomer('5'));
    await mkdir(join(folder, '.tollgate'));
    await writeFile(join(folder, '.tollgate/admin-token'), gateway.adminToken);
  });
  after(async () => {
    await gateway?.stop();
    await acme?.stop();
    demo?.closeAllConnections();
    demo?.close();
    await rm(folder, { recursive: true, force: true });
  });

  const here = (text: string) => text.replaceAll(URL, gateway.url).replaceAll(KEY, key);

  for (const commands of scripts) {
    const own = commands.filter((command) => ELSEWHERE[command] === undefined);
    for (const command of commands.filter((each) => ELSEWHERE[each] !== undefined))
      it(`contains a command that another existing test file, ${ELSEWHERE[command]}, tests: ${command}`, () =>
        expect(existsSync(join(PROJECT, ELSEWHERE[command] ?? ''))).to.equal(true));
    const agent = AGENTS[own.at(-1) ?? ''];
    if (agent !== undefined) {
      it(`has commands with which ${agent.client.title} works and answers \`${agent.asked}\``, async () => {
        const point = { url: '', key: '', model: '' };
        const { program, env } = agent.client.command({ feature: 'hello', prompt: '', point });
        const { code, output } = await runInEmptyHome({
          program: 'sh',
          args: ['-euc', here([...own.slice(0, -1), agent.asked].join('\n'))],
          env: { ...env, PATH: `${dirname(program)}:${process.env['PATH']}` },
          files: { '.codex/config.toml': here(textsOf('toml').join('')) },
          withinMs: 90_000,
        });
        expect(output, output).to.contain('You wrote: "say hello"');
        expect(code, output).to.equal(0);
      });
    } else if (own.length > 0) {
      it(`has commands that work: ${own[0]}`, async () => {
        const program = `'${process.execPath}' '${join(PROJECT, 'dist/cli/tollgate.js')}'`;
        const npx = `npx() { shift; ${program} "$@"; }`;
        const curl = 'curl() { command curl --silent --show-error --fail-with-body "$@"; }';
        const { stdout } = await run('bash', ['-euc', [npx, curl, ...own.map(here)].join('\n')], {
          cwd: folder,
          env: { PATH: process.env['PATH'], TOLLGATE_URL: gateway.adminUrl, TOLLGATE_CONFIG_DIR: gateway.configFolder },
        });
        expect(stdout).not.to.equal('');
      });
    }
  }

  it('has code that works with the official SDKs', async () => {
    const [code = ''] = textsOf('ts');
    const results = code.replaceAll(/^await (.*\((?:.*\)|\{\n(?:.*\n)*?\}\)));$/gm, 'results.push(await $1);');
    expect(results.match(/results\.push/g)).to.have.length(4);
    // In the project, where its packages are found.
    const file = join(PROJECT, `node_modules/.readme-${process.pid}.mjs`);
    await writeFile(file, here(`const results = [];\n${results}console.log(JSON.stringify(results));\n`));
    try {
      const [message, completion, response, embeddings] = JSON.parse((await run(process.execPath, [file])).stdout);
      expect(message.content[0].text).to.contain('Hello');
      expect(completion.choices[0].message.content).to.contain('Hello');
      expect(response.status).to.equal('completed');
      expect(embeddings.data).to.have.length(2);
    } finally {
      await rm(file);
    }
  });

  it('has no code block in a language that this test ignores', () => {
    expect(new Set(blocks.map(({ language }) => language))).to.deep.equal(new Set(['sh', 'toml', 'ts', 'yaml']));
  });
});
