import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { newId } from '../../../core/base/ids';
import type { UsageRecord } from '../../../core/calls/usage-record';
import type { AllowanceLedger } from '../../../core/ledger/allowances/allowance-ledger';
import type {
  KeySettings,
  Ledger,
  OutboxEntry,
  Payer,
  ReserveRequest,
  SetKeyRequest,
  TagReader,
} from '../../../core/ledger/ledger';
import type { TagSettings } from '../../../core/ledger/memory-tags';
import { RedisLedger } from '../../../core/ledger/redis/redis-ledger';
import type { ReplicaPolicy } from '../../../core/ledger/redis/replicas';
import { newScope, type Scope, type Spending, type SpendingLimits, spend, tagsIn } from '../../../core/ledger/scopes';
import type { RedisClient } from '../../../core/storage/redis';
import { quiet } from '../../support/databases';

/** What Postgres knows of tags' values, for ledgers of tests, which leave as soon as they are idle. */
export class TestTags implements TagSettings {
  static readonly MOST = 4;
  readonly idleMs = 0;
  readonly most = TestTags.MOST;
  reads = 0;
  /** Reads instead, for tests with a database. */
  from: TagReader | undefined;
  /** Runs when a ledger reads, before it gets the answer. */
  whenRead: (() => Promise<void>) | undefined;
  readonly #states = new Map<string, Scope & { rev: number }>();

  forget(): this {
    this.#states.clear();
    this.reads = 0;
    this.whenRead = undefined;
    this.from = undefined;
    return this;
  }

  limit(scope: string, limits: SpendingLimits, rev: number): void {
    Object.assign(this.#stateOf(scope), { limits, rev });
  }

  write(entries: readonly OutboxEntry[]): void {
    for (const { scopes = '', amountE8, day } of entries)
      if (day !== undefined) for (const scope of tagsIn(scopes.split(' '))) spend(this.#stateOf(scope), -amountE8, day);
  }

  readonly readTags: TagReader = async (scopes) => {
    this.reads += 1;
    if (this.from !== undefined) return this.from(scopes);
    const found = scopes.map((scope) => ({ scope, ...this.#stateOf(scope) }));
    await this.whenRead?.();
    return found;
  };

  #stateOf(scope: string): Scope & { rev: number } {
    const state = this.#states.get(scope) ?? { ...newScope(), rev: 0 };
    this.#states.set(scope, state);
    return state;
  }
}

export const testTags = new TestTags();

/** Returns the settings with which a ledger of a test counts tags. */
export function tagSettings({ readTags, idleMs, most }: TestTags): TagSettings {
  return { readTags, idleMs, most };
}

/** Makes the usage record that a call of this payer leaves. */
export function usageRecord(payer: Payer, changes: Partial<UsageRecord> = {}): UsageRecord {
  return {
    requestId: `req_${newId()}`,
    createdAt: '2026-11-20T08:00:00.123Z',
    ...payer,
    protocol: 'messages',
    path: '/v1/messages',
    strategy: 'cost',
    modelRequested: 'model-a',
    model: 'model-a',
    upstream: 'first',
    attempts: 1,
    fallback: false,
    stream: true,
    status: 200,
    source: 'provider',
    inputTokens: 10,
    outputTokens: 20,
    totalTokens: 30,
    cacheReadTokens: 0,
    billing: 'actual',
    responseTimeMs: 120,
    firstTokenMs: 30,
    configRevision: 'r1',
    ...changes,
  };
}

export function newPayer(): Payer {
  return { accountId: newId(), keyId: newId() };
}

export function hashOf(payer: Payer): string {
  return createHash('sha256').update(payer.keyId).digest('hex');
}

export function settingsOf(changes: Partial<KeySettings> = {}): KeySettings {
  return { rev: 0, name: 'a key', allowedModels: undefined, markup: undefined, ...changes };
}

export function keyRequest(payer: Payer, changes: Partial<SetKeyRequest> = {}): SetKeyRequest {
  return { ...payer, hash: hashOf(payer), status: 'active', limitE8: undefined, settings: settingsOf(), ...changes };
}

/** Returns what a scope has spent long ago: in none of its current windows. */
export function spentInAll(total: bigint): Spending {
  return { day: 0, spentE8: { total, day: 0n, week: 0n, month: 0n } };
}

/** Makes a reserve with the facts of its call, and with the record that settles it. */
export function reserveRequest(payer: Payer, amountE8: bigint, changes: Partial<ReserveRequest> = {}) {
  const record = usageRecord(payer);
  const texts = { facts: JSON.stringify(factsOf(record)), record: JSON.stringify(record) };
  return { ...payer, rid: newId(), keyRev: 0, amountE8, lifetimeMs: 120_000, ...texts, ...changes };
}

/** Opens the ledger on a connected client. */
export async function openRedisLedger(redis: RedisClient, replicas?: ReplicaPolicy): Promise<RedisLedger> {
  const ledger = new RedisLedger({
    redis,
    ...tagSettings(testTags),
    ...(replicas && { replicas: { ...replicas, log: quiet } }),
  });
  await ledger.isReady();
  return ledger;
}

export type TestReserve = ReturnType<typeof reserveRequest>;

/** Returns what is known of a call before its end. */
export function factsOf(record: UsageRecord) {
  const { requestId, createdAt, accountId, keyId, protocol, path, modelRequested, stream, configRevision } = record;
  return { requestId, createdAt, accountId, keyId, protocol, path, modelRequested, stream, configRevision };
}

/** Makes an account with this much money and one key, in an open ledger. */
export async function fundedPayer(ledger: Ledger, amountE8: bigint, limitE8?: bigint): Promise<Payer> {
  const payer = newPayer();
  await ledger.setAccount(payer.accountId, 'active');
  await ledger.setKey(keyRequest(payer, { limitE8 }));
  if (amountE8 > 0n) await ledger.credit({ accountId: payer.accountId, rid: newId(), amountE8 });
  return payer;
}

/** Makes an account with this much money, and an open hold of it. */
export async function holding(
  ledger: Ledger,
  fundsE8: bigint,
  amountE8: bigint,
  changes: Partial<ReserveRequest> = {},
) {
  const payer = await fundedPayer(ledger, fundsE8);
  const request = reserveRequest(payer, amountE8, changes);
  await ledger.reserve(request);
  return { payer, request };
}

/** Asserts that the value has these members, among any others. */
export function assertIncludes(value: object | undefined, expected: object): void {
  const there = value as Record<string, unknown> | undefined;
  assert.deepEqual(Object.fromEntries(Object.keys(expected).map((name) => [name, there?.[name]])), expected);
}

/** Returns the ledger of a node: calls over its allowances, everything else in the ledger that all nodes share. All of it is asynchronous. */
export function ledgerOf(node: AllowanceLedger, shared: Ledger): Ledger {
  const { stop } = node;
  const close = () => stop().then(() => shared.close());
  return new Proxy(shared, {
    get: (_, name) => {
      if (name === 'close') return close;
      const owner = name in node ? node : shared;
      const member: unknown = Reflect.get(owner, name);
      return typeof member === 'function' ? async (...given: unknown[]) => member.apply(owner, given) : member;
    },
  });
}

/** Returns the object with some of its operations replaced. */
export function instead<T extends object>(original: T, changes: Partial<T>): T {
  return new Proxy(original, {
    get: (target, name) => {
      const member: unknown = Reflect.get(changes, name) ?? Reflect.get(target, name);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}
