import { Redis } from 'ioredis';
import type { Logger } from 'pino';
import { forEachConcurrent } from '../../base/for-each-concurrent';
import { newId } from '../../base/ids';
import { MAX_AMOUNT_E8 } from '../../base/money';
import { type LuaScript, loadScript } from '../../storage/lua';
import { duplicateRedis, type RedisClient } from '../../storage/redis';
import {
  type AllowanceStore,
  type GrantOutcome,
  type GrantRequest,
  type LastReport,
  RECALL_WAIT_MS,
  type ReportOutcome,
  type ReportRequest,
} from '../allowances/allowance-store';
import { assertAmount, assertLimits } from '../amount';
import { deadHashes, secretsOf } from '../key-access';
import {
  type AccountSnapshot,
  type AccountState,
  type AccountStatus,
  CLOSED_MS,
  type CountOutcome,
  type CreditOutcome,
  type CreditRequest,
  type ExpireOutcome,
  type FindKeyOutcome,
  type KeyState,
  type KeyStatus,
  type Ledger,
  type LedgerInspection,
  LedgerUnavailable,
  MAX_TAG_SCOPES,
  OF_TAGS,
  type OutboxEntry,
  type Payer,
  type ReleaseOutcome,
  type ReleaseRequest,
  type RenewOutcome,
  type RenewRequest,
  type ReserveOutcome,
  type ReserveRequest,
  type RollOutcome,
  type RollRequest,
  type ScopeState,
  type SetKeyRequest,
  type SetScopeRequest,
  type SettleOutcome,
  type SettleRequest,
  TAG_IDLE_MS,
  TAG_READS,
  WrongPayer,
} from '../ledger';
import { limitsFrom, spendingLimitsOf } from '../limit-fields';
import { NO_TAG_READER, type TagSettings } from '../memory-tags';
import { LIMIT_WINDOWS, nameOfTag, parseScope, type ReachedLimit, tagOf, windowEndMs } from '../scopes';
import { ALL_SHARDS } from '../shard';
import { RedisConnection, refuseBrokenMoves, type ScriptAnswer } from './connection';
import {
  describeSnapshot,
  describeTags,
  firstIdAfter,
  limitFields,
  parseLimits,
  parseSpending,
  readEntry,
  readInspection,
  readSettings,
  type StreamEntry,
  settingFields,
  writeNameLimits,
} from './fields';
import { accountPrefix, KEY_INDEX, keyIndexEntry, shardPrefix } from './keys';
import { RecallChannel, Recalls } from './recalls';
import { type ReplicaPolicy, Replicas } from './replicas';

const CALLS = ['reserve', 'settle', 'release', 'renew', 'roll', 'expire', 'count'] as const;
const ACCOUNTS = ['credit', 'set-account', 'set-scope', 'index-key', 'restore', 'inspect', 'due', 'trim'] as const;
const TAGS = ['set-tag', 'leave'] as const;
const ALLOWANCES = ['grant', 'report', 'recall', 'lapse', 'mark'] as const;
const NAMES = [...CALLS, ...ACCOUNTS, ...TAGS, ...ALLOWANCES] as const;

const SCRIPT = Object.fromEntries(NAMES.map((name) => [name, loadScript(__dirname, name)])) as Record<
  (typeof NAMES)[number],
  LuaScript
>;

export const LEDGER_SCRIPTS: readonly LuaScript[] = Object.values(SCRIPT);

/** The options of the connection for shipping and recovery. Its commands time out later, because they move many entries and no call waits for them. */
const BACKGROUND = { commandTimeout: 2_000, socketTimeout: 5_000, enableOfflineQueue: true };

/** How many accounts are restored at once. An account with a thousand recently closed calls occupies Redis for some milliseconds. */
const RESTORED_AT_ONCE = 8;
const INDEXED_AT_ONCE = 100;

/**
 * How many entries of an outbox one command reads or deletes, and how many outboxes are processed at once. Redis serves no call during a
 * command. It takes 2 µs to read an entry and 5 µs to delete one.
 */
const ENTRIES_PER_COMMAND = 64;
const OUTBOXES_AT_ONCE = 4;

/** How many names of scopes one command reads. */
const TAGS_PER_COMMAND = 2_000;

/** How often the epochs (marks of a filled ledger) of all shards are checked even if nothing is suspicious. */
const LOOK_EVERY_MS = 30_000;

/** The prefix of a member of a shard's deadlines that stands for all allowances of an account, not for a reservation. */
const OF_ALLOWANCES = 'a ';

