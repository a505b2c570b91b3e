import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { getOrInsert } from '../../base/collections';
import { newId } from '../../base/ids';
import { andThen, type MaybeLater } from '../../base/maybe-later';
import { RecentlyUsed } from '../../base/recently-used';
import type { Stop } from '../../base/resources';
import { assertAmount, repeatOpen, smallest } from '../amount';
import {
  type AccountState,
  type Calls,
  type KeyState,
  LedgerUnavailable,
  type Payer,
  type ReleaseOutcome,
  type ReleaseRequest,
  type RenewOutcome,
  type RenewRequest,
  type ReserveOutcome,
  type ReserveRequest,
  type ScopeState,
  type SettleOutcome,
  type SettleRequest,
  WrongPayer,
} from '../ledger';
import { Allowance, besideOf, minFree, type OpenCall, rightNow } from './allowance';
import { ALLOWANCE_LEASE_MS, type AllowanceStore } from './allowance-store';
import { KeyTraffic } from './key-traffic';
import type { CallEnding, ReportedCall } from './reported-calls';
import { type AllowanceSpool, Reporter } from './reporter';

interface AllowanceLedgerOptions {
  readonly inner: Calls & AllowanceStore;
  readonly log: Logger;
  readonly spool?: AllowanceSpool;
  /** Notifies the shipper (the thread that moves outbox entries to Postgres) that the outbox of this account has a new entry. */
  nudge?(accountId: string): void;
  /** Returns whether an API key has enough traffic for an allowance (money that a node holds in advance); tests replace this function. */
  readonly isHot?: (traffic: KeyTraffic) => boolean;
}

/** When a node reports the changes of an allowance (money held in advance): this long after the first one, or after this many ended calls. */
const REPORT_AFTER_MS = 50;
const REPORT_AFTER_CALLS = 64;

const LOOK_EVERY_MS = 1_000;
/** An allowance whose lease was renewed less than this long ago is not renewed yet, because the lease lasts until the next check. */
const RENEW_AFTER_MS = 500;
/** A node gives back the allowance of a key without calls after QUIET_MS, and forgets the key after FORGOTTEN_MS. */
const QUIET_MS = 1_000;
const FORGOTTEN_MS = 60_000;
/** How long a node waits before it again requests an allowance (money held in advance, ASK_AGAIN_MS), or a larger one (ENLARGE_AGAIN_MS). */
const ASK_AGAIN_MS = 1_000;
const ENLARGE_AGAIN_MS = 10;

/** How many ended calls this node keeps at least, to answer repeated requests for them. */
const ENDED_KNOWN = 1_000;

/** How long a balance query waits for this node's own reports to be applied. */
const READ_WITHIN_MS = 200;
const STOP_WITHIN_MS = 2_000;

interface Key extends Payer {
  readonly traffic: KeyTraffic;
  allowance: Allowance | undefined;
  isAsking: boolean;
  askAgainAt: number;
  /**
   * Resolves when the last settle that cost more than its hold has ended. Such settles run one after the other, because each needs the
   * amount of money that remains after the previous one.
   */
  enlarging: Promise<unknown>;
}

interface Ended {
  readonly payer: Payer;
  readonly ending: CallEnding;
  readonly chargedE8: bigint;
  readonly shortfallE8: bigint;
}

/**
 * The calls of a node that uses allowances (money granted in advance). It holds and settles the calls of busy keys in memory, and reports
 * them in batches to the ledger that all nodes share. All other operations go to the shared ledger unchanged.
 */
export class AllowanceLedger implements Calls {
  readonly #inner: Calls & AllowanceStore;
  readonly #log: Logger;
  readonly #spool: AllowanceSpool | undefined;
  readonly #isHot: (traffic: KeyTraffic) => boolean;
  readonly #reporter: Reporter;
  /** The API keys by account id, then by key id. */
  readonly #keys = new Map<string, Map<string, Key>>();
  readonly #open = new Map<string, OpenCall>();
  readonly #ended = new RecentlyUsed<Ended>(ENDED_KNOWN);
  readonly #generations = new Set<string>();
  readonly #changed = new Set<Allowance>();
  #reportingSoon: NodeJS.Timeout | undefined;
  readonly #looking: NodeJS.Timeout;
  #isStopped = false;

