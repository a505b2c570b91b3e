import { cp, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { Argument } from 'commander';
import type { Verb } from './command';
import { folderOf } from './config';
import { UsageError } from './failure';
import { makeFolder, OWN_FOLDER } from './init';
import { showText } from './output';

const NAME = /^[a-z][a-z0-9-]{0,61}$/;

/** The kinds of plugin packages, each with the configuration lines that enable a package. */
const KINDS: Readonly<Record<string, (name: string) => readonly string[]>> = {
  upstream: adapterLines,
  dialect: adapterLines,
  policy: (name) => [
    'and in gateway.config.yml, under `policies:` and in a pipeline after model-request:',
    '',
    `      - ${name}:`,
    '          - action: { words: [falcon] }',
  ],
  plugin: (name) => ['and, to change its greeting, in gateway.config.yml:', '', `${name}:`, '  it: ciao'],
  supplier: (name) => [
    'and name it as the driver of a supplier there:',
    '',
    '  sandbox:',
    '    suppliers:',
    `      my-supplier: { driver: ${name}, url: "https://…", token: "\${MY_TOKEN}" }`,
  ],
};

function adapterLines(name: string): readonly string[] {
  return [
    'and at an upstream in gateway.config.yml:',
    '',
    'serviceEndpoints:',
    '  my-upstream:',
    `    adapter: ${name}`,
    '    # url, credential, tier, timeouts, models',
  ];
}

const newPlugin: Verb = (noun, open) => {
  noun
    .command('new')
    .addArgument(new Argument('<kind>', 'what the package contains').choices(Object.keys(KINDS)))
    .argument('<name>')
    .description('create your own package beside system.config.yml, with passing tests')
    .action(async (kind: string, name: string, _options: object, command) => {
      if (!NAME.test(name))
        throw new UsageError(
          `"${name}" is not a valid npm package name; use lower-case letters and hyphens, as in my-plugin.`,
        );
      const { output, environment } = open(command);
      const folder = resolve(folderOf(undefined, environment), name);
      await makeFolder(folder);
      const files = await copyExample(kind, name, folder);
      await findTollgate(folder);
      await showText(output, { name, folder, files }, nextSteps(kind, name, folder));
    });
};

/** Copies the example of a kind, renamed to `name`, into a folder. Returns the copied files. */
async function copyExample(kind: string, name: string, folder: string): Promise<string[]> {
  const example = join(OWN_FOLDER, 'examples', kind);
  await cp(example, folder, { recursive: true, filter: (path) => !path.includes('node_modules', example.length) });
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((each) => each.isFile()).map(({ parentPath, name: file }) => join(parentPath, file));
  for (const file of files) {
    const text = await readFile(file, 'utf8');
    await writeFile(file, text.replaceAll(`example-${kind}`, name));
  }
  return files.map((file) => file.slice(folder.length + 1)).sort();
}

/** Links this program's package into the plugin's folder if npm does not find it there, because plugin and gateway must load the same modules. */
async function findTollgate(folder: string): Promise<void> {
  try {
    createRequire(join(folder, 'index.js')).resolve('tollgate/package.json');
  } catch {
    await mkdir(join(folder, 'node_modules'));
    await symlink(OWN_FOLDER, join(folder, 'node_modules/tollgate'), 'junction');
  }
}

function nextSteps(kind: string, name: string, folder: string): string[] {
  return [
    `Created a package in ${folder}; run its tests with \`npm test\` there. Add it to system.config.yml:`,
    '',
    'plugins:',
    `  ${name}:`,
    `    package: ./${name}`,
    '',
    ...(KINDS[kind]?.(name) ?? []),
    '',
    'Then check both with `tollgate config validate`, and restart the gateway.',
  ];
}

export default newPlugin;
