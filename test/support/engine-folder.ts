import { execFile } from 'node:child_process';
import { readdir, readFile, rm } from 'node:fs/promises';
import { promisify } from 'node:util';
import { until } from './until';

/**
 * Removes the folder of a Docker engine that has ended. containerd and its shims may run slightly longer, and mounts below the folder longer still. A
 * folder with a mount in it cannot be removed.
 */
export async function removeEngineFolder(folder: string): Promise<void> {
  await until('nothing of the engine runs', async () => (await processesOf(folder)).length === 0, 30_000);
  await unmountBelow(folder);
  await rm(folder, { recursive: true, force: true });
}

/** Lists the processes with the folder in their command line, as containerd and its shims have it. */
async function processesOf(folder: string): Promise<readonly string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name) && name !== String(process.pid));
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')));
  return pids.filter((_, index) => lines[index]?.includes(`${folder}/`));
}

/** Unmounts in reverse order, because a later mount may lie on an earlier one, even at the same place. */
async function unmountBelow(folder: string): Promise<void> {
  await until('nothing is mounted below the folder', async () => {
    // This unmount fails if the kernel has removed the mount meanwhile; the next list lacks it.
    for (const place of [...(await mountsBelow(folder))].reverse())
      await promisify(execFile)('umount', ['--lazy', place]);
    return true;
  });
}

/** Lists the mounts below a folder, in the order of mounting. */
export async function mountsBelow(folder: string): Promise<readonly string[]> {
  const lines = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n');
  const places = lines.map((line) => unescaped(line.split(' ')[4] ?? ''));
  return places.filter((place) => place.startsWith(`${folder}/`));
}

/** Decodes the octal numbers by which the kernel writes spaces and similar characters. */
function unescaped(place: string): string {
  return place.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
