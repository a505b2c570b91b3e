import assert from 'node:assert/strict';
import { newId } from '../../../core/base/ids';
import { MAX_AMOUNT_E8 } from '../../../core/base/money';
import {
  type Ledger,
  LedgerUnavailable,
  MAX_INTENTS,
  type PaidIntent,
  type Payer,
  type SetKeyRequest,
  WrongPayer,
} from '../../../core/ledger/ledger';
import { dayNumberOf, NO_SPENDING } from '../../../core/ledger/scopes';
import { ALL_SHARDS, shardOf } from '../../../core/ledger/shard';
import { rejection } from '../../support/rejection';
import {
  assertIncludes,
  fundedPayer,
  hashOf,
  holding,
  keyRequest,
  newPayer,
  reserveRequest,
  settingsOf,
  spentInAll,
  type TestReserve,
  usageRecord,
} from './ledger-fixture';
import { scopesSuite } from './scopes-suite';
import { tagsSuite } from './tags-suite';

const NOTHING_SPENT = { spending: NO_SPENDING, scopes: [] } as const;

/** Defines the tests that both ledgers must pass. `make` returns an empty ledger that was not opened. */
export function ledgerSuite(name: string, make: () => Promise<Ledger>): void {
  describe(`the ledger's contract: ${name}`, () => {
    let ledger: Ledger;

    beforeEach(async () => {
      ledger = await make();
      await ledger.open();
    });
    afterEach(() => ledger.close());

    const outboxOf = async (payer: Payer) => {
      const shard = shardOf(payer.accountId);
      return (await ledger.readOutbox([shard], 1_000)).get(shard) ?? [];
    };
    const moneyOf = async (payer: Payer) => {
      const account = await ledger.readAccount(payer.accountId);
      const key = await ledger.readKey(payer);
      return {
        available: account?.availableE8,
        held: account?.heldE8,
        posted: account?.postedE8,
        keySpent: key?.spentE8,
        keyHeld: key?.heldE8,
      };
    };
    /** Collects all rejections at once, so that none is unhandled while an earlier one is awaited. */
    const rejections = (promises: readonly Promise<unknown>[]) => Promise.all(promises.map((each) => rejection(each)));
    const closing = (payer: Payer, rid: string) => ({ ...payer, rid, record: JSON.stringify(usageRecord(payer)) });

    scopesSuite(() => ledger);
    tagsSuite(() => ledger);

    describe('a reserve', () => {
      for (const [what, amountE8, outcome] of [
        ['nothing', 0n, 'reserved'],
        ['all there is', 1_000n, 'reserved'],
        ['one more than there is', 1_001n, 'insufficient_balance'],
      ] as const) {
        it(`of ${what} returns ${outcome}`, async () => {
          const payer = await fundedPayer(ledger, 1_000n);
          const answer = await ledger.reserve(reserveRequest(payer, amountE8));
          assert.equal(answer.outcome, outcome);
          const held = outcome === 'reserved' ? amountE8 : 0n;
          assert.deepEqual(await moneyOf(payer), {
            available: 1_000n - held,
            held,
            posted: 1_000n,
            keySpent: 0n,
            keyHeld: held,
          });
        });
      }

      it('holds the money once if it is repeated with the same id', async () => {
        const { payer, request } = await holding(ledger, 1_000n, 300n);
        assert.deepEqual(await ledger.reserve(request), { outcome: 'reserved', heldE8: 300n });
        assert.equal((await moneyOf(payer)).held, 300n);
      });

      for (const [funds, limitE8, heldE8] of [
        [10_000n, undefined, 800n],
        [1_600n, undefined, 800n],
        [1_599n, undefined, 799n],
        [1_000n, undefined, 500n],
        [599n, undefined, 300n],
        [300n, undefined, 300n],
        [10_000n, 1_001n, 500n],
        [10_000n, 300n, 300n],
        [1_000n, 900n, 450n],
      ] as const) {
        const of = `${funds} and ${limitE8 === undefined ? 'no limit' : `a limit of ${limitE8}`}`;
        it(`of 800, but at least 300, holds ${heldE8} of ${of}, and no more if it is repeated`, async () => {
          const payer = await fundedPayer(ledger, funds, limitE8);
          const request = reserveRequest(payer, 800n, { minE8: 300n });
          assert.deepEqual(await ledger.reserve(request), { outcome: 'reserved', heldE8 });
          assert.deepEqual(await ledger.reserve(request), { outcome: 'reserved', heldE8 });
          assertIncludes(await moneyOf(payer), { available: funds - heldE8, held: heldE8, keyHeld: heldE8 });
          await ledger.settle({ ...closing(payer, request.rid), costE8: heldE8 });
          assertIncludes(await moneyOf(payer), { posted: funds - heldE8, held: 0n, keySpent: heldE8 });
        });
      }

      it('is refused if the account or the key cannot cover its minimum amount', async () => {
        const [poor, limited] = [await fundedPayer(ledger, 299n), await fundedPayer(ledger, 10_000n, 299n)];
        const ask = (payer: Payer) => ledger.reserve(reserveRequest(payer, 800n, { minE8: 300n }));
        assert.deepEqual(await ask(poor), { outcome: 'insufficient_balance', availableE8: 299n });
        assertIncludes(await ask(limited), { outcome: 'limit_exceeded', availableE8: 299n });
        assertIncludes(await moneyOf(poor), { available: 299n, held: 0n });
      });

      it('is refused if a hold with its id is open and below its minimum amount', async () => {
        const { request } = await holding(ledger, 1_000n, 800n, { minE8: 300n });
        const answer = await ledger.reserve({ ...request, minE8: 501n });
        assert.deepEqual(answer, { outcome: 'exists_with_different_amount' });
      });

      it('reports a closed reservation if it is repeated after settlement or expiry', async () => {
        const { payer, request: settled } = await holding(ledger, 1_000n, 300n);
        await ledger.settle({ ...closing(payer, settled.rid), costE8: 1n });
        assert.deepEqual(await ledger.reserve(settled), { outcome: 'closed_before' });
        const expired = reserveRequest(payer, 300n, { lifetimeMs: 0 });
        await ledger.reserve(expired);
        await ledger.expire(payer, expired.rid);
        assert.deepEqual(await ledger.reserve(expired), { outcome: 'closed_before' });
        assert.equal((await moneyOf(payer)).held, 0n);
      });

      it('is refused after its release, even if the release of the unknown id came first', async () => {
        const { payer, request: released } = await holding(ledger, 1_000n, 300n);
        await ledger.release(closing(payer, released.rid));
        assert.deepEqual(await ledger.reserve(released), { outcome: 'released_before' });
        const late = reserveRequest(payer, 300n);
        assert.deepEqual(await ledger.release(closing(payer, late.rid)), { outcome: 'tombstoned' });
        assert.deepEqual(await ledger.reserve(late), { outcome: 'released_before' });
        assert.equal((await moneyOf(payer)).available, 1_000n);
      });

      it('reports only the first problem of account and key, always checked in the same order', async () => {
        const payer = newPayer();
        const ask = async () => (await ledger.reserve(reserveRequest(payer, 5n))).outcome;
        assert.equal(await ask(), 'unknown_account');
        await ledger.setAccount(payer.accountId, 'frozen');
        assert.equal(await ask(), 'unknown_key');
        await ledger.setKey(keyRequest(payer, { status: 'revoked', settings: settingsOf({ rev: 1 }) }));
        assert.equal(await ask(), 'revoked');
        await ledger.setKey(keyRequest(payer, { limitE8: 4n, settings: settingsOf({ rev: 2 }) }));
        assert.equal(await ask(), 'frozen');
        await ledger.setAccount(payer.accountId, 'active');
        assert.equal(await ask(), 'stale_key');
        assert.equal((await ledger.reserve(reserveRequest(payer, 5n, { keyRev: 2 }))).outcome, 'insufficient_balance');
        await ledger.credit({ accountId: payer.accountId, rid: newId(), amountE8: 5n });
        assert.equal((await ledger.reserve(reserveRequest(payer, 5n, { keyRev: 2 }))).outcome, 'limit_exceeded');
      });

      it('is refused for the key of another account', async () => {
        const rich = await fundedPayer(ledger, 1_000n);
        const other = await fundedPayer(ledger, 1_000n);
        const answer = await ledger.reserve(reserveRequest({ ...rich, keyId: other.keyId }, 1n));
        assert.deepEqual(answer, { outcome: 'unknown_key' });
      });

      it('returns the newer settings of the key to a node that has older ones', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        const settings = settingsOf({ rev: 3, name: 'renamed', allowedModels: ['model-a'], markup: '1.25' });
        await ledger.setKey(keyRequest(payer, { settings }));
        const request = reserveRequest(payer, 1n, { keyRev: 2 });
        assert.deepEqual(await ledger.reserve(request), { outcome: 'stale_key', settings });
        assert.deepEqual(await ledger.reserve({ ...request, keyRev: 3 }), { outcome: 'reserved', heldE8: 1n });
      });

      it('keeps the sum of spent and held money within the limit of the key', async () => {
        const payer = await fundedPayer(ledger, 1_000n, 100n);
        const first = reserveRequest(payer, 40n);
        await ledger.reserve(first);
        await ledger.settle({ ...closing(payer, first.rid), costE8: 30n });
        await ledger.reserve(reserveRequest(payer, 20n));
        const refused = await ledger.reserve(reserveRequest(payer, 51n));
        assertIncludes(refused, { outcome: 'limit_exceeded', availableE8: 50n });
        assert.deepEqual(await ledger.reserve(reserveRequest(payer, 50n)), { outcome: 'reserved', heldE8: 50n });
      });

      it('reports 0 as available if the limit was lowered below the spent money', async () => {
        const { payer } = await holding(ledger, 1_000n, 40n);
        await ledger.setKey(keyRequest(payer, { limitE8: 10n }));
        const refused = await ledger.reserve(reserveRequest(payer, 1n));
        assertIncludes(refused, { outcome: 'limit_exceeded', availableE8: 0n });
        assertIncludes(await ledger.reserve(reserveRequest(payer, 0n)), { outcome: 'limit_exceeded', availableE8: 0n });
      });

      it('admits 10 of 200 simultaneous calls if the money covers 10', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        const answers = await Promise.all(
          Array.from({ length: 200 }, () => ledger.reserve(reserveRequest(payer, 100n))),
        );
        assert.equal(answers.filter(({ outcome }) => outcome === 'reserved').length, 10);
        assert.equal(answers.filter(({ outcome }) => outcome === 'insufficient_balance').length, 190);
        assertIncludes(await moneyOf(payer), { available: 0n, held: 1_000n });
      });

      it('throws for an amount that is negative or above the largest exact number', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        assert.ok((await rejection(ledger.reserve(reserveRequest(payer, MAX_AMOUNT_E8 + 1n)))) instanceof RangeError);
        assert.ok((await rejection(ledger.reserve(reserveRequest(payer, -1n)))) instanceof RangeError);
      });
    });

    describe('a settle', () => {
      const opened = async (available: bigint, amountE8: bigint, limitE8?: bigint) => {
        const payer = await fundedPayer(ledger, available, limitE8);
        const request = reserveRequest(payer, amountE8);
        await ledger.reserve(request);
        return { payer, request: closing(payer, request.rid) };
      };
      for (const [what, costE8, chargedE8, shortfallE8] of [
        ['nothing', 0n, 0n, 0n],
        ['the whole hold', 400n, 400n, 0n],
        ['one more than the hold', 401n, 401n, 0n],
        ['all the account has', 1_000n, 1_000n, 0n],
        ['one more than the account has', 1_001n, 1_000n, 1n],
      ] as const) {
        it(`of ${what} charges ${chargedE8} of ${costE8}`, async () => {
          const { payer, request } = await opened(1_000n, 400n);
          const answer = await ledger.settle({ ...request, costE8 });
          assert.deepEqual(answer, { outcome: 'settled', chargedE8, shortfallE8 });
          const left = 1_000n - chargedE8;
          assert.deepEqual(await moneyOf(payer), {
            available: left,
            held: 0n,
            posted: left,
            keySpent: chargedE8,
            keyHeld: 0n,
          });
          const entry = (await outboxOf(payer)).at(-1);
          assertIncludes(entry, { kind: 'charge', seq: 2, amountE8: -chargedE8, postedE8: left, shortfallE8 });
          assertIncludes(entry, { ...payer, rid: request.rid, record: request.record });
        });
      }

      it('above the hold charges no more than the limit of the key allows', async () => {
        const { payer, request } = await opened(1_000n, 400n, 450n);
        const answer = await ledger.settle({ ...request, costE8: 500n });
        assert.deepEqual(answer, { outcome: 'settled', chargedE8: 450n, shortfallE8: 50n });
        assert.equal((await moneyOf(payer)).available, 550n);
      });

      it('above the hold never takes money that another call holds', async () => {
        const { payer, request } = await opened(1_000n, 400n);
        await ledger.reserve(reserveRequest(payer, 500n));
        const answer = await ledger.settle({ ...request, costE8: 700n });
        assert.deepEqual(answer, { outcome: 'settled', chargedE8: 500n, shortfallE8: 200n });
        assertIncludes(await moneyOf(payer), { available: 0n, held: 500n });
      });

      it('charges once if it is sent 100 times simultaneously, and each request gets the same answer', async () => {
        const { payer, request } = await opened(1_000n, 400n);
        const answers = await Promise.all(
          Array.from({ length: 100 }, () => ledger.settle({ ...request, costE8: 1_100n })),
        );
        for (const answer of answers)
          assert.deepEqual(answer, { outcome: 'settled', chargedE8: 1_000n, shortfallE8: 100n });
        assert.equal((await outboxOf(payer)).filter(({ kind }) => kind === 'charge').length, 1);
      });

      it('of an unknown id charges nothing', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        const answer = await ledger.settle({ ...closing(payer, newId()), costE8: 1n });
        assert.deepEqual(answer, { outcome: 'unknown_reservation' });
        assertIncludes(await moneyOf(payer), { posted: 1_000n, keySpent: 0n });
      });

      it('after a release charges nothing, even if the release came before the reserve', async () => {
        const { payer, request } = await opened(1_000n, 400n);
        await ledger.release(request);
        assert.deepEqual(await ledger.settle({ ...request, costE8: 1n }), { outcome: 'released' });
        const never = closing(payer, newId());
        await ledger.release(never);
        assert.deepEqual(await ledger.settle({ ...never, costE8: 1n }), { outcome: 'released' });
        assertIncludes(await moneyOf(payer), { posted: 1_000n, keySpent: 0n });
      });

      it('is accepted after the deadline until the reservation expires', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        const [first, second] = [0, 1].map(() => reserveRequest(payer, 400n, { lifetimeMs: 0 }));
        if (first === undefined || second === undefined) throw new Error('two requests were made');
        await ledger.reserve(first);
        await ledger.reserve(second);
        const answer = await ledger.settle({ ...closing(payer, first.rid), costE8: 7n });
        assert.deepEqual(answer, { outcome: 'settled', chargedE8: 7n, shortfallE8: 0n });
        await ledger.expire(payer, second.rid);
        assert.deepEqual(await ledger.settle({ ...closing(payer, second.rid), costE8: 7n }), { outcome: 'expired' });
        assertIncludes(await moneyOf(payer), { posted: 993n, held: 0n, keySpent: 7n });
      });

      it('that races an expiry closes each of 1,000 reservations exactly once', async () => {
        const payer = await fundedPayer(ledger, 1_000_000n);
        const requests = Array.from({ length: 1_000 }, () => reserveRequest(payer, 10n, { lifetimeMs: 0 }));
        const race = ({ rid }: { rid: string }, index: number) => {
          const settle = () => ledger.settle({ ...closing(payer, rid), costE8: 3n });
          const expire = () => ledger.expire(payer, rid);
          return index % 2 === 0 ? Promise.all([settle(), expire()]) : Promise.all([expire(), settle()]);
        };
        const pairs: (readonly { outcome: string }[])[] = [];
        for (let from = 0; from < requests.length; from += 200) {
          const some = requests.slice(from, from + 200);
          await Promise.all(some.map((request) => ledger.reserve(request)));
          pairs.push(...(await Promise.all(some.map(race))));
        }
        for (const pair of pairs) {
          const words = pair.map(({ outcome }) => outcome).join(' ');
          assert.ok(['settled not_due', 'expired expired'].includes(words), words);
        }
        const settled = BigInt(pairs.filter(([one]) => one?.outcome === 'settled').length);
        assert.equal(settled, 500n);
        assertIncludes(await moneyOf(payer), { posted: 1_000_000n - settled * 3n, held: 0n, keyHeld: 0n });
        const shard = shardOf(payer.accountId);
        const closed = ((await ledger.readOutbox([shard], 3_000)).get(shard) ?? []).slice(1);
        assert.equal(new Set(closed.map(({ rid }) => rid)).size, 1_000);
        assert.equal(closed.length, 1_000);
        assert.deepEqual(
          closed.map(({ seq }) => seq),
          closed.map((_, index) => index + 2),
        );
      });
    });

    describe('a release', () => {
      for (const amountE8 of [0n, 400n, 1_000n]) {
        it(`returns a hold of ${amountE8} to the account and leaves one entry`, async () => {
          const payer = await fundedPayer(ledger, 1_000n);
          const { rid } = reserveRequest(payer, amountE8);
          await ledger.reserve(reserveRequest(payer, amountE8, { rid }));
          assert.deepEqual(await ledger.release(closing(payer, rid)), { outcome: 'released' });
          assert.deepEqual(await ledger.release(closing(payer, rid)), { outcome: 'released' });
          assert.deepEqual(await moneyOf(payer), {
            available: 1_000n,
            held: 0n,
            posted: 1_000n,
            keySpent: 0n,
            keyHeld: 0n,
          });
          const [, entry, ...others] = await outboxOf(payer);
          assertIncludes(entry, { kind: 'release', rid, seq: 2, amountE8: 0n, postedE8: 1_000n });
          assert.deepEqual(others, []);
        });
      }

      it('of an unknown id leaves a tombstone and no entry, however often it is sent', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        const request = closing(payer, newId());
        assert.deepEqual(await ledger.release(request), { outcome: 'tombstoned' });
        assert.deepEqual(await ledger.release(request), { outcome: 'tombstoned' });
        assert.equal((await outboxOf(payer)).length, 1);
      });

      it('of a settled or expired reservation reports this state and changes nothing', async () => {
        const { payer, request: settled } = await holding(ledger, 1_000n, 400n);
        await ledger.settle({ ...closing(payer, settled.rid), costE8: 100n });
        assert.deepEqual(await ledger.release(closing(payer, settled.rid)), { outcome: 'settled' });
        const expired = reserveRequest(payer, 400n, { lifetimeMs: 0 });
        await ledger.reserve(expired);
        await ledger.expire(payer, expired.rid);
        assert.deepEqual(await ledger.release(closing(payer, expired.rid)), { outcome: 'expired' });
        assertIncludes(await moneyOf(payer), { available: 900n, held: 0n });
        assert.equal((await outboxOf(payer)).length, 3);
      });

      it('without a usage record, as sandboxes send it, leaves an entry without a record', async () => {
        const { payer, request } = await holding(ledger, 1_000n, 1n, { facts: '', lifetimeMs: undefined });
        await ledger.release({ ...payer, rid: request.rid, record: '' });
        assert.equal((await outboxOf(payer)).at(-1)?.record, undefined);
      });
    });

    describe('a ledger that handles deadlines of holds', () => {
      it('lists and expires only overdue holds, each once, with the usage record of the reserve', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        const due = reserveRequest(payer, 400n, { lifetimeMs: 0 });
        const open = reserveRequest(payer, 100n);
        await ledger.reserve(due);
        await ledger.reserve(open);
        assert.deepEqual(await ledger.due([shardOf(payer.accountId)], 10), [{ ...payer, rid: due.rid }]);
        assert.deepEqual(await ledger.expire(payer, open.rid), { outcome: 'not_due' });
        assert.deepEqual(await ledger.expire(payer, newId()), { outcome: 'not_due' });
        assert.deepEqual(await ledger.expire(payer, due.rid), { outcome: 'expired' });
        assert.deepEqual(await ledger.expire(payer, due.rid), { outcome: 'expired' });
        assert.deepEqual(await ledger.due([shardOf(payer.accountId)], 10), []);
        assertIncludes(await moneyOf(payer), { available: 900n, held: 100n, keyHeld: 100n });
        const [, entry, ...others] = await outboxOf(payer);
        assertIncludes(entry, { kind: 'expire', rid: due.rid, amountE8: 0n, record: due.facts });
        assert.deepEqual(others, []);
      });

      it('lists as many overdue holds as are requested', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        for (let each = 0; each < 15; each += 1) await ledger.reserve(reserveRequest(payer, 1n, { lifetimeMs: 0 }));
        const other = await fundedPayer(ledger, 1_000n);
        await ledger.reserve(reserveRequest(other, 1n, { lifetimeMs: 0 }));
        for (const limit of [1, 10, 20]) {
          assert.equal((await ledger.due([shardOf(payer.accountId)], limit)).length, Math.min(limit, 15));
          const of = (await ledger.due(ALL_SHARDS, limit)).map(({ accountId }) => accountId);
          assert.equal(of.filter((id) => id === payer.accountId).length, Math.min(limit, 15));
          assert.equal(of.filter((id) => id === other.accountId).length, 1);
        }
      });

      it('renews an open reservation even after its deadline, but never a closed one', async () => {
        const { payer, request } = await holding(ledger, 1_000n, 400n, { lifetimeMs: 0 });
        const renewal = { ...payer, rid: request.rid, lifetimeMs: 60_000 };
        assert.deepEqual(await ledger.renew(renewal), { outcome: 'renewed' });
        assert.deepEqual(await ledger.expire(payer, request.rid), { outcome: 'not_due' });
        await ledger.settle({ ...closing(payer, request.rid), costE8: 0n });
        assert.deepEqual(await ledger.renew(renewal), { outcome: 'not_open' });
        assert.deepEqual(await ledger.renew({ ...renewal, rid: newId() }), { outcome: 'not_open' });
      });

      it('never makes a hold without a deadline overdue, even after a renewal', async () => {
        const { payer, request } = await holding(ledger, 1_000n, 400n, { lifetimeMs: undefined });
        await ledger.renew({ ...payer, rid: request.rid, lifetimeMs: 0 });
        assert.deepEqual(await ledger.due([shardOf(payer.accountId)], 10), []);
        assert.deepEqual(await ledger.expire(payer, request.rid), { outcome: 'not_due' });
      });
    });

    describe('a renewal with an amount', () => {
      const opened = async (limitE8?: bigint) => {
        const payer = await fundedPayer(ledger, 1_000n, limitE8);
        const request = reserveRequest(payer, 400n, { lifetimeMs: undefined });
        await ledger.reserve(request);
        return { payer, renewal: { ...payer, rid: request.rid, lifetimeMs: undefined } };
      };
      for (const [amountE8, heldE8] of [
        [0n, 400n],
        [399n, 400n],
        [400n, 400n],
        [401n, 401n],
        [1_000n, 1_000n],
      ] as const) {
        it(`of ${amountE8} changes a hold of 400 to ${heldE8}, however often it is sent`, async () => {
          const { payer, renewal } = await opened();
          assert.deepEqual(await ledger.renew({ ...renewal, amountE8 }), { outcome: 'renewed' });
          assert.deepEqual(await ledger.renew({ ...renewal, amountE8 }), { outcome: 'renewed' });
          assertIncludes(await moneyOf(payer), { available: 1_000n - heldE8, held: heldE8, keyHeld: heldE8 });
          await ledger.release(closing(payer, renewal.rid));
          assertIncludes(await moneyOf(payer), { available: 1_000n, held: 0n, keyHeld: 0n });
        });
      }

      it('above the available money changes nothing and reports the available money', async () => {
        const { payer, renewal } = await opened();
        assert.deepEqual(await ledger.renew({ ...renewal, amountE8: 1_001n }), {
          outcome: 'insufficient_balance',
          availableE8: 600n,
        });
        assertIncludes(await moneyOf(payer), { available: 600n, held: 400n });
      });

      it('respects the limit of the key, fails for a frozen account, and succeeds for a revoked key', async () => {
        const { payer, renewal } = await opened(500n);
        assertIncludes(await ledger.renew({ ...renewal, amountE8: 501n }), {
          outcome: 'limit_exceeded',
          availableE8: 100n,
        });
        await ledger.setKey(keyRequest(payer, { status: 'revoked', limitE8: 500n }));
        assert.deepEqual(await ledger.renew({ ...renewal, amountE8: 500n }), { outcome: 'renewed' });
        await ledger.setAccount(payer.accountId, 'frozen');
        assert.deepEqual(await ledger.renew({ ...renewal, amountE8: 500n }), { outcome: 'renewed' });
        assert.deepEqual(await ledger.renew({ ...renewal, amountE8: 501n }), { outcome: 'frozen' });
        assertIncludes(await moneyOf(payer), { available: 500n, held: 500n, keyHeld: 500n });
      });

      it('of a closed or unknown hold returns the outcome `not_open`', async () => {
        const { payer, renewal } = await opened();
        await ledger.release(closing(payer, renewal.rid));
        assert.deepEqual(await ledger.renew({ ...renewal, amountE8: 500n }), { outcome: 'not_open' });
        assert.deepEqual(await ledger.renew({ ...renewal, rid: newId(), amountE8: 500n }), { outcome: 'not_open' });
      });
    });

    describe('a roll, which settles one hold and opens the next', () => {
      const opened = async (limitE8?: bigint) => {
        const payer = await fundedPayer(ledger, 1_000n, limitE8);
        const first = reserveRequest(payer, 400n, { lifetimeMs: undefined, facts: '' });
        await ledger.reserve(first);
        const roll = (costE8: bigint, amountE8: bigint) => ({
          ...payer,
          rid: first.rid,
          record: '',
          costE8,
          next: { rid: nextRid, amountE8 },
        });
        const nextRid = newId();
        return { payer, roll, rid: first.rid, nextRid };
      };
      for (const [costE8, amountE8] of [
        [0n, 0n],
        [0n, 1_000n],
        [400n, 600n],
        [401n, 599n],
        [1_000n, 0n],
      ] as const) {
        it(`charges ${costE8} and holds ${amountE8}, once, however often it is sent`, async () => {
          const { payer, roll, rid, nextRid } = await opened();
          const rolled = { outcome: 'rolled', chargedE8: costE8, shortfallE8: 0n };
          const answers = await Promise.all(Array.from({ length: 20 }, () => ledger.roll(roll(costE8, amountE8))));
          for (const answer of answers) assert.deepEqual(answer, rolled);
          const posted = 1_000n - costE8;
          assert.deepEqual(await moneyOf(payer), {
            available: posted - amountE8,
            held: amountE8,
            posted,
            keySpent: costE8,
            keyHeld: amountE8,
          });
          const [, entry, ...others] = await outboxOf(payer);
          assertIncludes(entry, {
            kind: 'charge',
            rid,
            seq: 2,
            amountE8: -costE8,
            postedE8: posted,
            record: undefined,
          });
          assert.deepEqual(others, []);
          assert.deepEqual(await ledger.due([shardOf(payer.accountId)], 10), []);
          assert.equal((await ledger.release(closing(payer, nextRid))).outcome, 'released');
          assert.deepEqual(await ledger.roll(roll(costE8, amountE8)), rolled, 'also after the next hold was closed');
        });
      }

      it('changes nothing if the money for the next hold is missing, and reports how much would be available', async () => {
        const { payer, roll } = await opened();
        const before = await moneyOf(payer);
        assert.deepEqual(await ledger.roll(roll(100n, 901n)), { outcome: 'insufficient_balance', availableE8: 900n });
        assert.deepEqual(await ledger.roll(roll(1_001n, 0n)), { outcome: 'insufficient_balance', availableE8: 0n });
        await ledger.setAccount(payer.accountId, 'frozen');
        assert.deepEqual(await ledger.roll(roll(100n, 1n)), { outcome: 'frozen' });
        assert.deepEqual(await moneyOf(payer), before);
      });

      it('respects the limit of the key, and succeeds for a revoked key', async () => {
        const { payer, roll } = await opened(500n);
        assertIncludes(await ledger.roll(roll(100n, 401n)), { outcome: 'limit_exceeded', availableE8: 400n });
        await ledger.setKey(keyRequest(payer, { status: 'revoked', limitE8: 500n }));
        assert.equal((await ledger.roll(roll(100n, 400n))).outcome, 'rolled');
        assertIncludes(await moneyOf(payer), { held: 400n, keySpent: 100n, keyHeld: 400n });
      });

      it('charges nothing if the first hold was already closed in another way', async () => {
        const settled = await opened();
        await ledger.settle({ ...closing(settled.payer, settled.rid), costE8: 30n });
        const answer = await ledger.roll(settled.roll(100n, 400n));
        assert.deepEqual(answer, { outcome: 'settled', chargedE8: 30n, shortfallE8: 0n });
        assertIncludes(await moneyOf(settled.payer), { held: 0n, posted: 970n });
        const released = await opened();
        await ledger.release(closing(released.payer, released.rid));
        assert.deepEqual(await ledger.roll(released.roll(1n, 1n)), { outcome: 'released' });
        const lapsed = reserveRequest(released.payer, 400n, { lifetimeMs: 0 });
        await ledger.reserve(lapsed);
        await ledger.expire(released.payer, lapsed.rid);
        assert.deepEqual(await ledger.roll({ ...released.roll(1n, 1n), rid: lapsed.rid }), { outcome: 'expired' });
        const unknown = { ...released.roll(1n, 1n), rid: newId() };
        assert.deepEqual(await ledger.roll(unknown), { outcome: 'unknown_reservation' });
      });

      it('is refused if the id of its next hold was already released, or is open with another amount', async () => {
        const { payer, roll, nextRid } = await opened();
        await ledger.release(closing(payer, nextRid));
        assert.deepEqual(await ledger.roll(roll(1n, 1n)), { outcome: 'released_before' });
        const other = await opened();
        await ledger.reserve(reserveRequest(other.payer, 5n, { rid: other.nextRid, lifetimeMs: undefined }));
        assert.deepEqual(await ledger.roll(other.roll(1n, 6n)), { outcome: 'exists_with_different_amount' });
        assert.equal((await ledger.roll(other.roll(1n, 5n))).outcome, 'rolled');
        assertIncludes(await moneyOf(other.payer), { held: 5n, keyHeld: 5n, posted: 999n });
      });
    });

    describe('the limits by the minute', () => {
      const limited = async (limits: Partial<SetKeyRequest>) => {
        const payer = await fundedPayer(ledger, 1_000n);
        await ledger.setKey(keyRequest(payer, limits));
        const reserve = (tokens?: number) =>
          ledger.reserve(reserveRequest(payer, 1n, tokens === undefined ? {} : { tokens }));
        return { payer, reserve };
      };
      const words = (answers: readonly { outcome: string }[]) => answers.map(({ outcome }) => outcome).sort();

      it('admit as many simultaneous calls as they allow, and report to the next call when to retry', async () => {
        const { payer, reserve } = await limited({ callsPerMinute: 3 });
        const answers = await Promise.all([1, 1, 1, 1, 1].map(reserve));
        assert.deepEqual(words(answers), ['rate_limited', 'rate_limited', 'reserved', 'reserved', 'reserved']);
        const refused = await reserve(1);
        assert.ok(refused.outcome === 'rate_limited');
        assert.ok(refused.retryAfterMs > 15_000 && refused.retryAfterMs <= 20_000, String(refused.retryAfterMs));
        assertIncludes(await moneyOf(payer), { held: 3n });
      });

      it('count the estimated tokens, and return the unused ones after a settle or release', async () => {
        const { payer, reserve } = await limited({ tokensPerMinute: 100 });
        const [first, second] = [reserveRequest(payer, 1n, { tokens: 60 }), reserveRequest(payer, 1n, { tokens: 40 })];
        await ledger.reserve(first);
        await ledger.reserve(second);
        assert.equal((await reserve(5)).outcome, 'rate_limited');
        await ledger.settle({ ...closing(payer, first.rid), costE8: 1n, tokens: 50 });
        assert.equal((await reserve(10)).outcome, 'reserved');
        assert.equal((await reserve(30)).outcome, 'rate_limited');
        await ledger.release(closing(payer, second.rid));
        assert.equal((await reserve(40)).outcome, 'reserved');
      });

      it('do not stop the settle of a call that was admitted before the limit was removed', async () => {
        const { payer } = await limited({ tokensPerMinute: 100 });
        const request = reserveRequest(payer, 1n, { tokens: 60 });
        await ledger.reserve(request);
        await ledger.setKey(keyRequest(payer, { settings: settingsOf({ rev: 1 }) }));
        const settled = await ledger.settle({ ...closing(payer, request.rid), costE8: 1n, tokens: 50 });
        assert.deepEqual(settled, { outcome: 'settled', chargedE8: 1n, shortfallE8: 0n });
      });

      it('admit a call larger than the limit if no other call came before that call', async () => {
        const { reserve } = await limited({ tokensPerMinute: 100 });
        assert.equal((await reserve(5_000)).outcome, 'reserved');
        const refused = await reserve(1);
        assert.ok(refused.outcome === 'rate_limited' && refused.retryAfterMs <= 600);
      });

      it('do not count a repeated call, a refused call or a hold that is not a call', async () => {
        const { payer, reserve } = await limited({ callsPerMinute: 2 });
        const request = reserveRequest(payer, 1n, { tokens: 1 });
        await ledger.reserve(request);
        await ledger.reserve(request);
        await ledger.reserve(reserveRequest(payer, 5_000n, { tokens: 1 }));
        await reserve();
        await reserve();
        assert.equal((await reserve(1)).outcome, 'reserved');
        assert.equal((await reserve(1)).outcome, 'rate_limited');
      });
    });

    describe('a call that is refused without a hold', () => {
      const limited = async (limits: Partial<SetKeyRequest>) => {
        const payer = await fundedPayer(ledger, 1_000n);
        await ledger.setKey(keyRequest(payer, limits));
        return payer;
      };

      it('counts towards the limit of calls per minute, until that limit is reached', async () => {
        const payer = await limited({ callsPerMinute: 2 });
        assert.deepEqual(await ledger.countRefused(payer), { outcome: 'counted' });
        assert.deepEqual(await ledger.countRefused(payer), { outcome: 'counted' });
        const third = await ledger.countRefused(payer);
        assert.ok(third.outcome === 'rate_limited');
        assert.ok(third.retryAfterMs > 20_000 && third.retryAfterMs <= 30_000, String(third.retryAfterMs));
        assert.equal((await ledger.reserve(reserveRequest(payer, 1n, { tokens: 1 }))).outcome, 'rate_limited');
      });

      it('counts no tokens, and counts nothing for a key without a limit of calls', async () => {
        const payer = await limited({ tokensPerMinute: 1 });
        for (let call = 0; call < 5; call += 1)
          assert.deepEqual(await ledger.countRefused(payer), { outcome: 'counted' });
        assert.equal((await ledger.reserve(reserveRequest(payer, 1n, { tokens: 1 }))).outcome, 'reserved');
      });

      it("has a limit separate from the limit of requests to the gateway's own API, which each such request states", async () => {
        const payer = await limited({ callsPerMinute: 1 });
        for (let request = 0; request < 3; request += 1)
          assert.deepEqual(await ledger.countRequest(payer, 3), { outcome: 'counted' });
        const fourth = await ledger.countRequest(payer, 3);
        assert.ok(fourth.outcome === 'rate_limited');
        assert.ok(fourth.retryAfterMs > 10_000 && fourth.retryAfterMs <= 20_000, String(fourth.retryAfterMs));
        assert.deepEqual(await ledger.countRefused(payer), { outcome: 'counted' });
      });

      it('returns the outcome `unknown_key` if its API key is unknown', async () => {
        assert.deepEqual(await ledger.countRefused(newPayer()), { outcome: 'unknown_key' });
        assert.deepEqual(await ledger.countRequest(newPayer(), 1), { outcome: 'unknown_key' });
      });
    });

    describe('a limit of a day, a week or a month', () => {
      for (const name of ['dailyLimitE8', 'weeklyLimitE8', 'monthlyLimitE8'] as const) {
        it(`(${name}) bounds the sum of spent and held money in addition to the total limit, and can be shown and removed`, async () => {
          const payer = await fundedPayer(ledger, 1_000n);
          await ledger.setKey(keyRequest(payer, { limitE8: 500n, [name]: 100n }));
          assertIncludes(await ledger.readKey(payer), { limitE8: 500n, [name]: 100n });
          const first = reserveRequest(payer, 60n);
          await ledger.reserve(first);
          await ledger.settle({ ...closing(payer, first.rid), costE8: 30n });
          const second = reserveRequest(payer, 50n);
          await ledger.reserve(second);
          assertIncludes(await ledger.reserve(reserveRequest(payer, 21n)), {
            outcome: 'limit_exceeded',
            availableE8: 20n,
          });
          const answer = await ledger.settle({ ...closing(payer, second.rid), costE8: 90n });
          assert.deepEqual(answer, { outcome: 'settled', chargedE8: 70n, shortfallE8: 20n });
          await ledger.setKey(keyRequest(payer, { limitE8: 500n }));
          assert.equal((await ledger.reserve(reserveRequest(payer, 400n))).outcome, 'reserved');
        });
      }

      it('is restored with the money that was spent in its day or month', async () => {
        const payer = newPayer();
        const limits = { dailyLimitE8: 100n, monthlyLimitE8: 300n };
        const spentE8 = { total: 700n, day: 40n, week: 40n, month: 250n };
        const spending = { day: dayNumberOf(Date.now()), spentE8 };
        await ledger.restore([
          {
            accountId: payer.accountId,
            status: 'active',
            postedE8: 900n,
            seq: 1,
            closed: [],
            open: [],
            spending,
            scopes: [],
            keys: [{ ...keyRequest(payer, limits), spending }],
          },
        ]);
        assertIncludes(await ledger.reserve(reserveRequest(payer, 51n)), {
          outcome: 'limit_exceeded',
          availableE8: 50n,
        });
        assert.equal((await ledger.reserve(reserveRequest(payer, 50n))).outcome, 'reserved');
      });
    });

    describe('a late settle, for a call that the ledger may have lost', () => {
      const late = (payer: Payer, rid: string, costE8: bigint) =>
        ledger.settle({ ...closing(payer, rid), costE8, isLate: true });

      it('of an unknown id charges the available money, once, and leaves its entry', async () => {
        const payer = await fundedPayer(ledger, 1_000n, 700n);
        const rid = newId();
        const settled = { outcome: 'settled', chargedE8: 700n, shortfallE8: 100n };
        assert.deepEqual(await late(payer, rid, 800n), settled);
        assert.deepEqual(await late(payer, rid, 800n), settled);
        assertIncludes(await moneyOf(payer), { available: 300n, held: 0n, posted: 300n, keySpent: 700n, keyHeld: 0n });
        const [, entry, ...others] = await outboxOf(payer);
        assertIncludes(entry, { kind: 'charge', rid, seq: 2, amountE8: -700n, shortfallE8: 100n });
        assert.deepEqual(others, []);
      });

      it('acts as an ordinary settle for an open or closed reservation, or a missing account', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        const [open, expired] = [reserveRequest(payer, 100n), reserveRequest(payer, 100n, { lifetimeMs: 0 })];
        await ledger.reserve(open);
        await ledger.reserve(expired);
        await ledger.expire(payer, expired.rid);
        assert.equal((await late(payer, open.rid, 50n)).outcome, 'settled');
        assert.deepEqual(await late(payer, expired.rid, 50n), { outcome: 'expired' });
        assertIncludes(await moneyOf(payer), { posted: 950n, held: 0n });
        assert.deepEqual(await late(newPayer(), newId(), 1n), { outcome: 'unknown_reservation' });
        assert.deepEqual(await late({ ...payer, keyId: newId() }, newId(), 1n), { outcome: 'unknown_reservation' });
      });
    });

    describe('a credit', () => {
      it('is added once, however often it is repeated', async () => {
        const payer = await fundedPayer(ledger, 0n);
        const request = { accountId: payer.accountId, rid: newId(), amountE8: 70n };
        const answers = await Promise.all(Array.from({ length: 20 }, () => ledger.credit(request)));
        for (const answer of answers) assert.deepEqual(answer, { outcome: 'credited', postedE8: 70n });
        assert.equal((await outboxOf(payer)).length, 1);
        assertIncludes((await outboxOf(payer))[0], { kind: 'credit', keyId: undefined, seq: 1, amountE8: 70n });
      });

      it('is refused for an unknown account', async () => {
        const answer = await ledger.credit({ accountId: newId(), rid: newId(), amountE8: 1n });
        assert.deepEqual(answer, { outcome: 'unknown_account' });
      });

      it('may raise the balance to the largest exact number and not beyond', async () => {
        const payer = await fundedPayer(ledger, MAX_AMOUNT_E8 - 1n);
        const credit = (amountE8: bigint) => ledger.credit({ accountId: payer.accountId, rid: newId(), amountE8 });
        assert.equal((await credit(2n)).outcome, 'above_maximum');
        assert.deepEqual(await credit(1n), { outcome: 'credited', postedE8: MAX_AMOUNT_E8 });
        assert.equal((await credit(1n)).outcome, 'above_maximum');
        assert.equal((await ledger.reserve(reserveRequest(payer, MAX_AMOUNT_E8))).outcome, 'reserved');
        assertIncludes(await moneyOf(payer), { available: 0n, held: MAX_AMOUNT_E8 });
      });

      it('as a negative adjustment takes at most the available money', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        await ledger.reserve(reserveRequest(payer, 400n));
        const adjust = (amountE8: bigint) => ledger.credit({ accountId: payer.accountId, rid: newId(), amountE8 });
        assert.deepEqual(await adjust(-601n), { outcome: 'insufficient_balance' });
        assert.deepEqual(await adjust(-600n), { outcome: 'credited', postedE8: 400n });
        assertIncludes(await moneyOf(payer), { available: 0n, held: 400n });
      });
    });

    describe('Idempotency-Keys', () => {
      const intentOf = (changes: Partial<PaidIntent> = {}) => ({
        key: 'key-1',
        body: 'body-1',
        requestId: 'req_1',
        ...changes,
      });
      const keyed = (payer: Payer, changes: Partial<PaidIntent> = {}) =>
        reserveRequest(payer, 100n, { intent: intentOf(changes) });
      const recordOf = (intent: PaidIntent) => JSON.stringify({ requestId: intent.requestId, routing: { intent } });

      it('make a second reserve return the id of the first call while that call is open, and hold nothing', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        const first = keyed(payer);
        await ledger.reserve(first);
        assert.deepEqual(await ledger.reserve(keyed(payer, { requestId: 'req_2' })), {
          outcome: 'intent_open',
          requestId: 'req_1',
          rid: first.rid,
        });
        assert.equal((await moneyOf(payer)).held, 100n);
      });

      it('with another body cause a conflict, however the first call ended', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        const first = keyed(payer);
        await ledger.reserve(first);
        const conflict = { outcome: 'intent_conflict', requestId: 'req_1' };
        assert.deepEqual(await ledger.reserve(keyed(payer, { body: 'body-2' })), conflict);
        await ledger.release(closing(payer, first.rid));
        assert.deepEqual(await ledger.reserve(keyed(payer, { body: 'body-2' })), conflict);
      });

      it('make a second reserve return the charge of the first call, and hold nothing', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        const first = keyed(payer);
        await ledger.reserve(first);
        await ledger.settle({ ...closing(payer, first.rid), costE8: 30n });
        assert.deepEqual(await ledger.reserve(keyed(payer, { requestId: 'req_2' })), {
          outcome: 'intent_charged',
          requestId: 'req_1',
          rid: first.rid,
          chargedE8: 30n,
        });
        assert.deepEqual(await moneyOf(payer), {
          available: 970n,
          held: 0n,
          posted: 970n,
          keySpent: 30n,
          keyHeld: 0n,
        });
      });

      for (const [ending, close] of [
        ['released', (payer: Payer, rid: string) => ledger.release(closing(payer, rid))],
        ['settled with cost 0', (payer: Payer, rid: string) => ledger.settle({ ...closing(payer, rid), costE8: 0n })],
        ['expired', (payer: Payer, rid: string) => ledger.expire(payer, rid)],
      ] as const) {
        it(`are free for a new call after the first call is ${ending}`, async () => {
          const payer = await fundedPayer(ledger, 1_000n);
          const first = { ...keyed(payer), lifetimeMs: 0 };
          await ledger.reserve(first);
          await close(payer, first.rid);
          const second = keyed(payer, { requestId: 'req_2' });
          assert.deepEqual(await ledger.reserve(second), { outcome: 'reserved', heldE8: second.amountE8 });
          assert.deepEqual(await ledger.reserve(keyed(payer)), {
            outcome: 'intent_open',
            requestId: 'req_2',
            rid: second.rid,
          });
        });
      }

      it('of a repeated reserve with the same id get the same answer as a reserve without a key', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        const request = keyed(payer);
        await ledger.reserve(request);
        assert.deepEqual(await ledger.reserve(request), { outcome: 'reserved', heldE8: request.amountE8 });
        await ledger.settle({ ...closing(payer, request.rid), costE8: 30n });
        assert.deepEqual(await ledger.reserve(request), { outcome: 'closed_before' });
      });

      it('stay free after a refused reserve', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        const refused = await ledger.reserve({ ...keyed(payer), amountE8: 1_001n });
        assert.equal(refused.outcome, 'insufficient_balance');
        assert.equal((await ledger.reserve(keyed(payer, { body: 'body-2' }))).outcome, 'reserved');
      });

      it('are shared by all API keys of one account, and are separate for each account', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        const colleague = { ...payer, keyId: newId() };
        await ledger.setKey(keyRequest(colleague));
        await ledger.reserve(keyed(payer));
        assert.equal((await ledger.reserve(keyed(colleague))).outcome, 'intent_open');
        const stranger = await fundedPayer(ledger, 1_000n);
        assert.equal((await ledger.reserve(keyed(stranger))).outcome, 'reserved');
      });

      it('of a revoked API key or a frozen account reveal nothing', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        await ledger.reserve(keyed(payer));
        await ledger.setAccount(payer.accountId, 'frozen');
        assert.deepEqual(await ledger.reserve(keyed(payer)), { outcome: 'frozen' });
        await ledger.setKey(keyRequest(payer, { status: 'revoked' }));
        assert.deepEqual(await ledger.reserve(keyed(payer)), { outcome: 'revoked' });
      });

      it("above an account's maximum replace the oldest key whose call has ended", async () => {
        const payer = await fundedPayer(ledger, 1_000_000n);
        const take = async (index: number) => {
          const request = { ...keyed(payer, { key: `key-${index}` }), amountE8: 1n };
          assert.equal((await ledger.reserve(request)).outcome, 'reserved', String(index));
          return request.rid;
        };
        const rids: string[] = [];
        for (let index = 0; index < MAX_INTENTS; index += 1) rids.push(await take(index));
        for (const rid of rids.slice(1, 3)) await ledger.settle({ ...closing(payer, rid), costE8: 1n });
        await take(MAX_INTENTS);
        const outcomeOf = async (index: number) =>
          (await ledger.reserve(keyed(payer, { key: `key-${index}` }))).outcome;
        assert.equal(await outcomeOf(0), 'intent_open');
        assert.equal(await outcomeOf(2), 'intent_charged');
        await take(1);
        await ledger.settle({ ...closing(payer, rids[3] ?? ''), costE8: 1n });
        assert.equal(await outcomeOf(2), 'reserved');
      }).timeout(60_000);

      it("above an account's maximum are refused while the calls of the oldest are all open, except for a late settle", async () => {
        const payer = await fundedPayer(ledger, 1_000_000n);
        for (let index = 0; index < MAX_INTENTS; index += 1)
          await ledger.reserve({ ...keyed(payer, { key: `key-${index}` }), amountE8: 1n });
        const one = keyed(payer, { key: 'one more' });
        assert.deepEqual(await ledger.reserve(one), { outcome: 'too_many_intents' });
        assert.equal((await moneyOf(payer)).held, BigInt(MAX_INTENTS));
        const record = recordOf(intentOf({ key: 'late' }));
        await ledger.settle({ ...payer, rid: newId(), costE8: 30n, record, isLate: true });
        assert.equal((await ledger.reserve(keyed(payer, { key: 'late' }))).outcome, 'intent_charged');
      }).timeout(60_000);

      it('are restored by a recovery together with the charged calls', async () => {
        const payer = await fundedPayer(ledger, 0n);
        const closed = { rid: newId(), kind: 'charge', keyId: payer.keyId, amountE8: -30n, shortfallE8: 0n } as const;
        await ledger.restore([
          {
            accountId: payer.accountId,
            status: 'active',
            postedE8: 970n,
            seq: 5,
            keys: [{ ...keyRequest(payer), spending: spentInAll(30n) }],
            closed: [{ ...closed, intent: intentOf() }],
            spending: NO_SPENDING,
            scopes: [],
            open: [],
          },
        ]);
        assert.deepEqual(await ledger.reserve(keyed(payer, { requestId: 'req_2' })), {
          outcome: 'intent_charged',
          requestId: 'req_1',
          rid: closed.rid,
          chargedE8: 30n,
        });
      });

      it('of a late settle are recorded, so that a repeated call is not charged again', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        const rid = newId();
        const record = recordOf(intentOf());
        await ledger.settle({ ...payer, rid, costE8: 30n, record, isLate: true });
        const repeated = await ledger.reserve(keyed(payer, { requestId: 'req_2' }));
        assertIncludes(repeated, { outcome: 'intent_charged', rid, requestId: 'req_1', chargedE8: 30n });
      });

      for (const [how, end, shortfallE8] of [
        ['is open', undefined, 30n],
        ['was charged', (request: TestReserve) => ({ ...request, costE8: 20n }), 30n],
        ['ended with charge 0', (request: TestReserve) => ({ ...request, costE8: 0n }), 0n],
      ] as const) {
        it(`make a late settle charge ${shortfallE8 > 0n ? 'nothing' : 'its cost'} if a second call ${how}`, async () => {
          const payer = await fundedPayer(ledger, 1_000n);
          const second = keyed(payer, { requestId: 'req_2' });
          await ledger.reserve(second);
          if (end !== undefined) await ledger.settle(end(second));
          const late = { ...payer, rid: newId(), costE8: 30n, record: recordOf(intentOf()), isLate: true };
          const settled = { outcome: 'settled', chargedE8: 30n - shortfallE8, shortfallE8 };
          assert.deepEqual(await ledger.settle(late), settled);
          assert.deepEqual(await ledger.settle(late), settled);
        });
      }
    });

    describe('API keys in the ledger', () => {
      it('are found by their hash, and an unknown hash is reported as unknown', async () => {
        const payer = await fundedPayer(ledger, 0n);
        assert.deepEqual(await ledger.findKey(hashOf(payer)), { outcome: 'found', ...payer });
        assert.deepEqual(await ledger.findKey('0'.repeat(64)), { outcome: 'unknown' });
      });

      it('keep their newer settings when an older change is repeated late', async () => {
        const payer = await fundedPayer(ledger, 0n);
        await ledger.setKey(keyRequest(payer, { status: 'revoked', settings: settingsOf({ rev: 2 }) }));
        await ledger.setKey(keyRequest(payer, { status: 'active', settings: settingsOf({ rev: 1 }), limitE8: 5n }));
        assertIncludes(await ledger.readKey(payer), { status: 'revoked', limitE8: undefined });
        assert.deepEqual(await ledger.findKey(hashOf(payer)), { outcome: 'unknown' });
      });

      it('are found only by their current and previous secret, and not at all after revocation', async () => {
        const payer = await fundedPayer(ledger, 0n);
        const hashes = [
          hashOf(payer),
          ...['b', 'c', 'd'].map((each) => hashOf({ ...payer, keyId: payer.keyId + each })),
        ];
        const found = async () => {
          const outcomes = await Promise.all(hashes.map((hash) => ledger.findKey(hash)));
          return outcomes.map(({ outcome }) => outcome);
        };
        const previousUntilMs = Date.now() + 60_000;
        for (let rev = 1; rev <= 3; rev += 1) {
          const [previous = '', current = ''] = hashes.slice(rev - 1);
          const access = { secrets: { current, previous, previousUntilMs } };
          await ledger.setKey({ ...keyRequest(payer, { settings: settingsOf({ rev, access }) }), hash: current });
          assert.deepEqual(
            await found(),
            hashes.map((_, at) => (at === rev || at === rev - 1 ? 'found' : 'unknown')),
          );
        }
        const { settings } = (await ledger.readKey(payer)) ?? {};
        const revoked = keyRequest(payer, { status: 'revoked', settings: settingsOf({ ...settings, rev: 4 }) });
        await ledger.setKey({ ...revoked, hash: hashes[3] ?? '' });
        assert.deepEqual(await found(), ['unknown', 'unknown', 'unknown', 'unknown']);
      });

      it('keep their spent and held money when their settings change, and may lose their limit', async () => {
        const payer = await fundedPayer(ledger, 1_000n, 500n);
        const request = reserveRequest(payer, 100n);
        await ledger.reserve(request);
        await ledger.settle({ ...closing(payer, request.rid), costE8: 60n });
        await ledger.reserve(reserveRequest(payer, 100n));
        await ledger.setKey(keyRequest(payer, { settings: settingsOf({ rev: 1, allowedModels: [] }) }));
        assert.deepEqual(await ledger.readKey(payer), {
          status: 'active',
          spentE8: 60n,
          heldE8: 100n,
          settings: settingsOf({ rev: 1, allowedModels: [] }),
        });
      });

      it('are not visible to another account', async () => {
        const payer = await fundedPayer(ledger, 0n);
        const stranger = { accountId: newId(), keyId: payer.keyId };
        assert.equal(await ledger.readKey(stranger), undefined);
      });
    });

    it('throws and moves no money if an operation names a hold with the id of another key', async () => {
      const payer = await fundedPayer(ledger, 1_000n);
      const other = { ...payer, keyId: newId() };
      await ledger.setKey(keyRequest(other));
      const request = reserveRequest(payer, 400n, { lifetimeMs: 0 });
      await ledger.reserve(request);
      const { rid } = request;
      const wrong = [
        ledger.reserve({ ...request, ...other }),
        ledger.settle({ ...closing(other, rid), costE8: 1n }),
        ledger.release(closing(other, rid)),
        ledger.renew({ ...other, rid, lifetimeMs: 1 }),
        ledger.roll({ ...closing(other, rid), costE8: 1n, next: { rid: newId(), amountE8: 1n } }),
        ledger.roll({ ...closing(other, newId()), costE8: 1n, next: { rid, amountE8: 1n } }),
        ledger.expire(other, rid),
        ledger.credit({ accountId: payer.accountId, rid, amountE8: 1n }),
      ];
      for (const error of await rejections(wrong)) assert.ok(error instanceof WrongPayer);
      assertIncludes(await moneyOf(payer), { available: 600n, held: 400n, keyHeld: 400n });
    });

    it('refuses every operation as not ready before it is opened', async () => {
      const closed = await make();
      const payer = newPayer();
      assert.equal(await closed.isReady(), false);
      const answers = await Promise.all([
        closed.findKey(hashOf(payer)),
        closed.reserve(reserveRequest(payer, 1n)),
        closed.settle({ ...closing(payer, newId()), costE8: 1n }),
        closed.release(closing(payer, newId())),
        closed.renew({ ...payer, rid: newId(), lifetimeMs: 1 }),
        closed.roll({ ...closing(payer, newId()), costE8: 1n, next: { rid: newId(), amountE8: 1n } }),
        closed.expire(payer, newId()),
        closed.expire(payer, `a ${payer.accountId}`),
        closed.credit({ accountId: payer.accountId, rid: newId(), amountE8: 1n }),
      ]);
      assert.deepEqual(new Set(answers.map(({ outcome }) => outcome)), new Set(['not_ready']));
      const operations = [
        closed.setAccount(payer.accountId, 'active'),
        closed.setKey(keyRequest(payer)),
        closed.readAccount(payer.accountId),
        closed.readKey(payer),
        closed.inspect(shardOf(payer.accountId), [payer.accountId], [`k:${payer.keyId}`]),
      ];
      for (const error of await rejections(operations)) assert.ok(error instanceof LedgerUnavailable);
      await closed.open();
      assert.equal(await closed.isReady(), true);
      assert.deepEqual(await closed.findKey(hashOf(payer)), { outcome: 'unknown' });
      await closed.close();
    });

    it('inspects accounts, keys and the holds of these accounts, and no others of their shard', async () => {
      const payer = await fundedPayer(ledger, 1_000n);
      const shard = shardOf(payer.accountId);
      let other = newPayer();
      while (shardOf(other.accountId) !== shard) other = newPayer();
      await ledger.setAccount(other.accountId, 'active');
      await ledger.setKey(keyRequest(other));
      await ledger.credit({ accountId: other.accountId, rid: newId(), amountE8: 500n });
      const hold = reserveRequest(payer, 400n);
      await ledger.reserve(hold);
      await ledger.reserve(reserveRequest(other, 100n));
      const seen = await ledger.inspect(shard, [payer.accountId], [`k:${payer.keyId}`]);
      assert.deepEqual([...seen.accounts.keys()], [payer.accountId]);
      assertIncludes(seen.accounts.get(payer.accountId), { availableE8: 600n, heldE8: 400n, postedE8: 1_000n, seq: 1 });
      assertIncludes(seen.scopes.get(`k:${payer.keyId}`), { spentE8: 0n, heldE8: 400n });
      const [first, ...others] = seen.holds;
      assertIncludes(first, { rid: hold.rid, ...payer, amountE8: 400n, ofCall: true });
      assert.deepEqual(others, []);
      const left = (first?.deadlineMs ?? 0) - seen.nowMs;
      assert.ok(left > 60_000 && left <= 120_000, String(left));
    });

    it('returns undefined for an account that does not exist', async () => {
      assert.equal(await ledger.readAccount(newId()), undefined);
      assert.equal(await ledger.readKey(newPayer()), undefined);
    });

    it('reads its outbox from the oldest entry, and deletes only trimmed entries', async () => {
      const payer = await fundedPayer(ledger, 1n);
      for (let each = 0; each < 139; each++) {
        await ledger.credit({ accountId: payer.accountId, rid: newId(), amountE8: 1n });
      }
      const shard = shardOf(payer.accountId);
      const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => from + at);
      for (const limit of [3, 64, 128, 135]) {
        const head = (await ledger.readOutbox([shard], limit)).get(shard) ?? [];
        assert.deepEqual(
          head.map(({ seq }) => seq),
          numbers(1, limit),
        );
      }
      const head = (await ledger.readOutbox([shard], 135)).get(shard) ?? [];
      await ledger.trimOutbox(shard, head);
      await ledger.trimOutbox(shard, head);
      assert.deepEqual(
        (await outboxOf(payer)).map(({ seq }) => seq),
        numbers(136, 140),
      );
      await ledger.trimOutbox(shard, await outboxOf(payer));
      assert.equal((await ledger.readOutbox([shard], 3)).size, 0);
    });

    describe('a restore', () => {
      it('writes a missing account with its keys, its index and its recently closed calls', async () => {
        const recovered = await make();
        const payer = newPayer();
        const [charged, released, expired, credited] = [newId(), newId(), newId(), newId()] as const;
        await recovered.restore([
          {
            accountId: payer.accountId,
            status: 'active',
            postedE8: 900n,
            seq: 12,
            keys: [
              { ...keyRequest(payer, { limitE8: 500n, settings: settingsOf({ rev: 4 }) }), spending: spentInAll(100n) },
            ],
            closed: [
              { rid: charged, kind: 'charge', keyId: payer.keyId, amountE8: -70n, shortfallE8: 3n },
              { rid: released, kind: 'release', keyId: payer.keyId, amountE8: 0n, shortfallE8: 0n },
              { rid: expired, kind: 'expire', keyId: payer.keyId, amountE8: 0n, shortfallE8: 0n },
              { rid: credited, kind: 'credit', keyId: undefined, amountE8: 10n, shortfallE8: 0n },
            ],
            spending: NO_SPENDING,
            scopes: [],
            open: [],
          },
        ]);
        await recovered.open();
        assert.deepEqual(await recovered.findKey(hashOf(payer)), { outcome: 'found', ...payer });
        assert.deepEqual(await recovered.readAccount(payer.accountId), {
          status: 'active',
          availableE8: 900n,
          heldE8: 0n,
          postedE8: 900n,
          seq: 12,
        });
        assert.deepEqual(await recovered.readKey(payer), {
          status: 'active',
          spentE8: 100n,
          heldE8: 0n,
          limitE8: 500n,
          settings: settingsOf({ rev: 4 }),
        });
        assert.deepEqual(await recovered.settle({ ...closing(payer, charged), costE8: 1n }), {
          outcome: 'settled',
          chargedE8: 70n,
          shortfallE8: 3n,
        });
        assert.deepEqual(await recovered.settle({ ...closing(payer, released), costE8: 1n }), { outcome: 'released' });
        assert.deepEqual(await recovered.settle({ ...closing(payer, expired), costE8: 1n }), { outcome: 'expired' });
        assert.deepEqual(await recovered.credit({ accountId: payer.accountId, rid: credited, amountE8: 10n }), {
          outcome: 'credited',
          postedE8: 900n,
        });
        await recovered.close();
      });

      it("keeps the money of an account whose `seq` is not below the snapshot's, but takes the snapshot's status and settings", async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        const [revoked, newer, missing] = [1, 2, 3].map(() => ({ ...payer, keyId: newId() })) as [Payer, Payer, Payer];
        const limits = { limitE8: 600n, dailyLimitE8: 500n, callsPerMinute: 9 };
        await ledger.setKey(keyRequest(revoked, { ...limits, settings: settingsOf({ rev: 1 }) }));
        await ledger.setKey(keyRequest(newer, { settings: settingsOf({ rev: 5 }) }));
        await ledger.reserve(reserveRequest(payer, 100n));
        await ledger.reserve(reserveRequest(revoked, 50n, { keyRev: 1 }));
        const settings = settingsOf({ rev: 2, name: 'another name' });
        const keys = [
          keyRequest(payer, { status: 'revoked' }),
          keyRequest(revoked, { status: 'revoked', tokensPerMinute: 7, settings }),
          keyRequest(newer, { limitE8: 1n, settings: settingsOf({ rev: 4 }) }),
          keyRequest(missing),
        ];
        await ledger.restore([
          {
            accountId: payer.accountId,
            status: 'frozen',
            postedE8: 5n,
            seq: 1,
            keys: keys.map((key) => ({ ...key, spending: spentInAll(7n) })),
            closed: [],
            spending: NO_SPENDING,
            scopes: [],
            open: [{ ...payer, rid: newId(), amountE8: 5n, scopes: '' }],
          },
        ]);
        assert.deepEqual(await ledger.readAccount(payer.accountId), {
          status: 'frozen',
          availableE8: 850n,
          heldE8: 150n,
          postedE8: 1_000n,
          seq: 1,
        });
        assertIncludes(await ledger.readKey(payer), { status: 'active', spentE8: 0n, heldE8: 100n });
        assert.deepEqual(await ledger.readKey(revoked), {
          status: 'revoked',
          spentE8: 0n,
          heldE8: 50n,
          tokensPerMinute: 7,
          settings,
        });
        assertIncludes(await ledger.readKey(newer), { limitE8: undefined, settings: settingsOf({ rev: 5 }) });
        assertIncludes(await ledger.readKey(missing), { spentE8: 7n, heldE8: 0n });
      });

      it("keeps the listed holds of an account whose `seq` is below the snapshot's, as far as its balance covers them", async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        const other = { ...payer, keyId: newId() };
        const [first, second] = [reserveRequest(payer, 500n, { lifetimeMs: undefined }), newId()];
        await ledger.reserve(first);
        const open = [
          { ...payer, rid: first.rid, amountE8: 500n, scopes: '' },
          { ...other, rid: second, amountE8: 400n, scopes: '' },
        ];
        const keys = [payer, other].map((each) => ({ ...keyRequest(each), spending: spentInAll(100n) }));
        const snapshot = {
          ...NOTHING_SPENT,
          accountId: payer.accountId,
          status: 'active',
          postedE8: 800n,
          seq: 2,
        } as const;
        await ledger.restore([{ ...snapshot, keys, closed: [], open }]);
        assert.deepEqual(await moneyOf(payer), {
          available: 0n,
          held: 800n,
          posted: 800n,
          keySpent: 100n,
          keyHeld: 500n,
        });
        assert.equal((await ledger.readKey(other))?.heldE8, 300n);
        assert.deepEqual(await ledger.expire(payer, first.rid), { outcome: 'not_due' });
        const settled = await ledger.settle({ ...closing(other, second), costE8: 1n });
        assert.deepEqual(settled, { outcome: 'settled', chargedE8: 1n, shortfallE8: 0n });
        assert.equal((await ledger.release(closing(payer, first.rid))).outcome, 'released');
        assertIncludes(await moneyOf(payer), { available: 799n, held: 0n });
      });

      it("drops the holds of an account whose `seq` is below the snapshot's a second time; none of these holds is overdue", async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        const [dropped, due] = [1, 2].map(() => reserveRequest(payer, 10n, { lifetimeMs: 0 })) as [
          TestReserve,
          TestReserve,
        ];
        const told = newId();
        const shard = shardOf(payer.accountId);
        const holds = async () => (await ledger.inspect(shard, [payer.accountId], [])).holds.map(({ rid }) => rid);
        const snapshot = {
          ...NOTHING_SPENT,
          accountId: payer.accountId,
          status: 'active',
          postedE8: 800n,
          keys: [],
          closed: [],
        } as const;
        await ledger.reserve(dropped);
        await ledger.restore([{ ...snapshot, seq: 2, open: [{ ...payer, rid: told, amountE8: 5n, scopes: '' }] }]);
        assert.deepEqual(await holds(), [told]);
        await ledger.reserve(due);
        assert.deepEqual(await ledger.due([shard], 1), [{ ...payer, rid: due.rid }]);
        await ledger.restore([{ ...snapshot, seq: 3, open: [] }]);
        assert.deepEqual(await holds(), []);
      });

      it("resets the limits per minute of an account whose `seq` is below the snapshot's", async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        const key = keyRequest(payer, { callsPerMinute: 1, settings: settingsOf({ rev: 1 }) });
        const ask = async () => (await ledger.reserve(reserveRequest(payer, 1n, { keyRev: 1, tokens: 1 }))).outcome;
        await ledger.setKey(key);
        assert.deepEqual([await ask(), await ask()], ['reserved', 'rate_limited']);
        const snapshot = {
          ...NOTHING_SPENT,
          accountId: payer.accountId,
          status: 'active',
          postedE8: 800n,
          seq: 2,
        } as const;
        await ledger.restore([{ ...snapshot, keys: [{ ...key, spending: NO_SPENDING }], closed: [], open: [] }]);
        assert.equal(await ask(), 'reserved');
      });

      it("drops the unlisted open holds of an account whose `seq` is below the snapshot's, and no holds of other accounts", async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        const request = reserveRequest(payer, 100n, { lifetimeMs: 0 });
        const lasting = reserveRequest(payer, 100n, { lifetimeMs: undefined });
        await ledger.reserve(request);
        await ledger.reserve(lasting);
        const snapshot = {
          ...NOTHING_SPENT,
          accountId: payer.accountId,
          status: 'active',
          postedE8: 800n,
          seq: 2,
        } as const;
        await ledger.restore([
          { ...snapshot, keys: [{ ...keyRequest(payer), spending: spentInAll(200n) }], closed: [], open: [] },
        ]);
        assert.deepEqual(await moneyOf(payer), {
          available: 800n,
          held: 0n,
          posted: 800n,
          keySpent: 200n,
          keyHeld: 0n,
        });
        assert.deepEqual(await ledger.expire(payer, request.rid), { outcome: 'not_due' });
        for (const { rid } of [request, lasting]) {
          assert.deepEqual(await ledger.settle({ ...closing(payer, rid), costE8: 1n }), {
            outcome: 'unknown_reservation',
          });
        }
      });
    });
  });
}
