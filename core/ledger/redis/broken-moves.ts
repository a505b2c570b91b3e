import { Redis } from 'ioredis';
import { mastersOf, type RedisClient } from '../../storage/redis';
import { LedgerUnavailable } from '../ledger';

/**
 * Redis does not tell replicas of a slot's move. One that takes its master's place in the middle of it owns the slot and does
 * not know that some of its keys are at the node it was on its way to: it would be asked, and answer as if they never were.
 * Both halves are there, so nothing is filled or asked before somebody has brought the move to its end.
 * @throws LedgerUnavailable that names the slots
 */
export async function refuseBrokenMoves(redis: RedisClient): Promise<void> {
  if (redis instanceof Redis) return;
  const views = await Promise.all(mastersOf(redis).map(async (master) => String(await master.cluster('NODES'))));
  const leaving = new Set(views.flatMap((view) => openSlotsIn(view, '>')));
  const broken = views.flatMap((view) => openSlotsIn(view, '<')).filter((slot) => !leaving.has(slot));
  if (broken.length === 0) return;
  throw new LedgerUnavailable(
    `the move of slot ${broken.join(', ')} of the Redis Cluster was interrupted, and its keys are on two nodes: ` +
      'see docs/operating.md for how to complete it',
  );
}

/** A node tells of its own slots that are open: `[93->-id]` is one on its way to another node, `[93-<-id]` one that comes. */
function openSlotsIn(view: string, direction: '<' | '>'): readonly string[] {
  const own = view.split('\n').find((line) => line.includes('myself')) ?? '';
  return [...own.matchAll(/\[(\d+)-([<>])-\w+\]/g)].flatMap(([, slot = '', found]) =>
    found === direction ? [slot] : [],
  );
}
