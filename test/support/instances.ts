import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { INSTANCE_MARK, markedProcesses, signalAll } from '../../plugins/sandbox/suppliers/process/command';

/** Ends the commands of sandboxes of gateways with this data folder, because they outlive a gateway. */
export async function endInstances(dataFolder: string): Promise<void> {
  const suppliers = await namesIn(join(dataFolder, 'suppliers'));
  for (const supplier of suppliers) await endInstancesOf(join(dataFolder, 'suppliers', supplier));
}

/** Ends the commands of one supplier. */
export async function endInstancesOf(supplierFolder: string): Promise<void> {
  for (const name of await namesIn(join(supplierFolder, 'instances')))
    await signalAll(() => markedProcesses(INSTANCE_MARK, name), 'SIGKILL');
}

function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}

/** Returns whether a process of this machine has this command line, inside namespaces too. */
export async function isRunning(command: string): Promise<boolean> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')));
  return lines.some((line) => line.split('\0').filter(Boolean).join(' ') === command);
}
