import { readdir, readFile, readlink } from 'node:fs/promises';

const LISTEN = '0A';

/**
 * Addresses that are dialled, as the kernel writes them, and how. At another address of this machine somebody else may listen
 * on the same port.
 */
const DIALLED: Readonly<Record<string, string>> = {
  '00000000': '127.0.0.1',
  '0100007F': '127.0.0.1',
  [`${'0'.repeat(32)}`]: '[::1]',
  [`${'0'.repeat(24)}01000000`]: '[::1]',
};

/** Where these processes, and no others, listen on a port of this machine; undefined when they do not. */
export async function listeningAddress(pids: readonly number[], port: number): Promise<string | undefined> {
  const owned = await socketsOf(pids);
  for (const file of ['/proc/net/tcp', '/proc/net/tcp6']) {
    const found = (await listeners(file, port)).filter(({ address }) => address !== undefined);
    if (found.length > 0 && found.every(({ inode }) => owned.has(inode))) return found[0]?.address;
  }
  return undefined;
}

interface Listener {
  /** Where it is dialled, if it is. */
  readonly address: string | undefined;
  readonly inode: string;
}

/** `sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode`, addresses as `hex:hex port`. */
async function listeners(file: string, wanted: number): Promise<readonly Listener[]> {
  const lines = (await readFile(file, 'latin1').catch(() => '')).split('\n').slice(1);
  return lines.flatMap((line) => {
    const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/);
    const [address = '', port = ''] = local.split(':');
    return state === LISTEN && Number.parseInt(port, 16) === wanted ? [{ address: DIALLED[address], inode }] : [];
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
