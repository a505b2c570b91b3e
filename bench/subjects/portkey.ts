import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '../../test/support/free-port';
import { until } from '../../test/support/until';
import { CHAT_PATH } from '../bodies';
import { CACHE_FOLDER, NotAvailable, type Rig } from '../rig';
import type { Subject } from './subject';

const PACKAGE = '@portkey-ai/gateway';
const VERSION = '1.15.2';
const FOLDER = join(CACHE_FOLDER, 'portkey');
const INSTALLED = join(FOLDER, 'node_modules', ...PACKAGE.split('/'));

/** Runs the gateway Portkey from its npm package with its own start script. It is measured without streams, because its published version fails on them. */
export const portkey: Subject = {
  name: 'portkey',
  summary: `${PACKAGE} ${VERSION} from npm, no metering, no storage`,
  isNode: true,
  streams: false,
  start: async (rig, { upstream, nodeArgs = [] }) => {
    await install(rig);
    const port = await freePort();
    const program = await rig.node('portkey', join(INSTALLED, 'build', 'start-server.js'), {
      args: [`--port=${port}`, '--headless'],
      cwd: INSTALLED,
      nodeArgs,
    });
    const url = `http://127.0.0.1:${port}`;
    await until('Portkey answers', async () => program.child.exitCode !== null || (await fetch(url)).ok, 20_000);
    if (program.child.exitCode !== null) throw new NotAvailable(`it ended with ${program.child.exitCode}`);
    return {
      url: url + CHAT_PATH,
      headers: {
        'x-portkey-provider': 'openai',
        'x-portkey-custom-host': `${upstream.url}/v1`,
        authorization: 'Bearer bench',
      },
      pids: [program.pid],
      storePids: [],
      program,
      version: (JSON.parse(readFileSync(join(INSTALLED, 'package.json'), 'utf8')) as { version: string }).version,
    };
  },
};

async function install({ options, signal }: Rig): Promise<void> {
  if (existsSync(INSTALLED)) return;
  options.progress(`installing ${PACKAGE} ${VERSION} into the cache of the bench`);
  await mkdir(FOLDER, { recursive: true });
  try {
    const args = [
      'install',
      '--prefix',
      FOLDER,
      '--no-audit',
      '--no-fund',
      '--ignore-scripts',
      `${PACKAGE}@${VERSION}`,
    ];
    await promisify(execFile)('npm', args, { cwd: FOLDER, signal });
  } catch (error) {
    const { stderr = '' } = error as { stderr?: string };
    throw new NotAvailable(`${PACKAGE} could not be installed: ${stderr.trim().split('\n')[0]}`);
  }
}
