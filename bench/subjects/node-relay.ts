import { CHAT_PATH } from '../bodies';
import type { Rig } from '../rig';
import type { RunningSubject, StartOptions } from './subject';

/** Starts one of the simple relays under `programs/`, which run on Node and are compared with the gateway. */
export async function startNodeRelay(
  rig: Rig,
  name: string,
  { upstream, nodeArgs = [] }: StartOptions,
  env: Readonly<Record<string, string>> = {},
  storePids: readonly number[] = [],
): Promise<RunningSubject> {
  const program = await rig.program(name, { nodeArgs, env: { UPSTREAM_URL: upstream.url, ...env } });
  const port = await program.message<number>('port');
  return {
    url: `http://127.0.0.1:${port}${CHAT_PATH}`,
    headers: {},
    pids: [program.pid],
    storePids,
    program,
  };
}