  constructor({ inner, log, spool, nudge, isHot = (traffic) => traffic.isHot() }: AllowanceLedgerOptions) {
    this.#inner = inner;
    this.#log = log;
    this.#spool = spool;
    this.#isHot = isHot;
    this.#reporter = new Reporter({
      store: inner,
      log,
      spool,
      nudge: nudge ?? (() => undefined),
      next: (allowance) => {
        const { traffic } = this.#keyOf(allowance);
        return allowance.report(traffic.medianHoldE8(), this.#wantsMore(allowance, traffic));
      },
      lost: (allowance) => this.#lose(allowance),
    });
    inner.onRecall((accountId) => this.#recalled(accountId));
    this.#looking = setInterval(() => this.#look(), LOOK_EVERY_MS).unref();
  }

  /** Returns whether this process reports the calls of the allowance (money held in advance) with this `generation`, its id. */
  has(generation: string): boolean {
    return this.#generations.has(generation);
  }

  /** Gives back all allowances. Reports that the ledger does not accept now stay on disk for the next start. */
  readonly stop: Stop = async () => {
    this.#isStopped = true;
    clearInterval(this.#looking);
    clearTimeout(this.#reportingSoon);
    const allowances = [...this.#allKeys()].flatMap(({ allowance }) => allowance ?? []);
    const given = Promise.all(allowances.map((allowance) => this.#reporter.report(allowance)));
    await Promise.race([given, sleep(STOP_WITHIN_MS, undefined, { ref: false })]);
    this.#reporter.stop();
  };

  reserve(request: ReserveRequest): MaybeLater<ReserveOutcome> {
    const { rid, amountE8, keyRev } = request;
    assertAmount(amountE8);
    const before = this.#reservedBefore(request);
    if (before !== undefined) return before;
    // A hold uses an allowance (money held in advance) only if it lasts at least as long as an allowance's lease. A hold without a deadline never
    // does.
    if (!((request.lifetimeMs ?? 0) >= ALLOWANCE_LEASE_MS)) return this.#inner.reserve(request);
    const key = this.#keyOf(request);
    const { allowance } = key;
    if (allowance?.isLimited(request.tags) === true) return this.#inner.reserve(request);
    key.traffic.count(amountE8);
    if (request.intent === undefined && allowance?.covers(amountE8, keyRev) === true) {
      allowance.hold(amountE8);
      this.#open.set(rid, { rid, allowance, amountE8 });
      const { accountId, keyId, generation } = allowance;
      const { facts = '' } = request;
      void this.#spool?.keep({ kind: 'open', accountId, keyId, generation, rid, amountE8, facts });
      this.#reportSoon(allowance);
      return { outcome: 'reserved', heldE8: amountE8 };
    }
    if (this.#isHot(key.traffic)) this.#ask(key, keyRev);
    return this.#inner.reserve(request);
  }

  #reservedBefore(request: ReserveRequest): ReserveOutcome | undefined {
    const { rid } = request;
    const open = this.#open.get(rid);
    if (open !== undefined) {
      assertPayer(request, open.allowance, rid);
      return repeatOpen(open.amountE8, request);
    }
    const ended = this.#ended.get(rid);
    if (ended === undefined) return undefined;
    assertPayer(request, ended.payer, rid);
    return { outcome: ended.ending === 'released' ? 'released_before' : 'closed_before' };
  }

  settle(request: SettleRequest): MaybeLater<SettleOutcome> {
    const { costE8 } = request;
    assertAmount(costE8);
    const call = this.#openCall(request);
    if (call === undefined) return this.#settledBefore(request) ?? this.#inner.settle(request);
    if (costE8 <= call.amountE8 || call.allowance.isLost) return this.#settle(call, request, 0n);
    return this.#enlarge(call, costE8).then((missingE8) =>
      this.#open.get(call.rid) === call ? this.#settle(call, request, missingE8) : this.settle(request),
    );
  }

  /** Settles an open call. `shortfallE8`, the part of its cost that no money covers, is not charged. */
  #settle(call: OpenCall, request: SettleRequest, shortfallE8: bigint): MaybeLater<SettleOutcome> {
    const { rid, record } = request;
    if (call.allowance.isLost) {
      this.#open.delete(rid);
      return this.#inner.settle(request);
    }
    const chargedE8 = request.costE8 - shortfallE8;
    const ended = this.#end(call, { rid, ending: 'settled', costE8: chargedE8, shortfallE8, record });
    return andThen(ended, () => ({ outcome: 'settled', chargedE8, shortfallE8 }));
  }

  #settledBefore(request: SettleRequest): SettleOutcome | undefined {
    const ended = this.#ended.get(request.rid);
    if (ended === undefined) return undefined;
    assertPayer(request, ended.payer, request.rid);
    if (ended.ending !== 'settled') return { outcome: ended.ending };
    return { outcome: 'settled', chargedE8: ended.chargedE8, shortfallE8: ended.shortfallE8 };
  }

  release(request: ReleaseRequest): MaybeLater<ReleaseOutcome> {
    const { rid, record } = request;
    const call = this.#openCall(request);
    if (call === undefined) {
      const ended = this.#ended.get(rid);
      if (ended === undefined) return this.#inner.release(request);
      assertPayer(request, ended.payer, rid);
      return { outcome: ended.ending };
    }
    if (call.allowance.isLost) {
      this.#open.delete(rid);
      return this.#inner.release(request);
    }
    const ended = this.#end(call, { rid, ending: 'released', costE8: 0n, shortfallE8: 0n, record });
    return andThen(ended, () => ({ outcome: 'released' }));
  }

  async renew(request: RenewRequest): Promise<RenewOutcome> {
    const call = this.#openCall(request);
    if (call !== undefined) return { outcome: call.allowance.isLost ? 'not_open' : 'renewed' };
    return this.#ended.get(request.rid) === undefined ? this.#inner.renew(request) : { outcome: 'not_open' };
  }

  /** Enlarges the hold of an open call to its cost. Returns the part of the cost that no money covers. */
  #enlarge(call: OpenCall, costE8: bigint): Promise<bigint> {
    const { allowance } = call;
    const key = this.#keyOf(allowance);
    const enlarging = key.enlarging.then(async () => {
      const moreE8 = costE8 - call.amountE8;
      if (moreE8 <= 0n || this.#open.get(call.rid) !== call) return 0n;
      allowance.enlarge(call, moreE8);
      allowance.isSettling = true;
      const answer = await this.#reporter.report(allowance);
      if (answer.outcome !== 'reported') return 0n;
      const missingE8 = smallest(answer.uncoveredE8, moreE8);
      allowance.shrink(call, missingE8);
      return missingE8;
    });
    key.enlarging = enlarging;
    return enlarging;
  }

  #openCall(request: Payer & { readonly rid: string }): OpenCall | undefined {
    const call = this.#open.get(request.rid);
    if (call !== undefined) assertPayer(request, call.allowance, request.rid);
    return call;
  }

  /** Ends a call, and keeps its outcome to answer repeated requests. */
  #end(call: OpenCall, ended: ReportedCall): MaybeLater<unknown> {
    const { allowance, rid } = call;
    this.#open.delete(rid);
    allowance.end(call, ended);
    const { ending, costE8, shortfallE8 } = ended;
    this.#ended.set(rid, { payer: allowance, ending, chargedE8: costE8, shortfallE8 });
    return this.#changedAt(allowance);
  }