const CLOSED = String(CLOSED_MS);

/**
 * Outcomes that confirm a change. A replica must have the change before a caller relies on it. An expiry is not listed, because the ledger
 * finds a lost expiry again.
 */
const DONE: ReadonlySet<string> = new Set([
  'reserved',
  'settled',
  'released',
  'tombstoned',
  'renewed',
  'rolled',
  'credited',
  'set',
  'indexed',
  'granted',
  'reported',
]);

interface RedisLedgerOptions extends TagSettings {
  /** The Redis client. The ledger owns it: `close` disconnects it. */
  readonly redis: RedisClient;
  readonly replicas?: ReplicaPolicy & { readonly log: Logger };
  /** How long an operation waits for money that it recalls from allowances (money that nodes hold in advance), in ms. */
  readonly recallWaitMs?: number;
}

/** The ledger of production: each operation is one Lua script in Redis, and takes one round trip. */
export class RedisLedger implements Ledger, AllowanceStore {
  readonly #calls: RedisConnection;
  readonly #background: RedisConnection;
  readonly #replicas: Replicas | undefined;
  readonly #channel: RecallChannel;
  readonly #recalls: Recalls;
  readonly #tags: Required<TagSettings>;
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor({ redis, replicas, recallWaitMs = RECALL_WAIT_MS, ...tags }: RedisLedgerOptions) {
    this.#tags = { readTags: NO_TAG_READER, idleMs: TAG_IDLE_MS, most: MAX_TAG_SCOPES, ...tags };
    this.#calls = new RedisConnection(redis, LEDGER_SCRIPTS);
    const background = duplicateRedis(redis, BACKGROUND);
    background.on('error', () => undefined); // The first connection reports that Redis is not reachable.
    this.#background = new RedisConnection(background, LEDGER_SCRIPTS);
    if (replicas !== undefined && replicas.waitReplicas > 0)
      this.#replicas = new Replicas({ redis, mark: SCRIPT.mark, policy: replicas, log: replicas.log });
    this.#channel = new RecallChannel(redis);
    this.#recalls = new Recalls({
      publish: (accountId) => this.#channel.publish(accountId),
      waitMs: recallWaitMs,
      countLive: (accountId, scope) => this.#countLive(accountId, scope),
    });
  }

  async #run(script: LuaScript, keys: readonly string[], args: readonly string[]): Promise<ScriptAnswer> {
    const answer = await this.#calls.run(script, keys, args);
    if (DONE.has(answer[0])) await this.#replicas?.confirm();
    return answer;
  }

  /** Runs an operation. If the money that it needs is held in advance by nodes (in allowances), this waits until the nodes return the money. */
  async #ask<T extends { readonly outcome: string }>(
    script: LuaScript,
    { accountId, id }: { readonly accountId: string; readonly id: string },
    keys: readonly string[],
    args: readonly (string | number | bigint | undefined)[],
  ): Promise<T> {
    const texts = args.map((each) => (each === undefined ? '' : String(each)));
    const once = () => this.#run(script, keys, texts);
    let answer = await once();
    if (answer[0] === 'recalling' && script !== SCRIPT.report)
      answer = await this.#recalls.whileRecalling(accountId, answer, once);
    return outcomeOf(script, answer, id);
  }

  async #countLive(accountId: string, scope: string): Promise<number> {
    const p = accountPrefix(accountId);
    const [word, live = '0'] = await this.#calls.run(SCRIPT.recall, [`${p}meta`, `${p}a:${accountId}`, p + scope], []);
    if (word === 'not_ready') throw notReady();
    return Number(live);
  }

  async findKey(hash: string): Promise<FindKeyOutcome> {
    const owner = await this.#calls.ask((redis) => redis.get(keyIndexEntry(hash)));
    if (owner !== null) {
      const [accountId = '', keyId = ''] = owner.split(' ');
      return { outcome: 'found', accountId, keyId };
    }
    // Redis may be emptied or refilled between two reads. A key is certainly unknown only if the same complete index existed before and after the
    // read.
    const [before, again, after] = await this.#calls.ask((redis) =>
      Promise.all([redis.get(KEY_INDEX), redis.get(keyIndexEntry(hash)), redis.get(KEY_INDEX)]),
    );
    return { outcome: before !== null && before === after && again === null ? 'unknown' : 'not_ready' };
  }

  async reserve(request: ReserveRequest): Promise<ReserveOutcome> {
    const { accountId, keyId, rid, amountE8, minE8 = amountE8, lifetimeMs, keyRev, facts, tokens, intent } = request;
    assertAmount(amountE8);
    const keys = keysOf(request, 'meta', 'a', 'k', `r:${rid}`, 'exp');
    const args = [rid, amountE8, lifetimeMs, keyRev, accountId, keyId, facts, tokens, minE8];
    const ofIntent = intent === undefined ? [] : [intent.key, intent.body, intent.requestId];
    if (intent !== undefined) keys.push(...keysOf(request, 'i', 'io'));
    const ask = (known: string): Promise<ReserveOutcome | UnknownTags> => {
      const ofTags = [request.tags, this.#tags.most, known];
      return this.#ask(SCRIPT.reserve, { accountId, id: rid }, keys, [...args, ...ofTags, ...ofIntent]);
    };
    let answer = await ask('');
    for (let times = 0; answer.outcome === 'unknown_tags'; times += 1) {
      if (times === TAG_READS) throw new LedgerUnavailable('the limits of tags change too often');
      answer = await ask(describeTags(answer.moment, await this.#tags.readTags(answer.scopes)));
    }
    return answer;
  }

  countRefused(payer: Payer): Promise<CountOutcome> {
    return this.#count(payer, '');
  }

  countRequest(payer: Payer, perMinute: number): Promise<CountOutcome> {
    return this.#count(payer, String(perMinute));
  }

  async #count({ accountId, keyId }: Payer, perMinute: string): Promise<CountOutcome> {
    const p = accountPrefix(accountId);
    const answer = await this.#calls.run(SCRIPT.count, [`${p}meta`, `${p}k:${keyId}`], [accountId, perMinute]);
    return outcomeOf(SCRIPT.count, answer, keyId);
  }

  async settle(request: SettleRequest): Promise<SettleOutcome> {
    assertAmount(request.costE8);
    const { accountId, keyId, rid, costE8, record, isLate, tokens } = request;
    const args = [rid, costE8, accountId, keyId, record, isLate === true ? 'late' : '', tokens];
    return this.#ask(SCRIPT.settle, { accountId, id: rid }, closingKeys(request, rid), args);
  }

  async release(request: ReleaseRequest): Promise<ReleaseOutcome> {
    const { accountId, keyId, rid, record } = request;
    const args = [rid, accountId, keyId, record, CLOSED_MS];
    return this.#ask(SCRIPT.release, { accountId, id: rid }, closingKeys(request, rid), args);
  }

  async renew(request: RenewRequest): Promise<RenewOutcome> {
    const { accountId, keyId, rid, lifetimeMs, amountE8 = 0n } = request;
    assertAmount(amountE8);
    const keys = keysOf(request, 'meta', 'a', 'k', `r:${rid}`, 'exp');
    return this.#ask(SCRIPT.renew, { accountId, id: rid }, keys, [rid, lifetimeMs, accountId, keyId, amountE8]);
  }

  async roll(request: RollRequest): Promise<RollOutcome> {
    const { accountId, keyId, rid, costE8, record, next } = request;
    assertAmount(costE8);
    assertAmount(next.amountE8);
    const keys = [...closingKeys(request, rid), ...keysOf(request, `r:${next.rid}`)];
    const args = [rid, costE8, accountId, keyId, record, next.rid, next.amountE8];
    return this.#ask(SCRIPT.roll, { accountId, id: rid }, keys, args);
  }

  async expire(payer: Payer, rid: string): Promise<ExpireOutcome> {
    const { accountId, keyId } = payer;
    if (rid.startsWith(OF_ALLOWANCES)) return this.#lapse(payer);
    if (rid.startsWith(OF_TAGS)) return this.#leave(payer);
    return this.#ask(SCRIPT.expire, { accountId, id: rid }, closingKeys(payer, rid), [rid, accountId, keyId]);
  }

  /** Takes back the money of this account's expired allowances (money that nodes held in advance). */
  async #lapse(payer: Payer): Promise<ExpireOutcome> {
    const keys = keysOf(payer, 'meta', 'a', 'exp', 'ob');
    const [word, , givenUp = '0'] = await this.#background.run(SCRIPT.lapse, keys, [payer.accountId]);
    if (word === 'not_ready') return { outcome: word };
    return { outcome: givenUp === '0' ? 'not_due' : 'expired' };
  }

  /** Removes scopes of tags from Redis that were not used for a while. */
  async #leave(payer: Payer): Promise<ExpireOutcome> {
    const p = accountPrefix(payer.accountId);
    const keys = [...keysOf(payer, 'meta', 'a', 'exp', 'ob'), `${p}tags:${payer.accountId}`];
    const [word] = await this.#background.run(SCRIPT.leave, keys, [payer.accountId, p, String(this.#tags.idleMs)]);
    return { outcome: word === 'not_ready' ? word : 'not_due' };
  }

  async grant(request: GrantRequest): Promise<GrantOutcome> {
    const { accountId, keyId, generation, keyRev, wantE8, besideE8, minE8, leaseMs } = request;
    const args = [generation, accountId, keyId, keyRev, wantE8, besideE8, minE8, leaseMs];
    return this.#ask(SCRIPT.grant, { accountId, id: generation }, keysOf(request, 'meta', 'a', 'k', 'exp'), args);
  }

  async report(request: ReportRequest): Promise<ReportOutcome> {
    const { accountId, keyId, generation } = request;
    const args = [
      ...[generation, request.sequence, request.digest, accountId, keyId, request.keyRev, request.costE8],
      ...[request.openE8, request.giveE8, request.wantE8, request.besideE8, request.admits ? 'admits' : ''],
      ...[request.leaseMs, request.rid, request.calls, request.shortfallE8, request.isPatient ? 'patient' : ''],
      request.isSettling ? 'settling' : '',
    ];
    return this.#ask(
      SCRIPT.report,
      { accountId, id: generation },
      keysOf(request, 'meta', 'a', 'k', 'ob', 'exp'),
      args,
    );
  }

  async lastReport(accountId: string, generation: string): Promise<LastReport | undefined> {
    const p = accountPrefix(accountId);
    const [allowance] = await this.#readWhenReady(p, `${p}a:${accountId}`, [`al:${generation}`]);
    if (!allowance) return undefined;
    const [, , sequence, digest = ''] = allowance.split(' ');
    return { sequence: Number(sequence), digest };
  }

  recall(accountId: string): void {
    this.#channel.publish(accountId);
  }

  onRecall(listener: (accountId: string) => void): void {
    this.#channel.onRecall(listener);
  }

  async credit({ accountId, rid, amountE8 }: CreditRequest): Promise<CreditOutcome> {
    assertAmount(amountE8, -MAX_AMOUNT_E8);
    const keys = keysOf({ accountId, keyId: '' }, 'meta', 'a', `r:${rid}`, 'ob');
    return this.#ask(SCRIPT.credit, { accountId, id: rid }, keys, [rid, amountE8, accountId, MAX_AMOUNT_E8]);
  }

  async setAccount(accountId: string, status: AccountStatus): Promise<void> {
    const p = accountPrefix(accountId);
    const [word, live = '0'] = await this.#run(SCRIPT['set-account'], [`${p}meta`, `${p}a:${accountId}`], [status]);
    if (word === 'not_ready') throw notReady();
    if (live !== '0') await this.#recalls.allBack(accountId, `a:${accountId}`);
  }

  /** Writes the index entry last, so that every API key that the index finds has its settings. */
  async setKey(request: SetKeyRequest): Promise<void> {
    const { accountId, keyId, settings } = request;
    assertLimits(spendingLimitsOf(request));
    const scope = `k:${keyId}`;
    const [word, live, before] = await this.#setScope(accountId, scope, settings.rev, settingFields(request));
    if (word !== 'older') {
      for (const { entry, values } of indexEntries(request)) await this.#run(SCRIPT['index-key'], [entry], values);
      const dead = deadHashes(request, before === '' ? undefined : readSettings('0', before).access);
      for (const hash of dead) await this.#calls.ask((redis) => redis.del(keyIndexEntry(hash)));
    }
    if (live !== '0') await this.#recalls.allBack(accountId, scope);
  }

  async setScope(request: SetScopeRequest): Promise<void> {
    const { accountId, scope, rev, name, limits } = request;
    assertLimits(limits);
    if (tagOf(scope) !== undefined) return this.#setTag(request);
    const [, live] = await this.#setScope(accountId, scope, rev, limitFields(rev, name, limits));
    if (live !== '0') await this.#recalls.allBack(accountId, scope);
  }

  /** Sets the limits of a tag's name, which a field of the account has, or of one of its values. */
  async #setTag({ accountId, scope, rev, limits, isLimited }: SetScopeRequest): Promise<void> {
    const p = accountPrefix(accountId);
    const keys = [`${p}meta`, `${p}a:${accountId}`, p + scope];
    const args = scope.includes('=')
      ? ['', String(rev), JSON.stringify(limitFields(rev, '', limits))]
      : [nameOfTag(tagOf(scope) ?? ''), String(rev), writeNameLimits(limits, isLimited)];
    const [word, live = '0'] = await this.#run(SCRIPT['set-tag'], keys, args);
    if (word === 'not_ready') throw notReady();
    if (word === 'unknown_account') throw unexpected(word, scope);
    if (live !== '0') await this.#recalls.allBack(accountId, `a:${accountId}`);
  }

  /** Writes fields of a scope. Returns the script's answer: its word, how many allowances were recalled, and the key's settings before. */
  async #setScope(accountId: string, scope: string, rev: number, fields: readonly string[]) {
    const p = accountPrefix(accountId);
    const keys = [`${p}meta`, p + scope, `${p}a:${accountId}`];
    const args = [accountId, String(rev), JSON.stringify(fields)];
    const [word, live = '0', before = ''] = await this.#run(SCRIPT['set-scope'], keys, args);
    if (word === 'not_ready') throw notReady();
    if (word === 'other_payer' || word === 'unknown_account') throw unexpected(word, scope);
    return [word, live, before] as const;
  }

  async readAccount(accountId: string): Promise<AccountState | undefined> {
    const p = accountPrefix(accountId);
    const [status, available, held, posted, seq, free] = await this.#readWhenReady(p, `${p}a:${accountId}`, [
      'status',
      'available',
      'held',
      'posted',
      'seq',
      'free',
    ]);
    if (!status || !available || !held || !posted) return undefined;
    const freeE8 = BigInt(free ?? 0);
    return {
      status: status as AccountStatus,
      availableE8: BigInt(available) + freeE8,
      heldE8: BigInt(held) - freeE8,
      postedE8: BigInt(posted),
      seq: Number(seq),
    };
  }

  async readKey({ accountId, keyId }: Payer): Promise<KeyState | undefined> {
    const p = accountPrefix(accountId);
    const [owner, status, spent, held, free, rev, settings, limits = null, calls, tokens] = await this.#readWhenReady(
      p,
      `${p}k:${keyId}`,
      ['account', 'status', 'spent', 'held', 'free', 'rev', 'settings', 'limits', 'calls', 'tokens'],
    );
    if (owner !== accountId || !spent || !held || !rev || !settings) return undefined;
    return {
      status: status as KeyStatus,
      spentE8: BigInt(spent),
      heldE8: BigInt(held) - BigInt(free ?? 0),
      ...limitsFrom((limit) =>
        limit.kind === 'usd' ? parseLimits(limits)[limit.window] : { calls, tokens }[limit.field],
      ),
      settings: readSettings(rev, settings),
    };
  }

  async readScope(accountId: string, scope: string): Promise<ScopeState | undefined> {
    const p = accountPrefix(accountId);
    const names = ['account', 'held', 'free', 'spent', 'windows', 'limits'];
    const [owner, held, free, spent = null, windows = null, limits = null] = await this.#readWhenReady(
      p,
      p + scope,
      names,
    );
    if (held === null || (owner !== null && owner !== accountId)) return undefined;
    const heldE8 = BigInt(held ?? 0) - BigInt(free ?? 0);
    return { limits: parseLimits(limits), heldE8, spending: parseSpending(spent, windows) };
  }

  async #readWhenReady(prefix: string, key: string, fields: string[]): Promise<readonly (string | null)[]> {
    const [before, values, after] = await this.#calls.ask((redis) =>
      Promise.all([
        redis.hget(`${prefix}meta`, 'epoch'),
        redis.hmget(key, ...fields),
        redis.hget(`${prefix}meta`, 'epoch'),
      ]),
    );
    if (before === null || before !== after) throw notReady();
    return values;
  }

  async due(shards: readonly number[], limit: number): Promise<readonly (Payer & { readonly rid: string })[]> {
    // A Cluster does not allow one script for several shards.
    const groups = this.#background.redis instanceof Redis ? [shards] : shards.map((shard) => [shard]);
    return (await Promise.all(groups.map((group) => this.#dueIn(group, limit)))).flat();
  }

  async #dueIn(shards: readonly number[], limit: number): Promise<readonly (Payer & { readonly rid: string })[]> {
    const prefixes = shards.map(shardPrefix);
    const keys = prefixes.map((p) => `${p}exp`);
    const [, lines = ''] = await this.#background.run(SCRIPT.due, keys, [String(limit)]);
    const reading = (lines === '' ? [] : lines.split('\n')).map((line) => {
      const space = line.indexOf(' ');
      return this.#readDue(prefixes[Number(line.slice(0, space)) - 1] as string, line.slice(space + 1));
    });
    return (await Promise.all(reading)).filter((due) => due !== undefined);
  }

  async #readDue(p: string, rid: string): Promise<(Payer & { readonly rid: string }) | undefined> {
    for (const of of [OF_ALLOWANCES, OF_TAGS])
      if (rid.startsWith(of)) return { rid, accountId: rid.slice(of.length), keyId: '' };
    const [accountId, keyId] = await this.#background.ask((redis) => redis.hmget(`${p}r:${rid}`, 'account', 'key'));
    return accountId && keyId ? { rid, accountId, keyId } : undefined;
  }

  async readOutbox(shards: readonly number[], limit: number): Promise<ReadonlyMap<number, readonly OutboxEntry[]>> {
    const { redis } = this.#background;
    if (limit === 1 && redis instanceof Redis) return this.#readFirst(redis, shards);
    const found = new Map<number, readonly OutboxEntry[]>();
    await forEachConcurrent(shards, OUTBOXES_AT_ONCE, async (shard) => {
      const head = await this.#readHead(`${shardPrefix(shard)}ob`, limit);
      if (head.length > 0) found.set(shard, head);
    });
    return found;
  }

  /**
   * Reads the first entry of every outbox with one command, because even an idle process does this regularly. It works only without a
   * Cluster, which does not allow a command across slots.
   */
  async #readFirst(redis: Redis, shards: readonly number[]): Promise<ReadonlyMap<number, readonly OutboxEntry[]>> {
    const shardOfOutbox = new Map(shards.map((shard) => [`${shardPrefix(shard)}ob`, shard]));
    const outboxes = [...shardOfOutbox.keys()];
    const starts = outboxes.map(() => '0');
    const streams = await this.#background.ask(
      () => redis.xread('COUNT', 1, 'STREAMS', ...outboxes, ...starts) as Promise<[string, StreamEntry[]][] | null>,
    );
    return new Map(
      (streams ?? []).map(([outbox, entries]) => [shardOfOutbox.get(outbox) as number, entries.map(readEntry)]),
    );
  }

  async #readHead(outbox: string, limit: number): Promise<readonly OutboxEntry[]> {
    const head: OutboxEntry[] = [];
    let from = '-';
    for (;;) {
      const count = Math.min(limit - head.length, ENTRIES_PER_COMMAND);
      const piece = await this.#background.ask((redis) => redis.xrange(outbox, from, '+', 'COUNT', count));
      head.push(...piece.map(readEntry));
      if (piece.length < count || head.length === limit) return head;
      from = `(${head.at(-1)?.id}`;
    }
  }

  async trimOutbox(shard: number, entries: readonly OutboxEntry[]): Promise<void> {
    const p = shardPrefix(shard);
    for (let at = 0; at < entries.length; at += ENTRIES_PER_COMMAND) {
      const piece = entries.slice(at, at + ENTRIES_PER_COMMAND);
      const [first, last] = [piece[0], piece.at(-1)] as [OutboxEntry, OutboxEntry];
      const reservations = piece.map((entry) => `${p}r:${entry.rid}`);
      await this.#background.run(SCRIPT.trim, [`${p}ob`, ...reservations], [firstIdAfter(last.id), CLOSED, first.id]);
    }
  }

  async listTags(accountId: string): Promise<readonly string[]> {
    const key = `${accountPrefix(accountId)}tags:${accountId}`;
    const found: string[] = [];
    for (let from = 0; ; from += TAGS_PER_COMMAND) {
      const some = await this.#background.ask((redis) => redis.zrange(key, from, from + TAGS_PER_COMMAND - 1));
      found.push(...some);
      if (some.length < TAGS_PER_COMMAND) return found;
    }
  }

  async inspect(shard: number, accountIds: readonly string[], scopes: readonly string[]): Promise<LedgerInspection> {
    const p = shardPrefix(shard);
    const wanted = JSON.stringify({ accounts: accountIds, scopes });
    const [word, seen = ''] = await this.#background.run(SCRIPT.inspect, [`${p}meta`, `${p}exp`], [p, wanted]);
    if (word === 'not_ready') throw notReady();
    return readInspection(seen);
  }

  /**
   * Returns whether every shard was filled in the Redis that answers now. The epoch of a shard is the replication id of the Redis in which
   * the shard was filled. A restart, a promotion of a replica or a move to another node changes that id. It checks all shards if Redis may
   * have changed, and otherwise every LOOK_EVERY_MS.
   */
  async isReady(): Promise<boolean> {
    const id = await this.#background.readReplicationId();
    const isInDoubt = this.#calls.isInDoubt(id);
    // Interrupted moves of slots are checked first, because a Cluster with such a move may answer no other command.
    if (isInDoubt) await this.#background.ask(refuseBrokenMoves);
    if ((await this.#background.ask((redis) => redis.exists(KEY_INDEX))) === 0) return false;
    const looked = performance.now() - this.#lookedAt < LOOK_EVERY_MS;
    if (looked && !isInDoubt) return true;
    if (!(await this.#everyShardHas('epoch', id))) return false;
    this.#trust(id);
    return true;
  }

  async #everyShardHas(field: string, value: string): Promise<boolean> {
    const values = await this.#background.ask((redis) =>
      Promise.all(ALL_SHARDS.map((shard) => redis.hget(`${shardPrefix(shard)}meta`, field))),
    );
    return values.every((each) => each === value);
  }

  async #setInEveryShard(field: string, value: string): Promise<void> {
    await this.#background.ask((redis) =>
      Promise.all(ALL_SHARDS.map((shard) => redis.hset(`${shardPrefix(shard)}meta`, field, value))),
    );
  }

  #trust(id: string): void {
    this.#lookedAt = performance.now();
    this.#calls.trust(id);
    this.#replicas?.trust(id);
  }

  /** Estimates the size of every outbox from a few of its entries, because all entries have similar sizes. */
  async outboxShare(): Promise<number> {
    const [info, ...sizes] = await this.#background.ask((redis) =>
      Promise.all([
        redis.info('memory'),
        ...ALL_SHARDS.map((shard) => redis.memory('USAGE', `${shardPrefix(shard)}ob`, 'SAMPLES', 5)),
      ]),
    );
    const limit = Number(/^maxmemory:(\d+)/m.exec(info)?.[1]) || Number(/^total_system_memory:(\d+)/m.exec(info)?.[1]);
    return sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0) / limit;
  }

  async openedAgoMs(): Promise<number> {
    const [openedAt, [seconds = 0]] = await this.#background.ask((redis) =>
      Promise.all([redis.get(KEY_INDEX), redis.time()]),
    );
    return openedAt === null ? 0 : Number(seconds) * 1_000 - Number(openedAt);
  }

  async shut(): Promise<void> {
    await this.#background.ask((redis) =>
      Promise.all([redis.del(KEY_INDEX), ...ALL_SHARDS.map((shard) => redis.del(`${shardPrefix(shard)}meta`))]),
    );
    this.#lookedAt = Number.NEGATIVE_INFINITY;
  }

  async begin(): Promise<string> {
    const begun = newId();
    await this.#setInEveryShard('begun', begun);
    return begun;
  }

  async restore(accounts: readonly AccountSnapshot[]): Promise<void> {
    await forEachConcurrent(accounts, RESTORED_AT_ONCE, (account) => this.#restore(account));
  }

  async #restore(account: AccountSnapshot): Promise<void> {
    const p = accountPrefix(account.accountId);
    const args = [account.accountId, p, describeSnapshot(account), CLOSED];
    await this.#background.run(SCRIPT.restore, [`${p}a:${account.accountId}`, `${p}exp`], args);
    await forEachConcurrent(account.keys.flatMap(indexEntries), INDEXED_AT_ONCE, ({ entry, values }) =>
      this.#background.run(SCRIPT['index-key'], [entry], values),
    );
  }

  async open(begun?: string): Promise<'opened' | 'lost'> {
    const id = await this.#background.readReplicationId();
    await this.#setInEveryShard('epoch', id);
    const [seconds] = await this.#background.ask((redis) => redis.time());
    await this.#background.ask((redis) => redis.set(KEY_INDEX, String(Number(seconds) * 1_000)));
    // `begun` is checked last, in all shards. If Redis was emptied during recovery, it has the epochs that were just written, but no `begun` and no
    // accounts.
    if (begun !== undefined && !(await this.#everyShardHas('begun', begun))) {
      await this.shut();
      return 'lost';
    }
    this.#trust(id);
    return 'opened';
  }

  async close(): Promise<void> {
    this.#calls.redis.disconnect();
    this.#background.redis.disconnect();
    this.#replicas?.close();
    this.#channel.close();
  }
}

