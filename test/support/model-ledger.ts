import type {
  AllowanceStore,
  GrantOutcome,
  GrantRequest,
  LastReport,
  ReportOutcome,
  ReportRequest,
} from '../../core/ledger/allowances/allowance-store';
import { readCalls } from '../../core/ledger/allowances/reported-calls';
import { smallest } from '../../core/ledger/amount';
import {
  type AccountSnapshot,
  type AccountState,
  type AccountStatus,
  type CreditOutcome,
  type CreditRequest,
  type ExpireOutcome,
  type KeyState,
  LedgerUnavailable,
  type Payer,
  type RenewOutcome,
  type RenewRequest,
  type ReserveOutcome,
  type ReserveRequest,
  type RollOutcome,
  type RollRequest,
  type ScopeState,
  type SetKeyRequest,
  type SetScopeRequest,
  type SettleRequest,
  WrongPayer,
} from '../../core/ledger/ledger';
import { limitsOf } from '../../core/ledger/limit-fields';
import { type MemoryKey, MemoryLedger, type SettledHold } from '../../core/ledger/memory-ledger';
import type { SetTag } from '../../core/ledger/memory-tags';
import { chainOf, LIMIT_WINDOWS, type Scope, scopesOf, tagOf } from '../../core/ledger/scopes';
import { shardOf } from '../../core/ledger/shard';

export interface ModelAllowance {
  readonly keyId: string;
  /** Its scopes beside account and key, separated by spaces. */
  readonly scopes: string;
  state: 'live' | 'draining' | 'closed';
  sequence: number;
  digest: string;
  totalE8: bigint;
  openE8: bigint;
  untilMs: number;
  /** The id of its last entry in the outbox. */
  entry: string | undefined;
}

/** The answer of a ledger that does not wait for a recall: money may come back from nodes, and the caller must retry. */
export class Recalling extends LedgerUnavailable {}

const RECALLED_MS = 10_000;
const LEASE_MS = 3_000;
const OPEN_MS = 120_000;
const KNOWN_MS = 900_000;
/** An allowance has at most one part in this many of the available money. */
const SHARE = 20n;

/** The id that tells sweepers that allowances of an account are due. */
const OF_ALLOWANCES = 'a ';

/**
 * Models allowances on top of the ledger in memory: it does what the scripts of Redis do, but does not wait for a recall. Operations are atomic only
 * if they run one after the other.
 */
export class ModelLedger extends MemoryLedger implements AllowanceStore {
  /** Allowances by account, then by generation. */
  readonly allowances = new Map<string, Map<string, ModelAllowance>>();
  readonly recalledUntil = new Map<string, number>();
  /** The time until which nodes may admit calls from lost allowances, by account. */
  readonly lostUntil = new Map<string, number>();
  /** When a sweeper must check the allowances of an account. */
  readonly lookAt = new Map<string, number>();

  #openedAt = 0;

  override async open(begun?: string): Promise<'opened' | 'lost'> {
    this.#openedAt = this.now();
    return super.open(begun);
  }

  override async openedAgoMs(): Promise<number> {
    return this.now() - this.#openedAt;
  }

  override async reserve(request: ReserveRequest): Promise<ReserveOutcome> {
    const { amountE8, minE8 = amountE8 } = request;
    return this.#recalling(request, await super.reserve(request), minE8, () => super.reserve(request));
  }

  override async renew(request: RenewRequest): Promise<RenewOutcome> {
    const { scopes = '', amountE8 = 0n } = this.snapshot().reservations.get(request.rid) ?? {};
    const moreE8 = (request.amountE8 ?? 0n) - amountE8;
    return this.#recalling(request, await super.renew(request), moreE8, () => super.renew(request), { scopes });
  }

  override async roll(request: RollRequest): Promise<RollOutcome> {
    const { accountId, keyId, costE8, next } = request;
    const { scopes = '', amountE8: holdE8 = 0n } = this.snapshot().reservations.get(request.rid) ?? {};
    const settled = { chain: chainOf(accountId, scopes, keyId), holdE8, costE8 };
    return this.#recalling(request, await super.roll(request), next.amountE8, () => super.roll(request), { settled });
  }

