import type { World } from '../chaos/faults';
import { FAULTS } from '../chaos/faults';
import type { Node } from '../chaos/nodes';

/** A process that must survive, and a node that is killed and replaced. */
export interface Nodes {
  readonly watched: Node;
  readonly other: Node;
}

const KILLS = ['node: kill -9', 'worker: kill -9', 'Redis: connections cut', 'Postgres: connections cut'];
const IDLE_TIMEOUTS = ['10s', '11s'];

/** Lists the disturbances beside load and attacks, in turn. */
export function disturbancesOf({ watched, other }: Nodes, world: World): ReadonlyMap<string, () => Promise<void>> {
  const both = [watched, other].map((node) => () => node.current());
  let reloads = 0;
  /** Changes a timeout, which makes the gateway reconnect to the upstream. */
  const change = async () => {
    reloads += 1;
    const idle = IDLE_TIMEOUTS[reloads % IDLE_TIMEOUTS.length];
    for (const gateway of both)
      await gateway()?.changeConfiguration(({ serviceEndpoints: { acme } }) => {
        acme.timeouts.idle = idle;
      });
  };
  const kills = KILLS.map((name) => {
    const fault = FAULTS[name];
    if (fault === undefined) throw new Error(`chaos has no fault "${name}"`);
    return [name, () => fault({ ...world, nodes: [other] })] as const;
  });
  return new Map([
    ...kills,
    [
      'reload: POST /admin/v1/config/reload',
      async () => {
        await change();
        for (const gateway of both) {
          const answer = await gateway()?.admin('POST', '/admin/v1/config/reload');
          if (answer !== undefined && answer.status !== 200)
            throw new Error(`a reload is ${answer.status}: ${answer.text}`);
        }
      },
    ],
    [
      'reload: SIGHUP',
      async () => {
        await change();
        for (const gateway of both) gateway()?.process.kill('SIGHUP');
      },
    ],
  ]);
}
