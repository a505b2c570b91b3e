import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { JoinedNetwork } from '../dialer';

const JOIN = 'nsenter';

/** Returns the network of a running container, by the file that the engine keeps of it: the file's name is never used again. */
export function joinedNetwork(name: string, file: string): JoinedNetwork {
  return { name, words: [JOIN, `--net=${file}`, '--'] };
}

/** Tries whether this process may start programs in networks of others, by the one that it is in itself. */
export async function canJoinNetworks(): Promise<boolean> {
  const { words } = joinedNetwork('', `/proc/${process.pid}/ns/net`);
  const [program = '', ...rest] = [...words, 'true'];
  return promisify(execFile)(program, rest).then(
    () => true,
    () => false,
  );
}
