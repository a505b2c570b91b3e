import type { Redis } from 'ioredis';
import type { OutboxEntry } from '../../../core/ledger/ledger';
import { readEntry, type StreamEntry, writeLimits, writeNameLimits } from '../../../core/ledger/redis/fields';
import { chainOf, dayNumberOf, LIMIT_WINDOWS, scopesOf, tagOf } from '../../../core/ledger/scopes';
import type { ModelAllowance, ModelLedger } from '../../support/model-ledger';

/** Everything that a ledger stores, in the terms of Redis, without values that always differ: entry ids and clocks. */
export interface LedgerDump {
  readonly hashes: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** The ids with a deadline, and whether it has passed. */
  readonly deadlines: Readonly<Record<string, boolean>>;
  readonly outbox: readonly object[];
}

/** Reads all keys of a ledger with their values, in one moment. */
const READ_ALL = `
  local all = {}
  for _, key in ipairs(redis.call('KEYS', '{s*')) do
    local kind = redis.call('TYPE', key).ok
    local values = kind == 'hash' and redis.call('HGETALL', key)
      or kind == 'zset' and redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') or redis.call('XRANGE', key, '-', '+')
    table.insert(all, { key, values })
  end
  return { redis.call('TIME'), all }`;

export async function dumpRedis(redis: Redis): Promise<LedgerDump> {
  const [[seconds, micros], all] = (await redis.eval(READ_ALL, 0)) as [[string, string], [string, unknown[]][]];
  const now = Number(seconds) * 1_000 + Number(micros) / 1_000;
  const hashes: Record<string, Record<string, string>> = {};
  const deadlines: Record<string, boolean> = {};
  const outbox: object[] = [];
  for (const [key, values] of all) {
    const name = key.slice('{s000}:'.length);
    if (name === 'meta') continue;
    if (name === 'exp')
      for (const [rid, deadline] of pairsOf(values)) deadlines[rid] = Number(deadline) <= now + 60_000;
    else if (name === 'ob')
      outbox.push(...(values as StreamEntry[]).map(readEntry).map((entry) => withoutTimes(entry, now)));
    else if (name.startsWith('tags:')) hashes[name] = members(values.filter((_, index) => index % 2 === 0));
    else if (name.startsWith('io:')) hashes[name] = inOrder(values.filter((_, index) => index % 2 === 0));
    else {
      const { account, ...others } = Object.fromEntries(pairsOf(values));
      const hash = name.startsWith('a:') || account === undefined ? others : { ...others, account };
      hashes[name] = withoutZeros(relative(hash, now));
    }
  }
  return { hashes, deadlines, outbox: outbox.sort(byRid) };
}

function pairsOf(values: readonly unknown[]): [string, string][] {
  return Array.from({ length: values.length / 2 }, (_, index) => [
    String(values[index * 2]),
    String(values[index * 2 + 1]),
  ]);
}

export function dumpMemory(model: ModelLedger, now: number): LedgerDump {
  const snapshot = model.snapshot();
  const hashes: Record<string, Record<string, string>> = {};
  for (const [id, { status, availableE8, heldE8, postedE8, seq }] of snapshot.accounts) {
    const sums = { status, available: availableE8, held: heldE8, posted: postedE8, seq };
    const own = [...(model.allowances.get(id) ?? [])];
    const fields = Object.fromEntries(own.map(([generation, al]) => [`al:${generation}`, allowanceText(al)]));
    const { names, rev: tagsRev, usedAt } = snapshot.tagsOf(id);
    const limited = [...names].map(
      ([name, { rev, limits }]) => `${name} ${rev} ${writeNameLimits(limits ?? {}, limits !== undefined)}`,
    );
    const tags = { tags: limited.join(' ') || undefined, tags_rev: tagsRev };
    const others = {
      ...scopeFields(model, `a:${id}`),
      ...tags,
      lost_until: model.lostUntil.get(id),
      account: undefined,
    };
    if (usedAt.size > 0) hashes[`tags:${id}`] = members([...usedAt.keys()]);
    hashes[`a:${id}`] = withoutZeros(relative(texts({ ...others, ...sums, ...fields }), now));
  }
  for (const [id, key] of snapshot.keys) {
    const { status, settings, callsPerMinute, tokensPerMinute, callsAtMicros, tokensAtMicros } = key;
    const { rev, name, allowedModels, markup, teamId, memberId } = settings;
    const values = {
      ...scopeFields(model, `k:${id}`),
      status,
      rev,
      settings: JSON.stringify({ name, allowedModels, markup, teamId, memberId }),
      scopes: scopesOf(settings) || undefined,
      calls: callsPerMinute,
      tokens: tokensPerMinute,
      calls_at: callsAtMicros || undefined,
      tokens_at: tokensAtMicros || undefined,
    };
    hashes[`k:${id}`] = withoutZeros(relative(texts(values), now));
  }
  for (const name of snapshot.scopes.keys())
    hashes[name] ??= withoutZeros(relative(texts(scopeFields(model, name)), now));
  for (const [rid, reservation] of snapshot.reservations) {
    const { accountId, keyId, state, amountE8, chargedE8, shortfallE8, facts, tokens, scopes } = reservation;
    hashes[`r:${rid}`] = texts({
      account: accountId,
      key: keyId,
      state,
      ...(state === 'open' ? { amount: amountE8, facts, tokens, scopes } : {}),
      ...(state === 'settled' ? { charged: chargedE8, shortfall: shortfallE8 } : {}),
    });
  }
  for (const [accountId, calls] of snapshot.intents) {
    const known = [...calls].map(([key, { rid, body, requestId }]) => [key, `${rid} ${body} ${requestId}`]);
    hashes[`i:${accountId}`] = Object.fromEntries(known);
    hashes[`io:${accountId}`] = inOrder([...calls.keys()]);
  }
  return {
    hashes,
    deadlines: Object.fromEntries(
      [...snapshot.deadlines, ...lookedAt(model)].map(([rid, deadline]) => [rid, deadline <= now + 60_000]),
    ),
    outbox: snapshot.outbox.map((entry) => withoutTimes(entry, now)).sort(byRid),
  };
}

