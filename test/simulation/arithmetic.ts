import assert from 'node:assert/strict';
import { costOf, type Price, plainPrice } from '../../core/catalog/price';
import { usageOf } from '../../core/catalog/usage';
import type { Payer } from '../../core/ledger/ledger';
import { MemoryLedger } from '../../core/ledger/memory-ledger';
import { usageRowsOf } from '../../core/ledger/outbox/rows';
import { shardOf } from '../../core/ledger/shard';
import { type Random, seeded } from '../support/random';

/** A day of calls: the sums of the prices, the charges and the records, and the remaining balance. */
export interface Day {
  readonly calls: number;
  readonly charges: number;
  readonly shortfalls: number;
  readonly pricedE8: bigint;
  readonly chargedE8: bigint;
  readonly recordedE8: bigint;
  readonly spentE8: bigint;
}

const DAY_MS = 86_400_000;
const ACCOUNTS = 50;
const SHIP_EVERY = 5_000;
const FUNDS_E8 = 20_000_000_000n;

/**
 * Runs a day of calls with random prices and usage through the ledger and its outbox, and sums them up in four ways that must be equal to the unit.
 * @throws AssertionError when they are not
 */
export async function dayOfCalls(calls: number, seed: number): Promise<Day> {
  const random = seeded(seed);
  let now = Date.UTC(2026, 0, 1);
  const ledger = new MemoryLedger({ now: () => now });
  await ledger.open();
  const ids = idsFrom();
  const payers = await Promise.all(Array.from({ length: ACCOUNTS }, () => fund(ledger, ids)));
  const shards = [...new Set(payers.map(({ accountId }) => shardOf(accountId)))];
  let [pricedE8, shortE8, chargedE8, recordedE8, creditedE8] = [0n, 0n, 0n, 0n, 0n];
  let [charges, shortfalls] = [0, 0];

  const ship = async () => {
    for (const [shard, entries] of await ledger.readOutbox(shards, Number.MAX_SAFE_INTEGER)) {
      for (const entry of entries) {
        if (entry.kind === 'credit') creditedE8 += entry.amountE8;
        if (entry.kind === 'charge') charges += 1;
        chargedE8 -= entry.kind === 'charge' ? entry.amountE8 : 0n;
        for (const { costE8 } of usageRowsOf(entry)) recordedE8 += costE8;
      }
      await ledger.trimOutbox(shard, entries);
    }
  };

  for (let call = 1; call <= calls; call += 1) {
    now += DAY_MS / calls;
    const payer = random.pick(payers);
    const price = somePrice(random);
    const usage = someUsage(random);
    const costE8 = costOf(usage, price);
    const rid = ids.next(now);
    // One hold in twenty is too small, as an estimate may be.
    const amountE8 = random.below(20) === 0 ? costE8 / 2n : costE8 + BigInt(random.below(1_000));
    const record = '{}';
    const { outcome } = await ledger.reserve({
      ...payer,
      rid,
      amountE8,
      keyRev: 0,
      lifetimeMs: 120_000,
      facts: record,
    });
    if (outcome === 'insufficient_balance')
      await ledger.credit({ accountId: payer.accountId, rid: ids.next(now), amountE8: FUNDS_E8 });
    if (outcome !== 'reserved') continue;
    if (random.below(20) === 0) await ledger.release({ ...payer, rid, record });
    else {
      const settled = await ledger.settle({ ...payer, rid, costE8, record });
      assert.equal(settled.outcome, 'settled');
      const { shortfallE8 } = settled as { shortfallE8: bigint };
      pricedE8 += costE8;
      shortE8 += shortfallE8;
      if (shortfallE8 > 0n) shortfalls += 1;
    }
    if (call % SHIP_EVERY === 0) await ship();
  }
  await ship();

  let [balanceE8, keysE8] = [0n, 0n];
  for (const payer of payers) {
    const account = await ledger.readAccount(payer.accountId);
    assert.equal(account?.heldE8, 0n);
    balanceE8 += account?.postedE8 ?? 0n;
    keysE8 += (await ledger.readKey(payer))?.spentE8 ?? 0n;
  }
  const spentE8 = creditedE8 - balanceE8;
  assert.deepEqual([chargedE8, recordedE8, keysE8, pricedE8 - shortE8], [spentE8, spentE8, spentE8, spentE8]);
  return { calls, charges, shortfalls, pricedE8, chargedE8, recordedE8, spentE8 };
}

async function fund(ledger: MemoryLedger, ids: ReturnType<typeof idsFrom>): Promise<Payer> {
  const payer = { accountId: ids.next(0), keyId: ids.next(0) };
  await ledger.setAccount(payer.accountId, 'active');
  const settings = { rev: 0, name: 'key', allowedModels: undefined };
  await ledger.setKey({ ...payer, hash: payer.keyId, status: 'active', limitE8: undefined, settings });
  await ledger.credit({ accountId: payer.accountId, rid: ids.next(0), amountE8: FUNDS_E8 });
  return payer;
}

/** Draws a price from 0.01 to 100 USD per million tokens, with all allowed decimals. */
function somePrice(random: Random): Price {
  const rate = () => BigInt(1_000_000 + random.below(10_000_000_000));
  const rates = () => ({
    input: rate(),
    output: rate(),
    cacheWrite: rate(),
    cacheWrite1h: rate(),
    cacheRead: rate(),
  });
  return plainPrice(rates(), random.below(3) === 0 ? { tokens: 100_000, rates: plainPrice(rates()).rates } : undefined);
}

function someUsage(random: Random) {
  const some = (most: number) => (random.below(3) === 0 ? undefined : random.below(most));
  return usageOf({
    input: random.below(150_000),
    output: random.below(8_000),
    cacheRead: some(50_000),
    cacheWrite: some(10_000),
    cacheWrite1h: some(1_000),
  });
}

/** Makes ids in the shape of UUIDv7 that a seed repeats. */
function idsFrom() {
  let count = 0;
  return {
    next: (nowMs: number) => {
      count += 1;
      const at = Math.floor(nowMs).toString(16).padStart(12, '0');
      return `${at.slice(0, 8)}-${at.slice(8)}-7000-8000-${count.toString(16).padStart(12, '0')}`;
    },
  };
}