/** The answer of a reserve whose tags have values that are not in Redis. `moment` is for which what Postgres has of them holds. */
interface UnknownTags {
  readonly outcome: 'unknown_tags';
  readonly moment: string;
  readonly scopes: readonly string[];
}

/** Returns the Redis keys of an API key's index entries (one per valid secret). Each has the values that the script `index-key` writes. */
function indexEntries(key: SetKeyRequest) {
  return secretsOf(key).map(({ hash, untilMs }) => ({
    entry: keyIndexEntry(hash),
    values: [`${key.accountId} ${key.keyId}`, untilMs === undefined ? '' : String(untilMs)],
  }));
}

/** Returns names of an account's keys in Redis. `a`, `i` and `io` belong to the account, and `k` to an API key. */
function keysOf({ accountId, keyId }: Payer, ...names: readonly string[]): string[] {
  const p = accountPrefix(accountId);
  const ids: Readonly<Record<string, string>> = { a: accountId, i: accountId, io: accountId, k: keyId };
  return names.map((name) => (ids[name] === undefined ? p + name : `${p}${name}:${ids[name]}`));
}

/** Returns the names of the six Redis keys that every script needs to close a reservation. */
function closingKeys(payer: Payer, rid: string): string[] {
  return keysOf(payer, 'meta', 'a', 'k', `r:${rid}`, 'exp', 'ob');
}

