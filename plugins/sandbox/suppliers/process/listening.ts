import { readdir, readFile, readlink } from 'node:fs/promises';

const LISTEN = '0A';

/** Where these processes, and no others, listen on a port of this machine; undefined when they do not. */
export async function listeningAddress(pids: readonly number[], port: number): Promise<string | undefined> {
  const owned = await socketsOf(pids);
  for (const [file, loopback] of [
    ['/proc/net/tcp', '127.0.0.1'],
    ['/proc/net/tcp6', '[::1]'],
  ] as const) {
    const inodes = await listeners(file, port);
    if (inodes.some((inode) => owned.has(inode))) return loopback;
  }
  return undefined;
}

/** `sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode`, addresses as `hex:hex port`. */
async function listeners(file: string, port: number): Promise<readonly string[]> {
  const wanted = port.toString(16).toUpperCase().padStart(4, '0');
  const lines = (await readFile(file, 'latin1').catch(() => '')).split('\n').slice(1);
  return lines.flatMap((line) => {
    const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/);
    return state === LISTEN && local.endsWith(`:${wanted}`) ? [inode] : [];
  });
}

async function socketsOf(pids: readonly number[]): Promise<ReadonlySet<string>> {
  const links = await Promise.all(pids.map(openedBy));
  return new Set(links.flat().flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []));
}

async function openedBy(pid: number): Promise<readonly string[]> {
  const names = await readdir(`/proc/${pid}/fd`).catch(() => []);
  return Promise.all(names.map((name) => readlink(`/proc/${pid}/fd/${name}`).catch(() => '')));
}