  override async credit(request: CreditRequest): Promise<CreditOutcome> {
    const { accountId, amountE8 } = request;
    const answer = await super.credit(request);
    if (answer.outcome !== 'insufficient_balance') return answer;
    this.#recallFor(accountId, this.shortIn([`a:${accountId}`], this.#availableOf(accountId), -amountE8));
    return super.credit(request);
  }

  /** Repeats an operation after a recall. A refused operation has written nothing. */
  async #recalling<T extends { readonly outcome: string }>(
    { accountId, keyId }: Payer,
    answer: T,
    missingE8: bigint,
    again: () => Promise<T>,
    { scopes, settled }: { readonly scopes?: string; readonly settled?: SettledHold } = {},
  ): Promise<T> {
    if (answer.outcome !== 'insufficient_balance' && answer.outcome !== 'limit_exceeded') return answer;
    const chain = chainOf(accountId, scopes ?? scopesOf(this.keys.get(keyId)?.settings ?? {}), keyId);
    const availableE8 = this.#availableOf(accountId) + (settled === undefined ? 0n : settled.holdE8 - settled.costE8);
    this.#recallFor(accountId, this.shortIn(chain, availableE8, missingE8, settled));
    return again();
  }

  protected override affordable(request: SettleRequest, holdE8: bigint, scopes: string): bigint {
    const { accountId, keyId, costE8 } = request;
    if (super.affordable(request, holdE8, scopes) < costE8) {
      const chain = chainOf(accountId, scopes, keyId);
      this.#recallFor(accountId, this.shortIn(chain, this.#availableOf(accountId), costE8 - holdE8));
    }
    return super.affordable(request, holdE8, scopes);
  }

  #availableOf(accountId: string): bigint {
    return this.accounts.get(accountId)?.availableE8 ?? 0n;
  }

  override async setAccount(accountId: string, status: AccountStatus): Promise<void> {
    const before = this.accounts.get(accountId)?.status;
    await super.setAccount(accountId, status);
    this.#recallIf(before !== status, accountId, `a:${accountId}`);
  }

  override async setKey(request: SetKeyRequest): Promise<void> {
    const { accountId, keyId, settings } = request;
    const before = rulesOf(this.keys.get(keyId));
    await super.setKey(request);
    const after = this.keys.get(keyId);
    if (after === undefined || after.settings.rev > settings.rev) return;
    this.#recallIf(rulesOf(after) !== before, accountId, `k:${keyId}`);
  }

  protected override setTag(request: SetScopeRequest): SetTag {
    const { accountId, scope } = request;
    const done = super.setTag(request);
    if (done.isSet && !scope.includes('=')) this.#recallIf(done.isNew, accountId, `a:${accountId}`);
    return done;
  }

  override async setScope(request: SetScopeRequest): Promise<void> {
    const { accountId, scope } = request;
    if (tagOf(scope) !== undefined) return super.setScope(request);
    const before = settingsOf(this.scopes.get(scope));
    await super.setScope(request);
    if ((this.scopes.get(scope)?.rev ?? 0) > request.rev) return;
    this.#recallIf(settingsOf(this.scopes.get(scope)) !== before, accountId, scope);
  }

  /** @throws Recalling if a change of a scope, or an earlier one, must wait for its live allowances */
  #recallIf(isOther: boolean, accountId: string, scope: string): void {
    if (!isOther && !this.#isRecalled([scope]) && !this.#isLost(accountId)) return;
    if (this.countLive(accountId, scope) > 0) throw new Recalling('nodes may admit calls');
  }

  override async restore(snapshots: readonly AccountSnapshot[]): Promise<void> {
    const before = new Map(snapshots.map(({ accountId }) => [accountId, this.accounts.get(accountId)]));
    await super.restore(snapshots);
    for (const { accountId } of snapshots) {
      this.lostUntil.set(accountId, this.now() + LEASE_MS);
      if (before.get(accountId) === this.accounts.get(accountId)) {
        if (this.#liveOf(accountId).length > 0) this.#mark([`a:${accountId}`]);
        continue;
      }
      this.allowances.delete(accountId);
      for (const [name, { accountId: owner }] of this.scopes) if (owner === accountId) this.recalledUntil.delete(name);
      this.lookAt.delete(accountId);
    }
  }

  override async readAccount(accountId: string): Promise<AccountState | undefined> {
    const account = await super.readAccount(accountId);
    const freeE8 = this.freeOf(accountId);
    return account && { ...account, availableE8: account.availableE8 + freeE8, heldE8: account.heldE8 - freeE8 };
  }

  override async readKey(payer: Payer): Promise<KeyState | undefined> {
    const key = await super.readKey(payer);
    return key && { ...key, heldE8: key.heldE8 - this.freeOf(payer.accountId, `k:${payer.keyId}`) };
  }

  override async readScope(accountId: string, name: string): Promise<ScopeState | undefined> {
    const scope = await super.readScope(accountId, name);
    return scope && { ...scope, heldE8: scope.heldE8 - this.freeOf(accountId, name) };
  }

  override async due(shards: readonly number[], limit: number): Promise<readonly (Payer & { readonly rid: string })[]> {
    const accounts = [...this.lookAt].filter(([id, at]) => shards.includes(shardOf(id)) && at <= this.now());
    const ofAllowances = accounts.map(([accountId]) => ({ rid: OF_ALLOWANCES + accountId, accountId, keyId: '' }));
    return [...(await super.due(shards, limit)), ...ofAllowances];
  }

  override async expire(payer: Payer, rid: string): Promise<ExpireOutcome> {
    return rid.startsWith(OF_ALLOWANCES) ? this.#sweep(payer.accountId) : super.expire(payer, rid);
  }

  async grant(request: GrantRequest): Promise<GrantOutcome> {
    const { accountId, keyId, generation, wantE8, besideE8, minE8, leaseMs } = request;
    if (!this.isOpen) return { outcome: 'not_ready' };
    const known = this.allowances.get(accountId)?.get(generation);
    const limitedTags = this.limitedTags(accountId);
    if (known?.state === 'live' && known.sequence === 0)
      return { outcome: 'granted', freeE8: known.totalE8, limitedTags };
    if (known !== undefined) return { outcome: 'closed_before' };
    const account = this.accounts.get(accountId);
    if (account === undefined) return { outcome: 'unknown_account' };
    const key = this.keyOf(request);
    if (key === undefined) return { outcome: 'unknown_key' };
    if (key.status !== 'active') return { outcome: 'revoked' };
    if (account.status !== 'active') return { outcome: 'frozen' };
    if (key.settings.rev > request.keyRev) return { outcome: 'stale_key' };
    if (isLimitedByMinute(key)) return { outcome: 'limited' };
    const scopes = scopesOf(key.settings);
    if (this.#isRecalled(chainOf(accountId, scopes, keyId))) return { outcome: 'recalled' };
    const freeE8 = atLeast0(smallest(wantE8, this.#shareOf({ keyId, scopes }, { accountId, besideE8, hasE8: 0n })));
    if (freeE8 < minE8) return { outcome: 'too_little' };
    const untilMs = this.now() + leaseMs;
    const opened = { keyId, scopes, sequence: 0, digest: '-', totalE8: 0n, openE8: 0n, untilMs, entry: undefined };
    const allowance: ModelAllowance = { ...opened, state: 'live' };
    this.#of(accountId).set(generation, allowance);
    this.#hold(accountId, allowance, freeE8);
    this.#lookBefore(accountId, untilMs);
    return { outcome: 'granted', freeE8, limitedTags };
  }

  async report(request: ReportRequest): Promise<ReportOutcome> {
    const { accountId, generation, sequence, digest, costE8, openE8 } = request;
    if (!this.isOpen) return { outcome: 'not_ready' };
    const al = this.allowances.get(accountId)?.get(generation);
    const account = this.accounts.get(accountId);
    const key = this.keyOf(request);
    if (al === undefined || account === undefined || key === undefined) return { outcome: 'unknown_generation' };
    if (al.keyId !== request.keyId) throw new WrongPayer(`${generation} belongs to another key`);
    if (al.state === 'live' && al.untilMs <= this.now()) this.#lapse(accountId, al);
    const limitedTags = this.limitedTags(accountId);
    const mayAdmit =
      account.status === 'active' &&
      key.status === 'active' &&
      key.settings.rev <= request.keyRev &&
      !isLimitedByMinute(key) &&
      !this.#isRecalled(chainOf(accountId, al.scopes, al.keyId));
    if (sequence === al.sequence && al.digest !== digest) return { outcome: 'other_report' };
    if (sequence <= al.sequence) {
      const renews = al.state === 'live' && mayAdmit;
      if (renews && sequence === al.sequence) al.untilMs = this.now() + request.leaseMs;
      const uncoveredE8 = atLeast0(openE8 - al.openE8);
      return { outcome: 'reported', freeE8: freeOf(al), mayAdmit: renews, uncoveredE8, limitedTags };
    }
    if (sequence !== al.sequence + 1) return { outcome: 'unknown_generation' };

    const covered = account.status === 'active' || request.isSettling ? openE8 : smallest(openE8, al.openE8);
    const missingE8 = atLeast0(costE8 + covered - al.totalE8);
    const chain = chainOf(accountId, al.scopes, al.keyId);
    const isShort = missingE8 > 0n && missingE8 > smallest(account.availableE8, this.roomIn(chain));
    if (
      request.isPatient &&
      isShort &&
      this.#recallOthers(request, this.shortIn(chain, account.availableE8, missingE8))
    )
      return { outcome: 'recalling' };
    this.#hold(accountId, al, atLeast0(smallest(missingE8, account.availableE8, this.roomIn(chain))));

    const chargeE8 = smallest(costE8, al.totalE8);
    if (request.calls !== '') this.#charge(request, al, account, chargeE8);
    al.openE8 = smallest(openE8, al.totalE8);
    const stays = al.state === 'live' && request.admits;
    const freeE8 = al.totalE8 - al.openE8;
    this.#hold(accountId, al, -(stays ? smallest(request.giveE8, freeE8) : freeE8));
    const takenE8 = mayAdmit && (stays || !request.admits) ? this.#more(request, al) : 0n;
    this.#hold(accountId, al, takenE8);
    const wasLive = al.state === 'live';
    const isLive = stays || takenE8 > 0n;
    const isRenewed = isLive && mayAdmit;
    al.state = isLive ? 'live' : al.totalE8 > 0n ? 'draining' : 'closed';
    if (isRenewed) al.untilMs = this.now() + request.leaseMs;
    else if (!isLive) al.untilMs = al.state === 'draining' ? this.now() + OPEN_MS : 0;
    if (isRenewed && !wasLive) this.#lookBefore(accountId, al.untilMs);
    Object.assign(al, { sequence, digest });
    return {
      outcome: 'reported',
      freeE8: freeOf(al),
      mayAdmit: isRenewed,
      uncoveredE8: openE8 - al.openE8,
      limitedTags,
    };
  }

  async lastReport(accountId: string, generation: string): Promise<LastReport | undefined> {
    this.assertOpen();
    const al = this.allowances.get(accountId)?.get(generation);
    return al && { sequence: al.sequence, digest: al.digest };
  }

  /** Publishes nothing, because nodes learn of a recall from the answers to their reports. */
  recall(_accountId: string): void {}

  onRecall(_listener: (accountId: string) => void): void {}

  /** Recalls the live allowances of a scope, and returns their number. */
  countLive(accountId: string, scope: string): number {
    this.assertOpen();
    this.#takeBack(accountId);
    const { length } = this.#liveOf(accountId, [scope]);
    if (length > 0) this.#mark([scope]);
    return this.#isLost(accountId) ? length + 1 : length;
  }

  freeOf(accountId: string, scope = `a:${accountId}`): bigint {
    return this.#liveOf(accountId, [scope]).reduce((sum, al) => sum + freeOf(al), 0n);
  }

  /** Lets time pass for allowances only. */
  age(ms: number): void {
    for (const own of this.allowances.values()) for (const al of own.values()) if (al.untilMs !== 0) al.untilMs -= ms;
    for (const times of [this.recalledUntil, this.lostUntil, this.lookAt])
      for (const [id, at] of times) times.set(id, at - ms);
  }

  #charge(request: ReportRequest, al: ModelAllowance, account: Account, chargeE8: bigint): void {
    const { accountId, keyId, costE8, shortfallE8, calls, rid } = request;
    al.totalE8 -= chargeE8;
    const day = this.book(chainOf(accountId, al.scopes, keyId), -chargeE8, chargeE8);
    account.seq += 1;
    let leftE8 = chargeE8;
    const charged = readCalls(calls).map((call) => {
      const paidE8 = smallest(call.costE8, leftE8);
      leftE8 -= paidE8;
      return { ...call, costE8: paidE8, shortfallE8: call.shortfallE8 + call.costE8 - paidE8 };
    });
    al.entry = this.append({
      kind: 'charge',
      ...{ accountId, keyId, rid, amountE8: -chargeE8, shortfallE8: costE8 - chargeE8 + shortfallE8 },
      record: undefined,
      calls: charged,
      scopes: al.scopes || undefined,
      day,
    });
  }

  /** Returns the money that an allowance can get beyond what it has. */
  #more({ wantE8, besideE8, accountId }: ReportRequest, al: ModelAllowance): bigint {
    return atLeast0(smallest(wantE8, this.#shareOf(al, { accountId, besideE8, hasE8: al.totalE8 - al.openE8 })));
  }

  /** Returns how much the balance and each limit can spare for an allowance: an equal part of their share, and something must stay beside it. */
  #shareOf(
    al: Pick<ModelAllowance, 'keyId' | 'scopes'>,
    { accountId, besideE8, hasE8 }: { readonly accountId: string; readonly besideE8: bigint; readonly hasE8: bigint },
  ): bigint {
    const part = (leftE8: bigint, scope: string) => {
      const others = this.#liveOf(accountId, [scope]).filter((each) => each !== al).length;
      return smallest(leftE8 - besideE8, floorDivide(leftE8, SHARE * BigInt(others + 1)) - hasE8);
    };
    const limited = chainOf(accountId, al.scopes, al.keyId).filter((name) => hasLimits(this.scopes.get(name)));
    return smallest(
      part(this.#availableOf(accountId), `a:${accountId}`),
      ...limited.map((name) => part(this.roomIn([name]), name)),
    );
  }

  /** @throws Recalling if live allowances may have the missing money */
  #recallFor(accountId: string, short: readonly string[]): void {
    if (short.length === 0) return;
    this.#takeBack(accountId);
    if (this.#liveOf(accountId, short).length === 0) return;
    this.#mark(short);
    throw new Recalling('money is with nodes');
  }

  #recallOthers({ accountId, generation }: ReportRequest, short: readonly string[]): boolean {
    this.#takeBack(accountId);
    const own = this.allowances.get(accountId)?.get(generation);
    const others = this.#liveOf(accountId, short).some((al) => al !== own);
    if (others) this.#mark(short);
    return others;
  }

  #isRecalled(scopes: readonly string[]): boolean {
    return scopes.some((name) => (this.recalledUntil.get(name) ?? 0) > this.now());
  }

  #isLost(accountId: string): boolean {
    return (this.lostUntil.get(accountId) ?? 0) > this.now();
  }

  #mark(scopes: readonly string[]): void {
    for (const name of scopes) this.recalledUntil.set(name, this.now() + RECALLED_MS);
  }

  /** Returns the live allowances of an account that belong to at least one of these scopes. */
  #liveOf(accountId: string, scopes: readonly string[] = [`a:${accountId}`]): readonly ModelAllowance[] {
    const own = [...(this.allowances.get(accountId)?.values() ?? [])];
    return own.filter(
      (al) => al.state === 'live' && chainOf(accountId, al.scopes, al.keyId).some((name) => scopes.includes(name)),
    );
  }

  #takeBack(accountId: string): void {
    for (const al of this.#liveOf(accountId)) if (al.untilMs <= this.now()) this.#lapse(accountId, al);
  }

  #lapse(accountId: string, al: ModelAllowance): void {
    this.#hold(accountId, al, al.openE8 - al.totalE8);
    al.state = al.openE8 > 0n ? 'draining' : 'closed';
    al.untilMs = al.openE8 > 0n ? this.now() + OPEN_MS : 0;
  }

  #sweep(accountId: string): ExpireOutcome {
    if (!this.isOpen) return { outcome: 'not_ready' };
    const waiting = new Set(this.snapshot().outbox.map(({ id }) => id));
    const own = this.#of(accountId);
    let givenUp = 0;
    let lookAt = Number.POSITIVE_INFINITY;
    for (const [generation, al] of own) {
      const isDue = al.untilMs <= this.now();
      const isKnown = al.state === 'closed' && al.untilMs === 0;
      if (al.state === 'closed' && !isKnown && isDue) {
        own.delete(generation);
        continue;
      }
      lookAt = Math.min(lookAt, isDue ? this.now() + OPEN_MS : al.untilMs);
      if (isKnown && !waiting.has(al.entry ?? '')) al.untilMs = this.now() + KNOWN_MS;
      if (isKnown || !isDue) continue;
      if (al.state === 'live') this.#lapse(accountId, al);
      else {
        this.#hold(accountId, al, -al.totalE8);
        Object.assign(al, { state: 'closed', openE8: 0n, untilMs: 0 });
        givenUp += 1;
      }
    }
    if (lookAt === Number.POSITIVE_INFINITY) this.lookAt.delete(accountId);
    else this.lookAt.set(accountId, lookAt);
    return { outcome: givenUp > 0 ? 'expired' : 'not_due' };
  }

  #of(accountId: string): Map<string, ModelAllowance> {
    const own = this.allowances.get(accountId) ?? new Map<string, ModelAllowance>();
    this.allowances.set(accountId, own);
    return own;
  }

  #hold(accountId: string, al: ModelAllowance, moreE8: bigint): void {
    al.totalE8 += moreE8;
    this.book(chainOf(accountId, al.scopes, al.keyId), moreE8);
  }

  #lookBefore(accountId: string, at: number): void {
    this.lookAt.set(accountId, Math.min(at, this.lookAt.get(accountId) ?? at));
  }
}

