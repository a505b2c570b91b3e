import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { JoinedNetwork } from '../dialer';

const JOIN = 'nsenter';

/** Returns the network of a running container by the engine's file for it, whose name is never used again. */
export function joinedNetwork(name: string, file: string): JoinedNetwork {
  return { name, words: [JOIN, `--net=${file}`, '--'] };
}

/** Tests whether this process may start programs in other networks, by joining its own. */
export async function canJoinNetworks(): Promise<boolean> {
  const { words } = joinedNetwork('', `/proc/${process.pid}/ns/net`);
  const [program = '', ...rest] = [...words, 'true'];
  return promisify(execFile)(program, rest).then(
    () => true,
    () => false,
  );
}
