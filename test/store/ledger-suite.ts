import { expect } from 'chai';
import { newId } from '../../core/ids';
import { type Ledger, LedgerUnavailable, type Payer, WrongPayer } from '../../core/ledger/ledger';
import { shardOf } from '../../core/ledger/shard';
import { MAX_AMOUNT_E8 } from '../../core/money';
import { fundedPayer, hashOf, keyRequest, newPayer, reserveRequest, settingsOf, usageRecord } from './ledger-fixture';

/** What both ledgers must do. `make` gives an empty ledger that has not been opened. */
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
    const closing = (payer: Payer, rid: string) => ({ ...payer, rid, record: JSON.stringify(usageRecord(payer)) });

    describe('reserve', () => {
      for (const [what, amountE8, outcome] of [
        ['nothing', 0n, 'reserved'],
        ['all there is', 1_000n, 'reserved'],
        ['one more than there is', 1_001n, 'insufficient_balance'],
      ] as const) {
        it(`of ${what} answers ${outcome}`, async () => {
          const payer = await fundedPayer(ledger, 1_000n);
          const answer = await ledger.reserve(reserveRequest(payer, amountE8));
          expect(answer.outcome).equal(outcome);
          const held = outcome === 'reserved' ? amountE8 : 0n;
          expect(await moneyOf(payer)).deep.equal({
            ...{ available: 1_000n - held, held, posted: 1_000n, keySpent: 0n, keyHeld: held },
          });
        });
      }

      it('refused for lack of money says how much there is', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        await ledger.reserve(reserveRequest(payer, 400n));
        expect(await ledger.reserve(reserveRequest(payer, 601n))).deep.equal({
          ...{ outcome: 'insufficient_balance', availableE8: 600n },
        });
      });

      it('twice with one id holds once', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        const request = reserveRequest(payer, 300n);
        await ledger.reserve(request);
        expect(await ledger.reserve(request)).deep.equal({ outcome: 'reserved' });
        expect((await moneyOf(payer)).held).equal(300n);
      });

      it('with an id that is open with another amount is refused', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        const request = reserveRequest(payer, 300n);
        await ledger.reserve(request);
        const answer = await ledger.reserve({ ...request, amountE8: 301n });
        expect(answer).deep.equal({ outcome: 'exists_with_different_amount' });
        expect((await moneyOf(payer)).held).equal(300n);
      });

      it('again after its settlement, or after its expiry, says it is closed', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        const settled = reserveRequest(payer, 300n);
        await ledger.reserve(settled);
        await ledger.settle({ ...closing(payer, settled.rid), costE8: 1n });
        expect(await ledger.reserve(settled)).deep.equal({ outcome: 'closed_before' });
        const expired = reserveRequest(payer, 300n, { lifetimeMs: 0 });
        await ledger.reserve(expired);
        await ledger.expire(payer, expired.rid);
        expect(await ledger.reserve(expired)).deep.equal({ outcome: 'closed_before' });
        expect((await moneyOf(payer)).held).equal(0n);
      });

      it('again after its release is refused, and so is one that comes after the release of its unknown id', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        const released = reserveRequest(payer, 300n);
        await ledger.reserve(released);
        await ledger.release(closing(payer, released.rid));
        expect(await ledger.reserve(released)).deep.equal({ outcome: 'released_before' });
        const late = reserveRequest(payer, 300n);
        expect(await ledger.release(closing(payer, late.rid))).deep.equal({ outcome: 'tombstoned' });
        expect(await ledger.reserve(late)).deep.equal({ outcome: 'released_before' });
        expect((await moneyOf(payer)).available).equal(1_000n);
      });

      it('names what is wrong with account and key, in this order', async () => {
        const payer = newPayer();
        const ask = async () => (await ledger.reserve(reserveRequest(payer, 5n))).outcome;
        expect(await ask()).equal('unknown_account');
        await ledger.setAccount(payer.accountId, 'frozen');
        expect(await ask()).equal('frozen');
        await ledger.setAccount(payer.accountId, 'active');
        expect(await ask()).equal('unknown_key');
        await ledger.setKey(keyRequest(payer, { status: 'revoked', settings: settingsOf({ rev: 1 }) }));
        expect(await ask()).equal('revoked');
        await ledger.setKey(keyRequest(payer, { limitE8: 4n, settings: settingsOf({ rev: 2 }) }));
        expect(await ask()).equal('stale_key');
        expect((await ledger.reserve(reserveRequest(payer, 5n, { keyRev: 2 }))).outcome).equal('insufficient_balance');
        await ledger.credit({ accountId: payer.accountId, rid: newId(), amountE8: 5n });
        expect((await ledger.reserve(reserveRequest(payer, 5n, { keyRev: 2 }))).outcome).equal('key_limit_exceeded');
      });

      it('does not take the key of another account', async () => {
        const rich = await fundedPayer(ledger, 1_000n);
        const other = await fundedPayer(ledger, 1_000n);
        const answer = await ledger.reserve(reserveRequest({ ...rich, keyId: other.keyId }, 1n));
        expect(answer).deep.equal({ outcome: 'unknown_key' });
      });

      it('gives a node with older settings the newer ones', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        const settings = settingsOf({ rev: 3, name: 'renamed', allowedModels: ['model-a'] });
        await ledger.setKey(keyRequest(payer, { settings }));
        const request = reserveRequest(payer, 1n, { keyRev: 2 });
        expect(await ledger.reserve(request)).deep.equal({ outcome: 'stale_key', settings });
        expect(await ledger.reserve({ ...request, keyRev: 3 })).deep.equal({ outcome: 'reserved' });
      });

      it('keeps spent and held together within the limit of the key', async () => {
        const payer = await fundedPayer(ledger, 1_000n, 100n);
        const first = reserveRequest(payer, 40n);
        await ledger.reserve(first);
        await ledger.settle({ ...closing(payer, first.rid), costE8: 30n });
        await ledger.reserve(reserveRequest(payer, 20n));
        const refused = await ledger.reserve(reserveRequest(payer, 51n));
        expect(refused).deep.equal({ outcome: 'key_limit_exceeded', availableE8: 50n });
        expect(await ledger.reserve(reserveRequest(payer, 50n))).deep.equal({ outcome: 'reserved' });
      });

      it('says 0 is left when the limit was lowered below what is spent', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        const first = reserveRequest(payer, 40n);
        await ledger.reserve(first);
        await ledger.setKey(keyRequest(payer, { limitE8: 10n }));
        const refused = await ledger.reserve(reserveRequest(payer, 1n));
        expect(refused).deep.equal({ outcome: 'key_limit_exceeded', availableE8: 0n });
        expect(await ledger.reserve(reserveRequest(payer, 0n))).deep.equal({
          ...{ outcome: 'key_limit_exceeded', availableE8: 0n },
        });
      });

      it('200 times at once on money for 10 admits 10', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        const answers = await Promise.all(
          Array.from({ length: 200 }, () => ledger.reserve(reserveRequest(payer, 100n))),
        );
        expect(answers.filter(({ outcome }) => outcome === 'reserved')).length(10);
        expect(answers.filter(({ outcome }) => outcome === 'insufficient_balance')).length(190);
        expect(await moneyOf(payer)).include({ available: 0n, held: 1_000n });
      });

      it('of an amount that is not exact is a defect', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        expect(await rejection(ledger.reserve(reserveRequest(payer, MAX_AMOUNT_E8 + 1n)))).instanceOf(RangeError);
        expect(await rejection(ledger.reserve(reserveRequest(payer, -1n)))).instanceOf(RangeError);
      });
    });

    describe('settle', () => {
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
          expect(answer).deep.equal({ outcome: 'settled', chargedE8, shortfallE8 });
          const left = 1_000n - chargedE8;
          expect(await moneyOf(payer)).deep.equal({
            ...{ available: left, held: 0n, posted: left, keySpent: chargedE8, keyHeld: 0n },
          });
          const entry = (await outboxOf(payer)).at(-1);
          expect(entry).deep.include({ kind: 'charge', seq: 2, amountE8: -chargedE8, postedE8: left, shortfallE8 });
          expect(entry).deep.include({ ...payer, rid: request.rid, record: request.record });
        });
      }

      it('above the hold takes no more than the limit of the key leaves', async () => {
        const { payer, request } = await opened(1_000n, 400n, 450n);
        const answer = await ledger.settle({ ...request, costE8: 500n });
        expect(answer).deep.equal({ outcome: 'settled', chargedE8: 450n, shortfallE8: 50n });
        expect((await moneyOf(payer)).available).equal(550n);
      });

      it('above the hold never touches the hold of another call', async () => {
        const { payer, request } = await opened(1_000n, 400n);
        await ledger.reserve(reserveRequest(payer, 500n));
        const answer = await ledger.settle({ ...request, costE8: 700n });
        expect(answer).deep.equal({ outcome: 'settled', chargedE8: 500n, shortfallE8: 200n });
        expect(await moneyOf(payer)).include({ available: 0n, held: 500n });
      });

      it('100 times at once charges once, and each gets the same answer', async () => {
        const { payer, request } = await opened(1_000n, 400n);
        const answers = await Promise.all(
          Array.from({ length: 100 }, () => ledger.settle({ ...request, costE8: 1_100n })),
        );
        for (const answer of answers)
          expect(answer).deep.equal({ outcome: 'settled', chargedE8: 1_000n, shortfallE8: 100n });
        expect((await outboxOf(payer)).filter(({ kind }) => kind === 'charge')).length(1);
      });

      it('of an id nobody knows charges nothing', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        const answer = await ledger.settle({ ...closing(payer, newId()), costE8: 1n });
        expect(answer).deep.equal({ outcome: 'unknown_reservation' });
        expect(await moneyOf(payer)).include({ posted: 1_000n, keySpent: 0n });
      });

      it('after a release, or its tombstone, charges nothing', async () => {
        const { payer, request } = await opened(1_000n, 400n);
        await ledger.release(request);
        expect(await ledger.settle({ ...request, costE8: 1n })).deep.equal({ outcome: 'released' });
        const never = closing(payer, newId());
        await ledger.release(never);
        expect(await ledger.settle({ ...never, costE8: 1n })).deep.equal({ outcome: 'released' });
        expect(await moneyOf(payer)).include({ posted: 1_000n, keySpent: 0n });
      });

      it('after the deadline but before the expiry is taken; after the expiry it is not', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        const [first, second] = [0, 1].map(() => reserveRequest(payer, 400n, { lifetimeMs: 0 }));
        if (first === undefined || second === undefined) throw new Error('two requests were made');
        await ledger.reserve(first);
        await ledger.reserve(second);
        const answer = await ledger.settle({ ...closing(payer, first.rid), costE8: 7n });
        expect(answer).deep.equal({ outcome: 'settled', chargedE8: 7n, shortfallE8: 0n });
        await ledger.expire(payer, second.rid);
        expect(await ledger.settle({ ...closing(payer, second.rid), costE8: 7n })).deep.equal({ outcome: 'expired' });
        expect(await moneyOf(payer)).include({ posted: 993n, held: 0n, keySpent: 7n });
      });

      it('against expire, 1,000 pairs: each reservation is closed once', async () => {
        const payer = await fundedPayer(ledger, 1_000_000n);
        const requests = Array.from({ length: 1_000 }, () => reserveRequest(payer, 10n, { lifetimeMs: 0 }));
        await Promise.all(requests.map((request) => ledger.reserve(request)));
        const pairs = await Promise.all(
          requests.map(({ rid }, index) => {
            const settle = () => ledger.settle({ ...closing(payer, rid), costE8: 3n });
            const expire = () => ledger.expire(payer, rid);
            return index % 2 === 0 ? Promise.all([settle(), expire()]) : Promise.all([expire(), settle()]);
          }),
        );
        for (const [one, two] of pairs) {
          const words = [one.outcome, two.outcome].join(' ');
          expect(words).oneOf(['settled not_due', 'expired expired']);
        }
        const settled = BigInt(pairs.filter(([one]) => one.outcome === 'settled').length);
        expect(settled).equal(500n);
        expect(await moneyOf(payer)).include({ posted: 1_000_000n - settled * 3n, held: 0n, keyHeld: 0n });
        const shard = shardOf(payer.accountId);
        const closed = ((await ledger.readOutbox([shard], 3_000)).get(shard) ?? []).slice(1);
        expect(new Set(closed.map(({ rid }) => rid)).size).equal(1_000);
        expect(closed).length(1_000);
        expect(closed.map(({ seq }) => seq)).deep.equal(closed.map((_, index) => index + 2));
      });
    });

    describe('release', () => {
      for (const amountE8 of [0n, 400n, 1_000n]) {
        it(`gives a hold of ${amountE8} back and leaves one entry`, async () => {
          const payer = await fundedPayer(ledger, 1_000n);
          const { rid } = reserveRequest(payer, amountE8);
          await ledger.reserve(reserveRequest(payer, amountE8, { rid }));
          expect(await ledger.release(closing(payer, rid))).deep.equal({ outcome: 'released' });
          expect(await ledger.release(closing(payer, rid))).deep.equal({ outcome: 'released' });
          expect(await moneyOf(payer)).deep.equal({
            ...{ available: 1_000n, held: 0n, posted: 1_000n, keySpent: 0n, keyHeld: 0n },
          });
          const [, entry, ...others] = await outboxOf(payer);
          expect(entry).include({ kind: 'release', rid, seq: 2, amountE8: 0n, postedE8: 1_000n });
          expect(others).empty;
        });
      }

      it('of an unknown id leaves a tombstone and no entry, however often', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        const request = closing(payer, newId());
        expect(await ledger.release(request)).deep.equal({ outcome: 'tombstoned' });
        expect(await ledger.release(request)).deep.equal({ outcome: 'tombstoned' });
        expect(await outboxOf(payer)).length(1);
      });

      it('of what is settled or expired says so and changes nothing', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        const settled = reserveRequest(payer, 400n);
        await ledger.reserve(settled);
        await ledger.settle({ ...closing(payer, settled.rid), costE8: 100n });
        expect(await ledger.release(closing(payer, settled.rid))).deep.equal({ outcome: 'settled' });
        const expired = reserveRequest(payer, 400n, { lifetimeMs: 0 });
        await ledger.reserve(expired);
        await ledger.expire(payer, expired.rid);
        expect(await ledger.release(closing(payer, expired.rid))).deep.equal({ outcome: 'expired' });
        expect(await moneyOf(payer)).include({ available: 900n, held: 0n });
        expect(await outboxOf(payer)).length(3);
      });

      it('without a record, as sandboxes do, leaves an entry without one', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        const request = reserveRequest(payer, 1n, { record: '', lifetimeMs: undefined });
        await ledger.reserve(request);
        await ledger.release({ ...payer, rid: request.rid, record: '' });
        expect((await outboxOf(payer)).at(-1)?.record).equal(undefined);
      });
    });

    describe('renew and expire', () => {
      it('expire gives back only what is due, once, with the record of the reserve', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        const due = reserveRequest(payer, 400n, { lifetimeMs: 0 });
        const open = reserveRequest(payer, 100n);
        await ledger.reserve(due);
        await ledger.reserve(open);
        expect(await ledger.due(shardOf(payer.accountId), 10)).deep.equal([{ ...payer, rid: due.rid }]);
        expect(await ledger.expire(payer, open.rid)).deep.equal({ outcome: 'not_due' });
        expect(await ledger.expire(payer, newId())).deep.equal({ outcome: 'not_due' });
        expect(await ledger.expire(payer, due.rid)).deep.equal({ outcome: 'expired' });
        expect(await ledger.expire(payer, due.rid)).deep.equal({ outcome: 'expired' });
        expect(await ledger.due(shardOf(payer.accountId), 10)).empty;
        expect(await moneyOf(payer)).include({ available: 900n, held: 100n, keyHeld: 100n });
        const [, entry, ...others] = await outboxOf(payer);
        expect(entry).include({ kind: 'expire', rid: due.rid, amountE8: 0n, record: due.record });
        expect(others).empty;
      });

      it('an open reservation is renewed, also after its deadline; a closed one is not', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        const request = reserveRequest(payer, 400n, { lifetimeMs: 0 });
        await ledger.reserve(request);
        const renewal = { ...payer, rid: request.rid, lifetimeMs: 60_000 };
        expect(await ledger.renew(renewal)).deep.equal({ outcome: 'renewed' });
        expect(await ledger.expire(payer, request.rid)).deep.equal({ outcome: 'not_due' });
        await ledger.settle({ ...closing(payer, request.rid), costE8: 0n });
        expect(await ledger.renew(renewal)).deep.equal({ outcome: 'not_open' });
        expect(await ledger.renew({ ...renewal, rid: newId() })).deep.equal({ outcome: 'not_open' });
      });

      it('a hold without a deadline is never due, also after a renewal', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        const request = reserveRequest(payer, 400n, { lifetimeMs: undefined });
        await ledger.reserve(request);
        await ledger.renew({ ...payer, rid: request.rid, lifetimeMs: 0 });
        expect(await ledger.due(shardOf(payer.accountId), 10)).empty;
        expect(await ledger.expire(payer, request.rid)).deep.equal({ outcome: 'not_due' });
      });
    });

    describe('credit', () => {
      it('adds once, whatever is repeated', async () => {
        const payer = await fundedPayer(ledger, 0n);
        const request = { accountId: payer.accountId, rid: newId(), amountE8: 70n };
        const answers = await Promise.all(Array.from({ length: 20 }, () => ledger.credit(request)));
        for (const answer of answers) expect(answer).deep.equal({ outcome: 'credited', postedE8: 70n });
        expect(await outboxOf(payer)).length(1);
        expect((await outboxOf(payer))[0]).include({ kind: 'credit', keyId: undefined, seq: 1, amountE8: 70n });
      });

      it('of an unknown account is refused', async () => {
        const answer = await ledger.credit({ accountId: newId(), rid: newId(), amountE8: 1n });
        expect(answer).deep.equal({ outcome: 'unknown_account' });
      });

      it('reaches the largest exact balance and not one more', async () => {
        const payer = await fundedPayer(ledger, MAX_AMOUNT_E8 - 1n);
        const credit = (amountE8: bigint) => ledger.credit({ accountId: payer.accountId, rid: newId(), amountE8 });
        expect((await credit(2n)).outcome).equal('above_maximum');
        expect(await credit(1n)).deep.equal({ outcome: 'credited', postedE8: MAX_AMOUNT_E8 });
        expect((await credit(1n)).outcome).equal('above_maximum');
        expect((await ledger.reserve(reserveRequest(payer, MAX_AMOUNT_E8))).outcome).equal('reserved');
        expect(await moneyOf(payer)).include({ available: 0n, held: MAX_AMOUNT_E8 });
      });

      it('as an adjustment takes at most what is available', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        await ledger.reserve(reserveRequest(payer, 400n));
        const adjust = (amountE8: bigint) => ledger.credit({ accountId: payer.accountId, rid: newId(), amountE8 });
        expect(await adjust(-601n)).deep.equal({ outcome: 'insufficient_balance' });
        expect(await adjust(-600n)).deep.equal({ outcome: 'credited', postedE8: 400n });
        expect(await moneyOf(payer)).include({ available: 0n, held: 400n });
      });
    });

    describe('keys', () => {
      it('are found by their hash; an unknown one is surely unknown', async () => {
        const payer = await fundedPayer(ledger, 0n);
        expect(await ledger.findKey(hashOf(payer))).deep.equal({ outcome: 'found', ...payer });
        expect(await ledger.findKey('0'.repeat(64))).deep.equal({ outcome: 'unknown' });
      });

      it('a late repetition of an older change undoes nothing', async () => {
        const payer = await fundedPayer(ledger, 0n);
        await ledger.setKey(keyRequest(payer, { status: 'revoked', settings: settingsOf({ rev: 2 }) }));
        await ledger.setKey(keyRequest(payer, { status: 'active', settings: settingsOf({ rev: 1 }), limitE8: 5n }));
        expect(await ledger.readKey(payer)).deep.include({ status: 'revoked', limitE8: undefined });
      });

      it('a change keeps what is spent and held, and takes a limit away', async () => {
        const payer = await fundedPayer(ledger, 1_000n, 500n);
        const request = reserveRequest(payer, 100n);
        await ledger.reserve(request);
        await ledger.settle({ ...closing(payer, request.rid), costE8: 60n });
        await ledger.reserve(reserveRequest(payer, 100n));
        await ledger.setKey(keyRequest(payer, { settings: settingsOf({ rev: 1, allowedModels: [] }) }));
        expect(await ledger.readKey(payer)).deep.equal({
          status: 'active',
          spentE8: 60n,
          heldE8: 100n,
          limitE8: undefined,
          settings: settingsOf({ rev: 1, allowedModels: [] }),
        });
      });

      it('of another account are not shown and not changed', async () => {
        const payer = await fundedPayer(ledger, 0n);
        const stranger = { accountId: newId(), keyId: payer.keyId };
        expect(await ledger.readKey(stranger)).equal(undefined);
      });
    });

    it('an id that is used for two keys is a defect and moves nothing', async () => {
      const payer = await fundedPayer(ledger, 1_000n);
      const other = { ...payer, keyId: newId() };
      await ledger.setKey(keyRequest(other));
      const request = reserveRequest(payer, 400n, { lifetimeMs: 0 });
      await ledger.reserve(request);
      const { rid } = request;
      for (const wrong of [
        ledger.reserve({ ...request, ...other }),
        ledger.settle({ ...closing(other, rid), costE8: 1n }),
        ledger.release(closing(other, rid)),
        ledger.renew({ ...other, rid, lifetimeMs: 1 }),
        ledger.expire(other, rid),
        ledger.credit({ accountId: payer.accountId, rid, amountE8: 1n }),
      ]) {
        expect(await rejection(wrong)).instanceOf(WrongPayer);
      }
      expect(await moneyOf(payer)).include({ available: 600n, held: 400n, keyHeld: 400n });
    });

    it('before it is opened every operation says it is not ready', async () => {
      const closed = await make();
      const payer = newPayer();
      expect(await closed.isReady()).equal(false);
      const answers = await Promise.all([
        closed.findKey(hashOf(payer)),
        closed.reserve(reserveRequest(payer, 1n)),
        closed.settle({ ...closing(payer, newId()), costE8: 1n }),
        closed.release(closing(payer, newId())),
        closed.renew({ ...payer, rid: newId(), lifetimeMs: 1 }),
        closed.expire(payer, newId()),
        closed.credit({ accountId: payer.accountId, rid: newId(), amountE8: 1n }),
      ]);
      expect(new Set(answers.map(({ outcome }) => outcome))).deep.equal(new Set(['not_ready']));
      for (const operation of [
        closed.setAccount(payer.accountId, 'active'),
        closed.setKey(keyRequest(payer)),
        closed.readAccount(payer.accountId),
        closed.readKey(payer),
      ]) {
        expect(await rejection(operation)).instanceOf(LedgerUnavailable);
      }
      await closed.open();
      expect(await closed.isReady()).equal(true);
      expect(await closed.findKey(hashOf(payer))).deep.equal({ outcome: 'unknown' });
      await closed.close();
    });

    it('an account nobody made is undefined', async () => {
      expect(await ledger.readAccount(newId())).equal(undefined);
      expect(await ledger.readKey(newPayer())).equal(undefined);
    });

    it('the outbox is read from its head, in order, and forgets only what is trimmed', async () => {
      const payer = await fundedPayer(ledger, 1n);
      for (let each = 0; each < 4; each++) {
        await ledger.credit({ accountId: payer.accountId, rid: newId(), amountE8: 1n });
      }
      const shard = shardOf(payer.accountId);
      const head = (await ledger.readOutbox([shard], 3)).get(shard) ?? [];
      expect(head.map(({ seq }) => seq)).deep.equal([1, 2, 3]);
      await ledger.trimOutbox(shard, head);
      await ledger.trimOutbox(shard, head);
      expect((await outboxOf(payer)).map(({ seq }) => seq)).deep.equal([4, 5]);
      await ledger.trimOutbox(shard, await outboxOf(payer));
      expect((await ledger.readOutbox([shard], 3)).size).equal(0);
    });

    describe('restore', () => {
      it('writes an account that is absent, with keys, index and what was closed lately', async () => {
        const recovered = await make();
        const payer = newPayer();
        const [charged, released, expired, credited] = [newId(), newId(), newId(), newId()] as const;
        await recovered.restore([
          {
            accountId: payer.accountId,
            status: 'active',
            postedE8: 900n,
            seq: 12,
            keys: [{ ...keyRequest(payer, { limitE8: 500n, settings: settingsOf({ rev: 4 }) }), spentE8: 100n }],
            closed: [
              { rid: charged, kind: 'charge', keyId: payer.keyId, amountE8: -70n, shortfallE8: 3n },
              { rid: released, kind: 'release', keyId: payer.keyId, amountE8: 0n, shortfallE8: 0n },
              { rid: expired, kind: 'expire', keyId: payer.keyId, amountE8: 0n, shortfallE8: 0n },
              { rid: credited, kind: 'credit', keyId: undefined, amountE8: 10n, shortfallE8: 0n },
            ],
          },
        ]);
        await recovered.open();
        expect(await recovered.findKey(hashOf(payer))).deep.equal({ outcome: 'found', ...payer });
        expect(await recovered.readAccount(payer.accountId)).deep.equal({
          ...{ status: 'active', availableE8: 900n, heldE8: 0n, postedE8: 900n, seq: 12 },
        });
        expect(await recovered.readKey(payer)).deep.equal({
          ...{ status: 'active', spentE8: 100n, heldE8: 0n, limitE8: 500n, settings: settingsOf({ rev: 4 }) },
        });
        expect(await recovered.settle({ ...closing(payer, charged), costE8: 1n })).deep.equal({
          ...{ outcome: 'settled', chargedE8: 70n, shortfallE8: 3n },
        });
        expect(await recovered.settle({ ...closing(payer, released), costE8: 1n })).deep.equal({ outcome: 'released' });
        expect(await recovered.settle({ ...closing(payer, expired), costE8: 1n })).deep.equal({ outcome: 'expired' });
        expect(await recovered.credit({ accountId: payer.accountId, rid: credited, amountE8: 10n })).deep.equal({
          ...{ outcome: 'credited', postedE8: 900n },
        });
        await recovered.close();
      });

      it('leaves an account alone whose seq is not lower, but writes keys that are missing', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        const missing = { ...payer, keyId: newId() };
        await ledger.reserve(reserveRequest(payer, 100n));
        await ledger.restore([
          {
            accountId: payer.accountId,
            status: 'frozen',
            postedE8: 5n,
            seq: 1,
            keys: [
              { ...keyRequest(payer, { status: 'revoked' }), spentE8: 7n },
              { ...keyRequest(missing), spentE8: 9n },
            ],
            closed: [],
          },
        ]);
        expect(await ledger.readAccount(payer.accountId)).deep.equal({
          ...{ status: 'active', availableE8: 900n, heldE8: 100n, postedE8: 1_000n, seq: 1 },
        });
        expect(await ledger.readKey(payer)).include({ status: 'active', spentE8: 0n, heldE8: 100n });
        expect(await ledger.readKey(missing)).include({ spentE8: 9n });
      });

      it('of an account that is behind drops its open holds, and those of no other account', async () => {
        const payer = await fundedPayer(ledger, 1_000n);
        const request = reserveRequest(payer, 100n, { lifetimeMs: 0 });
        await ledger.reserve(request);
        const snapshot = { accountId: payer.accountId, status: 'active', postedE8: 800n, seq: 2 } as const;
        await ledger.restore([{ ...snapshot, keys: [{ ...keyRequest(payer), spentE8: 200n }], closed: [] }]);
        expect(await moneyOf(payer)).deep.equal({
          ...{ available: 800n, held: 0n, posted: 800n, keySpent: 200n, keyHeld: 0n },
        });
        expect(await ledger.expire(payer, request.rid)).deep.equal({ outcome: 'not_due' });
        expect(await ledger.settle({ ...closing(payer, request.rid), costE8: 1n })).deep.equal({
          ...{ outcome: 'unknown_reservation' },
        });
      });
    });
  });
}

async function rejection(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (error: unknown) => error,
  );
}
