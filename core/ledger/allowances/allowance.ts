import { createHash } from 'node:crypto';
import { newId } from '../../base/ids';
import { largest } from '../amount';
import type { Payer } from '../ledger';
import { nameOfTag } from '../scopes';
import { ADMIT_MS, ALLOWANCE_LEASE_MS, type ReportOutcome, type ReportRequest } from './allowance-store';
import { headOf, type ReportedCall, writeCalls } from './reported-calls';

/** A call that an allowance pays for. */
export interface OpenCall {
  readonly rid: string;
  readonly allowance: Allowance;
  amountE8: bigint;
}

/** The ledger's answer to a request for an allowance, and the moment before it was sent. */
interface Granted {
  readonly generation: string;
  readonly keyRev: number;
  readonly freeE8: bigint;
  readonly limitedTags: string;
  readonly askedAt: Moment;
}

/** How much money must stay available on the account and the API key beside an allowance, as a multiple of the key's median hold. */
const HOLDS_BESIDE = 20n;
const MIN_HOLDS = 10n;

/** Returns the least free money that a node requests for an allowance: enough for ten median holds. */
export function minFree(medianHoldE8: bigint): bigint {
  return MIN_HOLDS * medianHoldE8;
}

export function besideOf(medianHoldE8: bigint): bigint {
  return HOLDS_BESIDE * medianHoldE8;
}

/**
 * One key's allowance (money granted in advance) as this node sees it. The shared ledger always counts at least as much money for the
 * allowance as the node does. The node spends free money only after the ledger has granted it. It subtracts free money that it gives back
 * before it reports the return.
 */
export class Allowance implements Payer {
  readonly accountId: string;
  readonly keyId: string;
  readonly generation: string;
  keyRev: number;
  /** Whether the node may admit calls from the allowance's free money; if true, only until its lease ends. */
  admits = true;
  /** Whether the ledger no longer knows this allowance. */
  isLost = false;
  freeE8: bigint;
  openE8 = 0n;
  ended: ReportedCall[] = [];
  /** Whether there is a change to report: a call that began, ended or changed its hold. */
  isChanged = false;
  /** Whether an open call needs a larger hold because it has already cost more. */
  isSettling = false;
  /** The names of tags that have a limit, separated by spaces. The allowance pays no call with one of them. */
  limitedTags: string;
  sequence = 0;
  reportedAt = performance.now();
  #lease: Moment;
  #freeWhenSentE8 = 0n;
  /**
   * The most money that open calls held at the same time, and the cost of the calls of one report. Without new maximums, both decrease by
   * an eighth per report.
   */
  #maxOpenE8 = 0n;
  #spentE8 = 0n;

  constructor(payer: Payer, granted: Granted) {
    this.accountId = payer.accountId;
    this.keyId = payer.keyId;
    this.generation = granted.generation;
    this.keyRev = granted.keyRev;
    this.freeE8 = granted.freeE8;
    this.limitedTags = granted.limitedTags;
    this.#lease = granted.askedAt;
  }

