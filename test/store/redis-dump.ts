import type { Redis } from 'ioredis';
import type { MemorySnapshot } from '../../core/ledger/memory-ledger';
import { readEntry } from '../../core/ledger/redis-entry';

/** All a ledger knows, in the words of Redis; what differs by nature (entry ids, clocks) is left out. */
export interface LedgerDump {
  readonly hashes: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Ids with a deadline, and whether it has passed. */
  readonly deadlines: Readonly<Record<string, boolean>>;
  readonly outbox: readonly object[];
}

/** Two round trips, whatever is there. */
export async function dumpRedis(redis: Redis): Promise<LedgerDump> {
  const keys = (await redis.keys('{s*')).sort();
  const now = Number((await redis.time())[0]) * 1_000;
  const hashes: Record<string, Record<string, string>> = {};
  const deadlines: Record<string, boolean> = {};
  const outbox: object[] = [];
  const read = async (key: string) => {
    const name = key.slice('{s000}:'.length);
    if (name === 'meta') return;
    if (name === 'exp') {
      const members = await redis.zrange(key, 0, -1, 'WITHSCORES');
      for (let index = 0; index < members.length; index += 2) {
        deadlines[members[index] ?? ''] = Number(members[index + 1]) <= now + 60_000;
      }
    } else if (name === 'ob') {
      outbox.push(...(await redis.xrange(key, '-', '+')).map(readEntry).map(withoutId));
    } else {
      hashes[name] = await redis.hgetall(key);
    }
  };
  await Promise.all(keys.map(read));
  return { hashes, deadlines, outbox: outbox.sort(byRid) };
}

export function dumpMemory(snapshot: MemorySnapshot, now: number): LedgerDump {
  const hashes: Record<string, Record<string, string>> = {};
  for (const [id, { status, availableE8, heldE8, postedE8, seq }] of snapshot.accounts) {
    hashes[`a:${id}`] = texts({ status, available: availableE8, held: heldE8, posted: postedE8, seq });
  }
  for (const [id, { accountId, status, spentE8, heldE8, limitE8, settings }] of snapshot.keys) {
    const { rev, name, allowedModels } = settings;
    hashes[`k:${id}`] = texts({
      ...{ account: accountId, status, spent: spentE8, held: heldE8, limit: limitE8, rev },
      settings: JSON.stringify({ name, allowedModels }),
    });
  }
  for (const [rid, { accountId, keyId, state, amountE8, chargedE8, shortfallE8, record }] of snapshot.reservations) {
    hashes[`r:${rid}`] = texts({
      ...{ account: accountId, key: keyId, state },
      ...(state === 'open' ? { amount: amountE8, record } : {}),
      ...(state === 'settled' ? { charged: chargedE8, shortfall: shortfallE8 } : {}),
    });
  }
  return {
    hashes,
    deadlines: Object.fromEntries([...snapshot.deadlines].map(([rid, deadline]) => [rid, deadline <= now + 60_000])),
    outbox: snapshot.outbox.map(withoutId).sort(byRid),
  };
}

function withoutId({ id: _, ...entry }: ReturnType<typeof readEntry>): object {
  return entry;
}

function byRid(first: object, second: object): number {
  return String(Object.values(first)) < String(Object.values(second)) ? -1 : 1;
}

function texts(values: Record<string, string | bigint | number | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  );
}