/** Returns when the allowances and the tags of accounts are looked at. */
function lookedAt(model: ModelLedger): readonly [string, number][] {
  const { accounts, tagsOf } = model.snapshot();
  const ofTags = [...accounts.keys()].flatMap((id): [string, number][] => {
    const { lookAt } = tagsOf(id);
    return lookAt === undefined ? [] : [[`g ${id}`, lookAt]];
  });
  return [...ofTags, ...[...model.lookAt].map(([id, at]): [string, number] => [`a ${id}`, at])];
}

/** Returns the fields that the hash of every scope has. */
function scopeFields(model: ModelLedger, name: string): Record<string, string | bigint | number | undefined> {
  const scope = model.snapshot().scopes.get(name);
  if (scope === undefined) return {};
  const { accountId, limits, heldE8, spending, rev, name: shown } = scope;
  const isTag = tagOf(name) !== undefined;
  const own = [...(model.allowances.get(accountId)?.values() ?? [])].filter(({ state }) => state === 'live');
  const isUnder = ({ scopes, keyId }: ModelAllowance) => chainOf(accountId, scopes, keyId).includes(name);
  return {
    account: isTag ? undefined : accountId,
    open: isTag ? model.snapshot().tagsOf(accountId).open.get(name) : undefined,
    held: heldE8,
    spent: spending.spentE8.total,
    windows: [spending.day, ...LIMIT_WINDOWS.slice(1).map((window) => spending.spentE8[window])].join(' '),
    limits: writeLimits(limits) || undefined,
    rev,
    name: shown,
    al_live: own.filter(isUnder).length,
    free: model.freeOf(accountId, name),
    recall_until: model.recalledUntil.get(name),
  };
}

/** Lists scopes of tags. The scores in Redis are times. */
function members(names: readonly unknown[]): Record<string, string> {
  return { members: [...names].sort().join(' ') };
}

/** Lists Idempotency-Keys, oldest first. The scores in Redis are times. */
function inOrder(keys: readonly unknown[]): Record<string, string> {
  return { order: keys.join(' ') };
}

/** Makes clocks comparable: days become distances from now, buckets become the number of used units. */
function relative(hash: Readonly<Record<string, string>>, nowMs: number): Record<string, string> {
  const change: Readonly<Record<string, (value: string) => string>> = {
    windows: (value) => value.replace(/^\d+/, (day) => (day === '0' ? day : String(Number(day) - dayNumberOf(nowMs)))),
    calls_at: (value) => unitsTaken(value, hash['calls'], nowMs),
    tokens_at: (value) => unitsTaken(value, hash['tokens'], nowMs),
    recall_until: (value) => timeSeen(Number(value), nowMs),
    lost_until: (value) => timeSeen(Number(value), nowMs),
  };
  const seen = (name: string, value: string) =>
    name.startsWith('al:') ? allowanceSeen(value, nowMs) : (change[name]?.(value) ?? value);
  return Object.fromEntries(Object.entries(hash).map(([name, value]) => [name, seen(name, value)]));
}

function allowanceText({ keyId, state, sequence, digest, totalE8, openE8, untilMs, entry, scopes }: ModelAllowance) {
  const words = [keyId, state, sequence, digest, totalE8, openE8, untilMs, entry ?? '-', scopes.replaceAll(' ', ',')];
  return words.map((word) => (word === '' ? '-' : word)).join(' ');
}

/** Returns the stored members of an allowance, with the time until its lease ends, and whether it has an entry. */
function allowanceSeen(text: string, nowMs: number): string {
  const words = text.split(' ');
  const [, , , , , , untilMs, entry, scopes] = words;
  return [...words.slice(0, 6), timeSeen(Number(untilMs), nowMs), entry === '-' ? 'new' : 'told', scopes].join(' ');
}

/** Rounds to a minute, because two clocks always differ. */
function timeSeen(atMs: number, nowMs: number): string {
  return atMs === 0 ? 'none' : atMs <= nowMs ? 'past' : `in ${Math.ceil((atMs - nowMs) / 60_000)} min`;
}

/** The fields that Redis writes only with the first allowance, charge or change of limits. */
const LATE_FIELDS = ['open', 'tags_rev', 'al_live', 'free', 'spent', 'held', 'rev', 'name', 'windows'];

/** Drops zeros and empty texts of fields that Redis does not write from the beginning. */
function withoutZeros(hash: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(hash).filter(
      ([name, value]) => !LATE_FIELDS.includes(name) || !['', '0', '0 0 0 0'].includes(value),
    ),
  );
}

function unitsTaken(fullAtMicros: string, limit: string | undefined, nowMs: number): string {
  return String(Math.max(0, Math.ceil(((Number(fullAtMicros) / 1_000 - nowMs) * Number(limit ?? '1')) / 60_000)));
}

/** Drops the id of an entry, and gives its day as a distance from now. */
function withoutTimes({ id: _, day, scopes, ...entry }: OutboxEntry, nowMs: number): object {
  return { ...entry, ...(day !== undefined && { day: day - dayNumberOf(nowMs) }), ...(scopes && { scopes }) };
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
