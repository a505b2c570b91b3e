import { setTimeout as sleep } from 'node:timers/promises';
import type { Session } from '../command';
import { failureText, type NodeShape, type StatusShape } from './nodes';

const LOOK_EVERY_MS = 200;

export interface Watched {
  readonly nodes: readonly NodeShape[];
  /** The number of nodes that could not apply the revision. */
  readonly failed: number;
  /** The number of nodes that reported neither in time. */
  readonly silent: number;
}

/** Reports each node that applies a revision or cannot, until all nodes have reported or the timeout is over. */
export async function watchNodes(
  { client, output }: Pick<Session, 'client' | 'output'>,
  number: number,
  timeoutMs: number,
): Promise<Watched> {
  const deadline = Date.now() + timeoutMs;
  const shown = new Set<string>();
  for (;;) {
    const { nodes: all, newest } = await client.ask<StatusShape>('GET', '/config/status');
    const nodes = all.filter(({ source }) => source === 'database');
    const answered = nodes.filter((each) => hasTaken(each, number) || hasRefused(each, number));
    for (const each of answered.filter(({ node }) => !shown.has(node))) {
      shown.add(each.node);
      const { name, failure } = each;
      const what = hasTaken(each, number) || failure === null ? 'took it' : `rejected it: ${failureText(failure)}`;
      output.note(`${name} ${what} (${shown.size} of ${nodes.length})`);
    }
    if (answered.length === nodes.length || Date.now() > deadline) {
      if (newest !== null && newest.number > number) output.note(`Revision ${newest.number} was applied meanwhile.`);
      const failed = answered.filter((each) => !hasTaken(each, number)).length;
      return { nodes, failed, silent: nodes.length - answered.length };
    }
    await sleep(LOOK_EVERY_MS);
  }
}

/** Returns true for a node with this revision or a later one. */
function hasTaken(node: NodeShape, number: number): boolean {
  return node.number !== null && node.number >= number;
}

function hasRefused({ failure }: NodeShape, number: number): boolean {
  return failure?.number != null && failure.number >= number;
}
