import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ask } from './run';

/** Where a Docker engine in a bare machine writes down its networks, below that engine's data folder. */
const NETWORKS = 'network/files/local-kv.db';

/** Returns the bridges of a Docker engine among the machine's network interfaces: a bridge has the first digits of its network's id. */
export function bridgesOf(networks: string, interfaces: readonly string[]): readonly string[] {
  return interfaces.filter((name) => /^br-[0-9a-f]{12}$/.test(name) && networks.includes(name.slice('br-'.length)));
}

/** Removes the bridges that Docker engines in this bare machine left: the network is the machine's own, so they do not end with it. */
export async function removeBridges(root: string): Promise<void> {
  const interfaces = await readdir('/sys/class/net');
  for (const data of await dataFolders(root)) {
    const file = join(data, NETWORKS);
    if (!existsSync(file)) continue;
    for (const bridge of bridgesOf(await readFile(file, 'latin1'), interfaces))
      await ask('ip', ['link', 'delete', bridge]);
  }
}

async function dataFolders(root: string): Promise<readonly string[]> {
  const temporary = join(root, 'tmp');
  const names = existsSync(temporary) ? await readdir(temporary) : [];
  return [join(root, 'var/lib/docker'), ...names.map((name) => join(temporary, name, 'data'))];
}
