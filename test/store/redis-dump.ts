import type { Redis } from 'ioredis';
import { dayOf, monthOf } from '../../core/ledger/key-limits';
import type { MemorySnapshot } from '../../core/ledger/memory-ledger';
import { readEntry } from '../../core/ledger/redis-entry';
import { LIMIT_FIELDS, limitTexts } from '../../core/ledger/redis-key-fields';

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
  const [seconds, micros] = (await redis.time()).map(Number);
  const now = (seconds ?? 0) * 1_000 + (micros ?? 0) / 1_000;
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
      hashes[name] = relative(await redis.hgetall(key), now);
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
  for (const [id, key] of snapshot.keys) {
    const { accountId, status, spentE8, heldE8, settings, ...limits } = key;
    const { rev, name, allowedModels } = settings;
    const [, ...caps] = limitTexts(limits);
    const values = {
      ...{ account: accountId, status, spent: spentE8, held: heldE8, rev },
      settings: JSON.stringify({ name, allowedModels }),
      ...Object.fromEntries(LIMIT_FIELDS.map((field, index) => [field, limitTexts(limits)[index] || undefined])),
      caps: caps.join('') === '' ? undefined : '1',
      ...(key.day === 0 ? {} : { day: key.day, day_spent: key.daySpentE8 }),
      ...(key.month === 0 ? {} : { month: key.month, month_spent: key.monthSpentE8 }),
      calls_at: key.callsAtMicros || undefined,
      tokens_at: key.tokensAtMicros || undefined,
    };
    hashes[`k:${id}`] = relative(texts(values), now);
  }
  for (const [rid, reservation] of snapshot.reservations) {
    const { accountId, keyId, state, amountE8, chargedE8, shortfallE8, record, tokens } = reservation;
    hashes[`r:${rid}`] = texts({
      ...{ account: accountId, key: keyId, state },
      ...(state === 'open' ? { amount: amountE8, record, tokens } : {}),
      ...(state === 'settled' ? { charged: chargedE8, shortfall: shortfallE8 } : {}),
    });
  }
  return {
    hashes,
    deadlines: Object.fromEntries([...snapshot.deadlines].map(([rid, deadline]) => [rid, deadline <= now + 60_000])),
    outbox: snapshot.outbox.map(withoutId).sort(byRid),
  };
}

/** Two clocks: days and months are told by their distance from now, buckets by how many of their units are taken. */
function relative(hash: Readonly<Record<string, string>>, nowMs: number): Record<string, string> {
  const change: Readonly<Record<string, (value: string) => string>> = {
    day: (value) => String(Number(value) - dayOf(nowMs)),
    month: (value) => String(Number(value) - monthOf(nowMs)),
    calls_at: (value) => unitsTaken(value, hash['calls'], nowMs),
    tokens_at: (value) => unitsTaken(value, hash['tokens'], nowMs),
  };
  return Object.fromEntries(Object.entries(hash).map(([name, value]) => [name, change[name]?.(value) ?? value]));
}

function unitsTaken(fullAtMicros: string, limit: string | undefined, nowMs: number): string {
  return String(Math.max(0, Math.ceil(((Number(fullAtMicros) / 1_000 - nowMs) * Number(limit ?? '1')) / 60_000)));
}

function withoutId({ id: _, ...entry }: ReturnType<typeof readEntry>): object {
  return entry;
}

function byRid(first: object, second: object): number {
  const place = (entry: object) => {
    const { rid, seq } = entry as { rid: string; seq: number };
    return `${rid} ${seq}`;
  };
  return place(first) < place(second) ? -1 : 1;
}

function texts(values: Record<string, string | bigint | number | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  );
}
