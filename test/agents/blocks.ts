import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { resolve } from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { demoServer } from '../../demo/demo-server';
import { installAgents, type ProgramTask, runInEmptyHome } from '../support/agents';
import { startGateway, type TestGateway } from '../support/gateway';
import type { Extent } from '../support/own-packages';
import { textOf } from '../support/sources';
import { CLIENTS } from './clients';
import type { Client } from './clients/client';
import { node24 } from './node';
import { nameOf } from './page';

/** The blocks of docs/clients.md for one client: lines of a shell, files below the home, and lines of a program. */
interface Blocks {
  readonly script: string;
  readonly files: Readonly<Record<string, string>>;
  readonly code: string;
}

/** What every answer of the demo upstream says. */
const ANSWER = 'there is no real model behind it';
/** Sends a prompt through the provider that the lines before it have made. */
const ask = (model: string) => `
import { generateText } from 'ai';
console.log((await generateText({ model: tollgate('${model}'), prompt: 'say hello' })).text);`;

/** Has the clients whose packages are all installed run their blocks of docs/clients.md, each as it stands but for address and key. */
export function describeBlocks(extent: Extent, isChosen: (client: Client) => boolean): void {
  describe('docs/clients.md has blocks that work as they stand for', function () {
    this.timeout(120_000);
    const demo = demoServer('demo');
    let gateway: TestGateway;
    let key: string;

    before(async function () {
      this.timeout(600_000);
      await installAgents(undefined, extent);
      if (extent === 'all') node24();
      await once(demo.listen(0, '127.0.0.1'), 'listening');
      const { models, ...shipped } = parse(textOf('gateway.config.yml')).serviceEndpoints.demo;
      const aliases = [...new Set(CLIENTS.map(({ model }) => model))];
      gateway = await startGateway({
        upstreams: {},
        configure: (config) => {
          config['serviceEndpoints'] = {
            demo: {
              ...shipped,
              url: `http://127.0.0.1:${(demo.address() as AddressInfo).port}`,
              models: { 'demo-model': { ...models['demo-model'], aliases } },
            },
          };
        },
        env: { DEMO_UPSTREAM_KEY: 'demo' },
      });
      ({ key } = await gateway.newCustomer('100'));
    });
    after(async () => {
      await gateway?.stop();
      demo.closeAllConnections();
      demo.close();
    });

    for (const client of CLIENTS.filter(isChosen))
      it(nameOf(client), async () => {
        const blocks = blocksFor(
          client,
          textOf('docs/clients.md').replaceAll('https://gateway.example', gateway.url).replaceAll('sk-svc-…', key),
        );
        const { code, output } = await runInEmptyHome(taskOf(client, blocks));
        expect(output, output).to.contain(ANSWER);
        expect(code, output).to.equal(0);
      });
  });
}

/** Returns the blocks in a client's section of the page: those below the name of its protocol, or all where the protocols share them. */
function blocksFor({ title, protocol }: Client, page: string): Blocks {
  const [, section = ''] = page.split(`\n### ${title}\n`);
  const [own = ''] = section.split(/^##/m);
  const [shared = '', ...ways] = own.split(/^((?:Messages|Chat|Responses)(?: and \w+)*):$/m);
  const at = ways.findIndex((name, index) => index % 2 === 0 && name.split(' and ').includes(protocol));
  const found = [...(ways[at + 1] ?? shared).matchAll(/(?:^`~\/(.+)`:\n\n)?^```(\w+)\n([\s\S]*?)^```$/gm)];
  const textsIn = (language: string) => found.filter(([, path, name]) => path === undefined && name === language);
  expect(found, `${title}, ${protocol}`).not.to.deep.equal([]);
  return {
    script: textsIn('sh')
      .map(([, , , text]) => text)
      .join(''),
    files: Object.fromEntries(found.flatMap(([, path, , text = '']) => (path === undefined ? [] : [[path, text]]))),
    code: textsIn('ts')
      .map(([, , , text]) => text)
      .join(''),
  };
}

/** Returns what runs the blocks: the client's program behind the lines of the shell, or the lines of a program with a question. */
function taskOf(client: Client, { script, files, code }: Blocks): ProgramTask {
  const point = { url: '', key: '', model: client.model };
  const command = client.command({ feature: 'hello', prompt: 'say hello', point });
  const words =
    code === ''
      ? [command.program, ...command.args]
      : ['env', '-C', resolve(__dirname), node24(), '--input-type=module', '--eval', code + ask(client.model)];
  return {
    program: 'sh',
    args: ['-euc', `${script}exec "$@"`, 'sh', ...words],
    env: command.env,
    files,
    withinMs: 90_000,
  };
}
