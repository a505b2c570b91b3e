import { readdir, readFile, readlink } from 'node:fs/promises';

const LISTEN = '0A';

/**
 * The addresses to dial, by the listening address as the kernel writes it. Only these are dialled, because another process may
 * listen on the same port at another address of this machine.
 */
const DIALLED: Readonly<Record<string, string>> = {
  '00000000': '127.0.0.1',
  '0100007F': '127.0.0.1',
  [`${'0'.repeat(32)}`]: '::1',
  [`${'0'.repeat(24)}01000000`]: '::1',
};

/** Returns where a process listens on this port in the network of process `pid`; undefined if none does. */
export async function listeningInNetwork(pid: number, port: number): Promise<string | undefined> {
  const found = (await listeners(pid, port)).flat();
  return found.find(({ address }) => address !== undefined)?.address;
}

/** Returns where these processes, and no others, listen on a port of this machine; undefined if they do not. */
export async function listeningAddress(pids: readonly number[], port: number): Promise<string | undefined> {
  const owned = await socketsOf(pids);
  for (const family of await listeners('self', port)) {
    const found = family.filter(({ address }) => address !== undefined);
    if (found.length > 0 && found.every(({ inode }) => owned.has(inode))) return found[0]?.address;
  }
  return undefined;
}

interface Listener {
  /** The address at which to dial the listener. undefined: it is not dialled. */
  readonly address: string | undefined;
  readonly inode: string;
}

/** Returns the listeners of IPv4 and those of IPv6. */
function listeners(pid: number | 'self', port: number): Promise<(readonly Listener[])[]> {
  return Promise.all(['tcp', 'tcp6'].map((family) => readListeners(`/proc/${pid}/net/${family}`, port)));
}

/** Reads lines of `sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode`, with addresses as `hex:hex port`. */
async function readListeners(file: string, wanted: number): Promise<readonly Listener[]> {
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
