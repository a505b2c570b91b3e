import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { WORK_FOLDER } from '../supplier';
import { type ControlGroups, findControlGroups } from './bounds';
import { endHolder, startHolder } from './holder';
import { makeRoot } from './instance-folder';
import { type Launcher, PATH } from './launcher';
import { commandWords } from './namespaces';
import { startProcess } from './run';

/** The isolation that this machine can provide. */
export interface Means {
  readonly hasNamespaces: boolean;
  readonly controlGroups: ControlGroups | undefined;
  /** Whether limits of single processes apply. They do not for root. */
  readonly hasLimits: boolean;
}

/** Tests what this machine can provide. `problem` says why instances are not isolated. */
export async function findMeans(
  launcher: Launcher,
  folder: string,
  isWanted: boolean,
): Promise<Means & { readonly problem: string | undefined }> {
  const failure = isWanted ? await tryNamespaces(launcher, folder) : 'the setting isolation is none';
  const hasNamespaces = failure === undefined;
  const controlGroups = hasNamespaces ? await findControlGroups() : undefined;
  const hasLimits = hasNamespaces && process.getuid?.() !== 0;
  const isBounded = controlGroups !== undefined || hasLimits;
  const unbounded =
    'memory and processes are not bounded: control groups (cgroups) cannot be made, and limits do not hold for root';
  return { hasNamespaces, controlGroups, hasLimits, problem: failure ?? (isBounded ? undefined : unbounded) };
}

/** Tests an instance with namespaces and a command in it. Returns why that fails; undefined if it works. */
async function tryNamespaces(launcher: Launcher, folder: string): Promise<string | undefined> {
  const root = await mkdtemp(join(folder, '.unfinished-'));
  try {
    await makeRoot(root);
    const { holder } = await startHolder(launcher, root, [], {}, 2 ** 20);
    try {
      const argv = commandWords(holder.pid, WORK_FOLDER, ['/bin/sh', '-c', ':']);
      const program = { argv, cwd: '/', env: { PATH }, words: [], stdin: undefined };
      const { output, exit } = await startProcess(launcher, program);
      let printed = '';
      for await (const { bytes } of output) printed += bytes.toString();
      return (await exit).exitCode === 0 ? undefined : printed.trim();
    } finally {
      await endHolder(holder);
    }
  } catch (error) {
    return (error as Error).message;
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}