  /** Returns whether the allowance's free money covers a call of this amount now. */
  covers(amountE8: bigint, keyRev: number): boolean {
    return (
      this.admits && this.freeE8 >= amountE8 && this.keyRev === keyRev && !this.isLost && mayAdmitSince(this.#lease)
    );
  }

  /** Returns whether a call with these tags (see ReserveRequest) has one that has a limit. */
  isLimited(tags: string | undefined): boolean {
    if (this.limitedTags === '' || tags === undefined) return false;
    const names = this.limitedTags.split(' ');
    return tags.split(' ').some((tag) => names.includes(nameOfTag(tag)));
  }

  hold(amountE8: bigint): void {
    this.freeE8 -= amountE8;
    this.openE8 += amountE8;
    this.#maxOpenE8 = largest(this.openE8, this.#maxOpenE8);
    this.isChanged = true;
  }

  /** Ends a call. The rest of its hold, beyond its cost, becomes free money of the allowance again. */
  end(call: OpenCall, ended: ReportedCall): void {
    this.openE8 -= call.amountE8;
    this.freeE8 += call.amountE8 - ended.costE8;
    this.ended.push(ended);
    this.isChanged = true;
  }

  /**
   * Enlarges the hold of an open call. If free money does not suffice, the free money becomes negative. The node then admits no call from
   * this allowance until the ledger has answered the next report.
   */
  enlarge(call: OpenCall, moreE8: bigint): void {
    this.freeE8 -= moreE8;
    this.openE8 += moreE8;
    call.amountE8 += moreE8;
    this.isChanged = true;
  }

  /** Undoes an increase of a call's hold, because no money covered it. */
  shrink(call: OpenCall, lessE8: bigint): void {
    this.openE8 -= lessE8;
    call.amountE8 -= lessE8;
    this.isChanged = true;
  }

  /** Makes the next report: all ended calls, and the free money that the node wants afterwards. */
  report(medianHoldE8: bigint, wantsMore: boolean): ReportRequest {
    const { ended: calls, isSettling } = this;
    this.ended = [];
    this.isChanged = false;
    this.isSettling = false;
    this.sequence += 1;
    const costE8 = calls.reduce((sum, call) => sum + call.costE8, 0n);
    this.#spentE8 = largest(costE8, sinking(this.#spentE8));
    const desiredE8 = wantsMore ? this.#wantedFree(medianHoldE8) : 0n;
    this.#maxOpenE8 = largest(this.openE8, sinking(this.#maxOpenE8));
    const hasE8 = this.freeE8 > 0n ? this.freeE8 : 0n;
    const giveE8 = this.admits && wantsMore ? (hasE8 > 2n * desiredE8 ? hasE8 - desiredE8 : 0n) : hasE8;
    this.freeE8 -= giveE8;
    this.admits &&= wantsMore;
    this.#freeWhenSentE8 = this.freeE8;
    return {
      accountId: this.accountId,
      keyId: this.keyId,
      generation: this.generation,
      sequence: this.sequence,
      keyRev: this.keyRev,
      rid: newId(),
      calls: writeCalls(calls),
      costE8,
      shortfallE8: calls.reduce((sum, { shortfallE8 }) => sum + shortfallE8, 0n),
      digest: digestOf(calls),
      openE8: this.openE8,
      giveE8,
      wantE8: desiredE8 > hasE8 - giveE8 ? desiredE8 - hasE8 + giveE8 : 0n,
      besideE8: besideOf(medianHoldE8),
      admits: this.admits,
      isPatient: true,
      isSettling,
      leaseMs: ALLOWANCE_LEASE_MS,
    };
  }

  /**
   * Returns how much money should be free: 1.5 times the most that open calls held at once, minus what they hold now. It is at least enough
   * for ten median holds. Twice the cost of one report is added.
   */
  #wantedFree(medianHoldE8: bigint): bigint {
    const spareE8 = (this.#maxOpenE8 * 3n) / 2n - this.openE8;
    return largest(spareE8, minFree(medianHoldE8)) + 2n * this.#spentE8;
  }

  /** Applies the ledger's answer to a report that was first sent at `sentAt`. */
  answered({ freeE8, mayAdmit, limitedTags }: Extract<ReportOutcome, { outcome: 'reported' }>, sentAt: Moment): void {
    this.reportedAt = sentAt.monotonicMs;
    this.freeE8 = freeE8 + this.freeE8 - this.#freeWhenSentE8;
    this.admits = mayAdmit;
    this.limitedTags = limitedTags;
    if (mayAdmit) this.#lease = sentAt;
  }
}

/** Reduces an amount by an eighth per report. The amount of a busy key decreases sooner than that of a quiet key, because busy keys report more often. */
function sinking(amountE8: bigint): bigint {
  return (amountE8 * 7n) / 8n;
}

/** Hashes the fields of the calls that affect charges. Two reports with one sequence number are the same only if their digests are equal. */
export function digestOf(calls: readonly ReportedCall[]): string {
  return createHash('sha1').update(calls.map(headOf).join('\n')).digest('base64url');
}

/** A moment on two clocks: the monotonic clock, which is never set, and the wall clock, which also runs while the machine is suspended. */
interface Moment {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

export function rightNow(): Moment {
  return { monotonicMs: performance.now(), wallMs: Date.now() };
}

/**
 * Returns whether a node may still admit calls on a lease, given the moment when the node requested the lease. After the machine was
 * suspended, only the wall clock shows how much time has passed. After the wall clock was set back, only the monotonic clock shows it.
 */
function mayAdmitSince({ monotonicMs, wallMs }: Moment): boolean {
  return performance.now() - monotonicMs < ADMIT_MS && Date.now() - wallMs < ADMIT_MS;
}
