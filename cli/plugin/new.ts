import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { Verb } from '../command';
import { folderOf } from '../config/folder';
import { Failure, UsageError } from '../failure';
import { showText } from '../output';

const NAME = /^[a-z][a-z0-9-]{0,61}$/;

const newPlugin: Verb = (noun, open) => {
  noun
    .command('new <name>')
    .description('begin a plugin of your own beside system.config.yml: a package with settings and an endpoint')
    .action(async (name: string, _options: object, command) => {
      if (!NAME.test(name)) throw new UsageError(`"${name}" is no name for a plugin; write it as my-plugin.`);
      const { output, environment } = open(command);
      const folder = resolve(folderOf(undefined, environment), name);
      const files = { 'package.json': packageOf(name), 'index.js': pluginOf(name) };
      await makeFolder(folder);
      for (const [file, text] of Object.entries(files)) await writeFile(join(folder, file), text);
      // It must register what it brings in the very modules that serve: those of this program.
      await mkdir(join(folder, 'node_modules'));
      await symlink(
        dirname(require.resolve('tollgate/package.json')),
        join(folder, 'node_modules/tollgate'),
        'junction',
      );
      await showText(output, { name, folder, files: Object.keys(files) }, nextSteps(name, folder));
    });
};

async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const why = code === 'EEXIST' ? 'is there already: choose another name' : `cannot be made (${code})`;
    throw new Failure(`${folder} ${why}.`, { cause });
  }
}

function nextSteps(name: string, folder: string): string[] {
  return [
    `${folder} has a plugin that answers GET /${name}. Name it in system.config.yml:`,
    '',
    'plugins:',
    `  ${name}:`,
    `    package: ./${name}`,
    '    greeting: hello',
    '',
    'Then check it with `tollgate config validate`, and start the gateway again.',
  ];
}

function packageOf(name: string): string {
  return `${JSON.stringify({ name, version: '0.1.0', private: true, main: 'index.js' }, null, 2)}\n`;
}

function pluginOf(name: string): string {
  return `// What a plugin can bring stands in docs/writing-a-plugin.md and in \`Plugin\` of Tollgate's core/gateway/plugin.ts.
const { definePlugin } = require('tollgate/plugin');
const { pluginManifest } = require('tollgate/manifest');
const { sendJson } = require('tollgate/http');
const { object, shape } = require('tollgate/shape');

module.exports = pluginManifest(
  definePlugin({
    contract: 'plugin/1',
    name: '${name}',
    summary: 'Says hello.',
    // Its settings in system.config.yml.
    schema: {
      type: 'object',
      additionalProperties: false,
      properties: { greeting: { type: 'string', minLength: 1, default: 'hello' } },
    },
    routes: ({ greeting }) => [
      {
        listener: 'public',
        auth: 'none',
        method: 'GET',
        path: '/${name}',
        summary: 'Says hello.',
        answers: { 200: { description: 'A greeting.', schema: object({ greeting: shape.text }) } },
        handle: async (_visit, _request, response) => sendJson(response, 200, { greeting }),
      },
    ],
  }),
);
`;
}

export default newPlugin;
