import { existsSync, realpathSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { acquireLines } from './apt';
import { ask, run } from './run';

/** Files and folders that say how the machine reaches package archives, names and peers it trusts. */
const MACHINE_SETTINGS = [
  ...['sources.list', 'sources.list.d', 'preferences', 'preferences.d', 'auth.conf', 'auth.conf.d'].map(inApt),
  ...['keyrings', 'trusted.gpg', 'trusted.gpg.d'].map(inApt),
  '/usr/share/keyrings',
  '/etc/resolv.conf',
  '/etc/hosts',
  '/etc/ssl/certs',
  '/usr/local/share/ca-certificates',
];

function inApt(name: string): string {
  return join('/etc/apt', name);
}

const CERTIFICATE_FILES = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'GIT_SSL_CAINFO'];
const NPM_FILES = ['userconfig', 'globalconfig', 'cafile'];
const PROXIES = /^(https?|all|no)_proxy$/i;
const NPM_SETTINGS = /^npm_config_(registry|userconfig|globalconfig|cafile|ca|proxy|https_proxy|noproxy|strict_ssl)$/i;

/** Returns the environment of a bare machine: where its programs are, and from this machine what leads to the network. */
export function environmentOf(env: NodeJS.ProcessEnv, node: string, home: string): NodeJS.ProcessEnv {
  const passed = Object.entries(env).filter(
    ([name]) => CERTIFICATE_FILES.includes(name) || PROXIES.test(name) || NPM_SETTINGS.test(name),
  );
  const folders = [dirname(node), '/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];
  return { ...Object.fromEntries(passed), PATH: [...new Set(folders)].join(':'), HOME: home, LANG: 'C.UTF-8' };
}

/** Puts Node, npm and the machine's settings into the folder of a bare machine, each at the path it has here. */
export async function furnish(root: string, signal: AbortSignal): Promise<void> {
  await mkdir(join(root, homedir()), { recursive: true });
  // What a setting links to may be outside of the bare machine, as with /etc/resolv.conf.
  await copy(['--archive', '-H'], [...MACHINE_SETTINGS, ...certificateFiles(), ...(await npmFiles())], root, signal);
  await copy(['--archive'], nodeAndNpm(), root, signal);
  const acquire = acquireLines(await ask('apt-config', ['dump']));
  await writeFile(join(root, 'etc/apt/apt.conf.d/99-rehearsal'), acquire);
}

/** Copies files and folders to the same paths below a folder, where they are added to what is there. */
async function copy(
  how: readonly string[],
  paths: readonly string[],
  root: string,
  signal: AbortSignal,
): Promise<void> {
  for (const path of new Set(paths)) {
    if (!existsSync(path)) continue;
    await mkdir(dirname(join(root, path)), { recursive: true });
    await run(['cp', ...how, '--no-target-directory', path, join(root, path)], signal);
  }
}

function certificateFiles(): readonly string[] {
  return CERTIFICATE_FILES.flatMap((name) => (process.env[name] ?? '').split(':'));
}

async function npmFiles(): Promise<readonly string[]> {
  const files: string[] = [];
  for (const name of NPM_FILES) files.push((await ask('npm', ['config', 'get', name])).trim());
  return files;
}

/** Node's own program, npm's folder, and the links by which a shell finds npm. */
function nodeAndNpm(): readonly string[] {
  const launchers = ['npm', 'npx'].map((name) => join(dirname(process.execPath), name));
  const folder = dirname(dirname(realpathSync(launchers[0] ?? '')));
  return [process.execPath, ...launchers, folder];
}