function notReady(): LedgerUnavailable {
  return new LedgerUnavailable('the ledger is being restored from Postgres');
}

/**
 * Functions that turn the values after an outcome in a script's answer into an object. An outcome has the same values in all scripts; some
 * scripts return the outcome without values.
 */
const VALUES: Readonly<Record<string, (...values: string[]) => object>> = {
  reserved: (held) => ({ heldE8: BigInt(held) }),
  stale_key: (rev, settings) => ({ settings: readSettings(rev, settings) }),
  rate_limited: (ms) => ({ retryAfterMs: Number(ms) }),
  insufficient_balance: (available) => ({ availableE8: BigInt(available) }),
  limit_exceeded: (left, scope, window, limit, spent, held, day, name) => ({
    availableE8: BigInt(left),
    limit: { name: tagOf(scope) ?? name, ...readLimit(scope, Number(window), limit, spent, held, Number(day)) },
  }),
  unknown_tags: (moment, scopes) => ({ moment, scopes: scopes.split(' ') }),
  intent_conflict: (requestId) => ({ requestId }),
  intent_open: (requestId, rid) => ({ requestId, rid }),
  intent_charged: (requestId, rid, charged) => ({ requestId, rid, chargedE8: BigInt(charged) }),
  settled: (charged, shortfall) => ({ chargedE8: BigInt(charged), shortfallE8: BigInt(shortfall) }),
  rolled: (charged, shortfall) => ({ chargedE8: BigInt(charged), shortfallE8: BigInt(shortfall) }),
  credited: (posted) => ({ postedE8: BigInt(posted) }),
  granted: (free, limitedTags) => ({ freeE8: BigInt(free), limitedTags }),
  reported: (free, admit, uncovered, limitedTags) => ({
    limitedTags,
    freeE8: BigInt(free),
    mayAdmit: admit !== '',
    uncoveredE8: BigInt(uncovered),
  }),
};