type Account = { -readonly [K in keyof AccountState]: AccountState[K] };

function freeOf({ state, totalE8, openE8 }: ModelAllowance): bigint {
  return state === 'live' ? totalE8 - openE8 : 0n;
}

function isLimitedByMinute({ callsPerMinute, tokensPerMinute }: MemoryKey): boolean {
  return callsPerMinute !== undefined || tokensPerMinute !== undefined;
}

/** Returns the settings of a key that decide about calls. */
function rulesOf(key: MemoryKey | undefined): string {
  if (key === undefined) return '';
  const { status, settings } = key;
  return [status, JSON.stringify(settings), ...Object.values(limitsOf(key))].join(' ');
}

/** Returns the limits and the name of a scope, in one text. */
function settingsOf(scope: Partial<Scope> & { readonly name?: string | undefined } = {}): string {
  return [scope.name ?? '', ...LIMIT_WINDOWS.map((window) => scope.limits?.[window] ?? '')].join(' ');
}

function hasLimits(scope: Scope | undefined): boolean {
  return LIMIT_WINDOWS.some((window) => scope?.limits[window] !== undefined);
}

/** Divides and rounds down, as the scripts do; a bigint's division rounds towards 0. */
function floorDivide(amountE8: bigint, by: bigint): bigint {
  return amountE8 < 0n ? -((-amountE8 + by - 1n) / by) : amountE8 / by;
}

function atLeast0(amountE8: bigint): bigint {
  return amountE8 > 0n ? amountE8 : 0n;
}
