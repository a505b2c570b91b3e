import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import type { Verb } from './command';
import { Failure } from './failure';
import { showText } from './output';

const CONFIGURATION = ['gateway.config.yml', 'system.config.yml'];

const init: Verb = (root, open) => {
  root
    .command('init <folder>')
    .description('create a folder for your own gateway, with both configuration files and a package.json')
    .action(async (given: string, _options: object, command) => {
      const { output } = open(command);
      const folder = resolve(given);
      await makeFolder(folder);
      const files: Record<string, string> = {
        'package.json': await packageOf(basename(folder)),
        '.gitignore': 'node_modules\n.tollgate\n',
      };
      for (const name of CONFIGURATION) files[name] = await shipped(name);
      for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
      await showText(output, { folder, files: Object.keys(files) }, nextSteps(given));
    });
};

/** Returns the text of a shipped file. The path of its schema is changed to the path where npm installs it. */
async function shipped(name: string): Promise<string> {
  const text = await readFile(join(OWN_FOLDER, name), 'utf8');
  return text.replace('$schema=./schemas/', '$schema=./node_modules/tollgate/schemas/');
}

async function packageOf(folder: string): Promise<string> {
  const { engines } = JSON.parse(await readFile(join(OWN_FOLDER, 'package.json'), 'utf8')) as {
    readonly engines: object;
  };
  const own = {
    name:
      folder
        .toLowerCase()
        .replace(/[^a-z0-9._-]+/g, '-')
        .replace(/^[._-]+/, '') || 'my-gateway',
    version: '1.0.0',
    private: true,
    engines,
    scripts: { start: 'tollgate start', demo: 'tollgate start --demo', check: 'tollgate config validate' },
    // No npm registry has Tollgate yet, so npm links the package that runs this command.
    dependencies: { tollgate: `file:${OWN_FOLDER}` },
  };
  return `${JSON.stringify(own, null, 2)}\n`;
}

function nextSteps(folder: string): string[] {
  return [
    `Created a gateway in ${folder}. To try it with a demo upstream, an account and a key:`,
    '',
    `  cd ${folder}`,
    '  npm install',
    '  npx tollgate start --demo',
    '',
    'Tollgate is not published yet, so package.json depends on the folder that made this gateway. Keep it:',
    `  ${OWN_FOLDER}`,
    '',
    'For real models set ANTHROPIC_API_KEY or OPENAI_API_KEY, or name your upstreams in gateway.config.yml; then',
    '`npx tollgate config validate` checks it, and `npx tollgate start` starts the gateway.',
  ];
}

export default init;

/** The folder of this package, wherever it is installed. */
export const OWN_FOLDER = dirname(require.resolve('tollgate/package.json'));

/** Creates a folder. @throws Failure if the folder exists already or cannot be created */
export async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const why = code === 'EEXIST' ? 'already exists: choose another name' : `cannot be created (${code})`;
    throw new Failure(`${folder} ${why}.`, { cause });
  }
}