/** Reads the limit that a script names: the scope, the number of the window from 1, amounts in E8 and the day on which it was read. */
function readLimit(
  scope: string,
  number: number,
  limit: string,
  spent: string,
  held: string,
  day: number,
): Omit<ReachedLimit, 'name'> {
  const window = LIMIT_WINDOWS[number - 1] ?? 'total';
  const [limitE8, spentE8, heldE8] = [BigInt(limit), BigInt(spent), BigInt(held)];
  return { ...parseScope(scope), window, limitE8, spentE8, heldE8, resetsAtMs: windowEndMs(window, day) };
}

/** Reads the answer of a script as an outcome. The script's header lists its answers, and the TypeScript types use the same names. */
function outcomeOf<T extends { readonly outcome: string }>(
  script: LuaScript,
  [word, ...values]: ScriptAnswer,
  id: string,
): T {
  if (word === 'other_payer' || !script.answers.includes(word)) throw unexpected(word, id);
  const read = values.length === 0 ? undefined : VALUES[word];
  return { outcome: word, ...read?.(...values) } as T;
}

function unexpected(word: string, id: string): Error {
  if (word === 'other_payer') return new WrongPayer(`${id} belongs to another account or key`);
  return new Error(`the ledger's script returned the unexpected answer "${word}"`);
}