  /**
   * Records a change of an allowance for its next report. If the ledger has recalled the allowance's money, the caller waits for the
   * report, because another call may need that money.
   */
  #changedAt(allowance: Allowance): MaybeLater<unknown> {
    if (!allowance.admits) return this.#reporter.report(allowance);
    if (allowance.ended.length >= REPORT_AFTER_CALLS) this.#reportNow(allowance);
    else this.#reportSoon(allowance);
    return undefined;
  }

  #keyOf({ accountId, keyId }: Payer): Key {
    const keys = getOrInsert(this.#keys, accountId, () => new Map<string, Key>());
    return getOrInsert(keys, keyId, () => {
      const traffic = new KeyTraffic();
      return { accountId, keyId, traffic, allowance: undefined, isAsking: false, askAgainAt: 0, enlarging: DONE };
    });
  }

  *#allKeys(): Generator<Key> {
    for (const keys of this.#keys.values()) yield* keys.values();
  }

  /** Requests an allowance for a key, or a larger one, from the shared ledger. No call waits for it. */
  #ask(key: Key, keyRev: number): void {
    const { allowance, traffic, accountId, keyId } = key;
    const now = performance.now();
    if (key.isAsking || this.#isStopped || now < key.askAgainAt) return;
    if (allowance !== undefined) {
      key.askAgainAt = now + (allowance.admits ? ENLARGE_AGAIN_MS : ASK_AGAIN_MS);
      if (keyRev > allowance.keyRev) allowance.keyRev = keyRev;
      this.#reportNow(allowance);
      return;
    }
    key.askAgainAt = now + ASK_AGAIN_MS;
    key.isAsking = true;
    const medianE8 = traffic.medianHoldE8();
    const [generation, askedAt] = [newId(), rightNow()];
    const [wantE8, besideE8, minE8] = [minFree(medianE8), besideOf(medianE8), medianE8 > 0n ? medianE8 : 1n];
    this.#inner
      .grant({ accountId, keyId, generation, keyRev, wantE8, besideE8, minE8, leaseMs: ALLOWANCE_LEASE_MS })
      .then((answer) => {
        if (answer.outcome !== 'granted') return;
        this.#generations.add(generation);
        const { freeE8, limitedTags } = answer;
        key.allowance = new Allowance(key, { generation, keyRev, freeE8, limitedTags, askedAt });
        key.askAgainAt = 0;
      })
      // If the ledger granted the allowance but its answer was lost, the ledger takes the grant back when the lease ends.
      .catch((error: unknown) => {
        if (!(error instanceof LedgerUnavailable))
          this.#log.error(
            { reason: String(error) },
            'the request for an allowance failed; calls of the key continue on the shared ledger',
          );
      })
      .finally(() => {
        key.isAsking = false;
      });
  }

  #wantsMore(allowance: Allowance, traffic: KeyTraffic): boolean {
    if (this.#isStopped || performance.now() - traffic.lastAt > QUIET_MS) return false;
    return allowance.admits || this.#isHot(traffic);
  }

  #reportNow(allowance: Allowance): void {
    void this.#reporter.report(allowance);
  }

  /** Collects the changes of allowances for REPORT_AFTER_MS, and then reports them to the ledger together. */
  #reportSoon(allowance: Allowance): void {
    this.#changed.add(allowance);
    this.#reportingSoon ??= setTimeout(() => {
      this.#reportingSoon = undefined;
      const changed = [...this.#changed];
      this.#changed.clear();
      for (const each of changed) if (each.isChanged) this.#reportNow(each);
    }, REPORT_AFTER_MS);
  }

  /** Runs once a second. It renews the leases of the allowances of used API keys, and gives back the allowances of keys without recent calls. */
  #look(): void {
    const now = performance.now();
    for (const key of this.#allKeys()) {
      const { allowance, traffic } = key;
      const quietMs = now - traffic.lastAt;
      if (allowance === undefined) {
        if (quietMs > QUIET_MS && !key.isAsking) this.#forget(key);
      } else if (allowance.admits || allowance.openE8 > 0n || allowance.isChanged || this.#isHot(traffic)) {
        if (now - allowance.reportedAt > RENEW_AFTER_MS) this.#reportNow(allowance);
      } else if (quietMs > FORGOTTEN_MS && this.#reporter.underWay(allowance) === undefined) {
        this.#generations.delete(allowance.generation);
        this.#forget(key);
      }
    }
  }

  #forget({ accountId, keyId }: Key): void {
    const keys = this.#keys.get(accountId);
    keys?.delete(keyId);
    if (keys?.size === 0) this.#keys.delete(accountId);
  }

  #recalled(accountId: string): void {
    for (const { allowance } of this.#keys.get(accountId)?.values() ?? []) {
      if (allowance?.admits !== true) continue;
      allowance.admits = false;
      this.#reportNow(allowance);
    }
  }

  /** Drops an allowance that the ledger has lost. The spool on disk then settles its calls one by one, except those already in Postgres. */
  #lose(allowance: Allowance): void {
    allowance.isLost = true;
    this.#generations.delete(allowance.generation);
    const key = this.#keyOf(allowance);
    if (key.allowance === allowance) key.allowance = undefined;
  }

  async readAccount(accountId: string): Promise<AccountState | undefined> {
    await this.#reportOwn(accountId);
    return this.#inner.readAccount(accountId);
  }

  async readKey(payer: Payer): Promise<KeyState | undefined> {
    await this.#reportOwn(payer.accountId);
    return this.#inner.readKey(payer);
  }

  async readScope(accountId: string, scope: string): Promise<ScopeState | undefined> {
    await this.#reportOwn(accountId);
    return this.#inner.readScope(accountId, scope);
  }

  /** Reports this node's changes first, so that the balance then read includes every call that this node has answered. */
  async #reportOwn(accountId: string): Promise<void> {
    const keys = [...(this.#keys.get(accountId)?.values() ?? [])];
    const reports = keys.flatMap(({ allowance }) => {
      if (allowance === undefined) return [];
      return (allowance.isChanged ? this.#reporter.report(allowance) : this.#reporter.underWay(allowance)) ?? [];
    });
    if (reports.length === 0) return;
    const allReported = Promise.all(reports);
    await Promise.race([allReported, sleep(READ_WITHIN_MS, undefined, { ref: false })]);
  }
}

const DONE: Promise<unknown> = Promise.resolve();

function assertPayer({ accountId, keyId }: Payer, owner: Payer, rid: string): void {
  if (accountId !== owner.accountId || keyId !== owner.keyId)
    throw new WrongPayer(`${rid} belongs to another account or key`);
}
