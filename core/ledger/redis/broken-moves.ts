import { Redis } from 'ioredis';
import { mastersOf, type RedisClient } from '../../storage/redis';
import { LedgerUnavailable } from '../ledger';

/**
 * Refuses a Cluster in which the move of a slot was interrupted. Redis does not tell replicas about the move of a slot. If a
 * replica is promoted during the move, it owns the slot but does not know which keys are already on the target node. It would
 * answer as if those keys never existed. Because both nodes still have their keys, the ledger is neither filled nor used until an
 * operator has completed the move.
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

/** Returns the slots of the answering node that are being moved: `[93->-id]` leaves for another node, `[93-<-id]` arrives from one. */
function openSlotsIn(view: string, direction: '<' | '>'): readonly string[] {
  const own = view.split('\n').find((line) => line.includes('myself')) ?? '';
  return [...own.matchAll(/\[(\d+)-([<>])-\w+\]/g)].flatMap(([, slot = '', found]) =>
    found === direction ? [slot] : [],
  );
}
