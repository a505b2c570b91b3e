import { createHash } from 'node:crypto';
import { newId } from '../../ids';
import { largest } from '../amount';
import type { Payer } from '../payer';
import { ALLOWANCE_LEASE_MS, type ReportOutcome, type ReportRequest } from './allowance-store';
import { type Moment, mayAdmitSince } from './lease';
import { headOf, type ReportedCall, writeCalls } from './reported-calls';

/** A call that an allowance pays for. */
export interface OpenCall {
  readonly rid: string;
  readonly allowance: Allowance;
  amountE8: bigint;
}

/** Account and key must have so many of the key's usual holds available beside an allowance. */
const HOLDS_BESIDE = 20n;
const LEAST_HOLDS = 10n;

/** What a new allowance is to have free: enough for some calls. */
export function leastFree(medianHoldE8: bigint): bigint {
  return LEAST_HOLDS * medianHoldE8;
}

export function besideOf(medianHoldE8: bigint): bigint {
  return HOLDS_BESIDE * medianHoldE8;
}

/**
 * Money of one key that this node has in advance, as the node sees it. The ledger of all nodes never has less of it than the node: what is
 * free is spent in memory only after the ledger has given it, and is given back here before the ledger is told.
 */
export class Allowance implements Payer {
  readonly accountId: string;
  readonly keyId: string;
  readonly generation: string;
  keyRev: number;
  /** The node may admit calls from what is free, while its lease lives. */
  admits = true;
  /** The ledger does not know it any more. */
  isLost = false;
  freeE8: bigint;
  openE8 = 0n;
  ended: ReportedCall[] = [];
  /** Something to report: a call that began or ended. */
  isChanged = false;
  /** A call is to hold more because it has cost that. */
  isSettling = false;
  sequence = 0;
  reportedAt = performance.now();
  #lease: Moment;
  #freeWhenSentE8 = 0n;
  /** The most that was open at once since the last report, and what the calls of a report cost: both sink slowly. */
  #mostOpenE8 = 0n;
  #spentE8 = 0n;

  constructor(payer: Payer, granted: { generation: string; keyRev: number; freeE8: bigint; askedAt: Moment }) {
    this.accountId = payer.accountId;
    this.keyId = payer.keyId;
    this.generation = granted.generation;
    this.keyRev = granted.keyRev;
    this.freeE8 = granted.freeE8;
    this.#lease = granted.askedAt;
  }

  /** Whether a call may be taken from what is free, now. */
  covers(amountE8: bigint, keyRev: number): boolean {
    return (
      this.admits && this.freeE8 >= amountE8 && this.keyRev === keyRev && !this.isLost && mayAdmitSince(this.#lease)
    );
  }

  hold(amountE8: bigint): void {
    this.freeE8 -= amountE8;
    this.openE8 += amountE8;
    this.#mostOpenE8 = largest(this.openE8, this.#mostOpenE8);
    this.isChanged = true;
  }

  /** The call is over: what it did not cost is free again. */
  end(call: OpenCall, ended: ReportedCall): void {
    this.openE8 -= call.amountE8;
    this.freeE8 += call.amountE8 - ended.costE8;
    this.ended.push(ended);
    this.isChanged = true;
  }

  /** An open call is to hold more. What is not free of it is owed, before any other call is admitted, until the next report is answered. */
  enlarge(call: OpenCall, moreE8: bigint): void {
    this.freeE8 -= moreE8;
    this.openE8 += moreE8;
    call.amountE8 += moreE8;
    this.isChanged = true;
  }

  /** It holds less again, because there was no money for it, or because it was not enough. */
  shrink(call: OpenCall, lessE8: bigint, wasCovered: boolean): void {
    this.openE8 -= lessE8;
    call.amountE8 -= lessE8;
    if (wasCovered) this.freeE8 += lessE8;
    this.isChanged = true;
  }

  /** The next report: all that ended, and what is to be free from then on. */
  report(medianHoldE8: bigint, wantsMore: boolean): ReportRequest {
    const { ended: calls, isSettling } = this;
    this.ended = [];
    this.isChanged = false;
    this.isSettling = false;
    this.sequence += 1;
    const costE8 = calls.reduce((sum, call) => sum + call.costE8, 0n);
    this.#spentE8 = largest(costE8, sinking(this.#spentE8));
    const desiredE8 = wantsMore ? this.#wantedFree(medianHoldE8) : 0n;
    this.#mostOpenE8 = largest(this.openE8, sinking(this.#mostOpenE8));
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

  /** Half more than what may be open at once, and what calls cost until the report after the next is answered. */
  #wantedFree(medianHoldE8: bigint): bigint {
    const spareE8 = (this.#mostOpenE8 * 3n) / 2n - this.openE8;
    return largest(spareE8, leastFree(medianHoldE8)) + 2n * this.#spentE8;
  }

  /** Takes in what the ledger has answered to a report that was first sent at that moment. */
  answered({ freeE8, mayAdmit }: Extract<ReportOutcome, { outcome: 'reported' }>, sentAt: Moment): void {
    this.reportedAt = sentAt.monotonicMs;
    this.freeE8 = freeE8 + this.freeE8 - this.#freeWhenSentE8;
    this.admits = mayAdmit;
    if (mayAdmit) this.#lease = sentAt;
  }
}

/** By an eighth from one report to the next: some seconds of a key that is used less, a blink of one that is used much. */
function sinking(amountE8: bigint): bigint {
  return (amountE8 * 7n) / 8n;
}

/** Of what decides about money: two reports of one sequence that differ in it are not the same. */
export function digestOf(calls: readonly ReportedCall[]): string {
  return createHash('sha1').update(calls.map(headOf).join('\n')).digest('base64url');
}
