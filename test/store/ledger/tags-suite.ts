import assert from 'node:assert/strict';
import { newId } from '../../../core/base/ids';
import { type Ledger, type Payer, TAG_READS } from '../../../core/ledger/ledger';
import type { SpendingLimits } from '../../../core/ledger/scopes';
import { shardOf } from '../../../core/ledger/shard';
import { rejection } from '../../support/rejection';
import { assertIncludes, fundedPayer, reserveRequest, TestTags, testTags } from './ledger-fixture';

/** The tests of tags as scopes of spending, which every ledger must pass. */
export function tagsSuite(ledgerOfTest: () => Ledger): void {
  describe('the tags of a call', () => {
    let ledger: Ledger;
    let payer: Payer;
    let postgres: TestTags;

    beforeEach(async () => {
      ledger = ledgerOfTest();
      payer = await fundedPayer(ledger, 1_000n);
      postgres = testTags.forget();
    });

    let revision = 0;
    const scopeOf = (tag: string) => `g:${payer.accountId}:${tag}`;
    /** Sets the limits of a tag's name, or those of a value, whose name has a limit then. */
    const limit = async (tag: string, limits: SpendingLimits, isLimited = true) => {
      const request = (which: string, its: SpendingLimits) => {
        const rev = ++revision;
        return ledger.setScope({
          accountId: payer.accountId,
          scope: scopeOf(which),
          name: which,
          rev,
          limits: its,
          isLimited,
        });
      };
      if (!tag.includes('=')) return request(tag, limits);
      postgres.limit(scopeOf(tag), limits, revision + 1);
      await request(tag, limits);
    };
    const hold = (amountE8: bigint, tags?: string, minE8?: bigint) =>
      reserveRequest(payer, amountE8, { keyRev: 999, tags, ...(minE8 !== undefined && { minE8 }) });
    const charge = async (costE8: bigint, tags: string) => {
      const request = hold(costE8, tags);
      assert.equal((await ledger.reserve(request)).outcome, 'reserved');
      await ledger.settle({ ...payer, rid: request.rid, costE8, record: request.record });
    };
    const sums = async (tag: string) => {
      const scope = await ledger.readScope(payer.accountId, scopeOf(tag));
      return scope && { held: scope.heldE8, spent: scope.spending.spentE8.total };
    };
    /** Writes the entries of the outbox to Postgres. */
    const ship = async () => {
      const shard = shardOf(payer.accountId);
      const entries = (await ledger.readOutbox([shard], 1_000)).get(shard) ?? [];
      postgres.write(entries);
      await ledger.trimOutbox(shard, entries);
    };
    const leave = () => ledger.expire({ ...payer, keyId: '' }, `g ${payer.accountId}`);

    it('count only if their name has a limit, and the scope of the value is made by a hold that succeeds', async () => {
      await charge(10n, 'customer=1 agent=a');
      assert.deepEqual([await sums('customer=1'), postgres.reads], [undefined, 0]);
      await limit('customer', { day: 100n });
      const request = hold(60n, 'agent=a customer=1');
      assert.deepEqual(await ledger.reserve(request), { outcome: 'reserved', heldE8: 60n });
      assert.deepEqual(await sums('customer=1'), { held: 60n, spent: 0n });
      assert.equal(await sums('agent=a'), undefined);
      await ledger.settle({ ...payer, rid: request.rid, costE8: 50n, record: request.record });
      assert.deepEqual(await sums('customer=1'), { held: 0n, spent: 50n });
      const [entry] = [...(await ledger.readOutbox([shardOf(payer.accountId)], 99)).values()].flat().slice(-1);
      assert.equal(entry?.scopes, scopeOf('customer=1'));
    });

    it('refuse a call beyond the limit that each value of the name has, and leave nothing then', async () => {
      await limit('customer', { day: 100n, week: 500n });
      await charge(40n, 'customer=1');
      const answer = await ledger.reserve(hold(61n, 'customer=1'));
      assertIncludes(answer, { outcome: 'limit_exceeded', availableE8: 60n });
      assertIncludes('limit' in answer ? answer.limit : undefined, {
        ...{ kind: 'tag', name: 'customer=1', window: 'day', limitE8: 100n, spentE8: 40n, heldE8: 0n },
        resetsAtMs: (Math.floor(Date.now() / 86_400_000) + 1) * 86_400_000,
      });
      assertIncludes(await ledger.reserve(hold(101n, 'customer=2')), { outcome: 'limit_exceeded', availableE8: 100n });
      assert.equal(await sums('customer=2'), undefined);
      assert.deepEqual(await ledger.listTags(payer.accountId), [scopeOf('customer=1')]);
      assertIncludes(await ledger.reserve(hold(60n, 'customer=2')), { outcome: 'reserved' });
    });

    it('have the limit of the value before that of the name, in each window', async () => {
      await limit('customer', { day: 100n, month: 300n });
      await charge(10n, 'customer=1');
      await limit('customer=1', { day: 200n });
      assertIncludes(await ledger.reserve(hold(191n, 'customer=1')), { outcome: 'limit_exceeded', availableE8: 190n });
      await limit('customer=new', { total: 30n });
      assertIncludes(await ledger.reserve(hold(31n, 'customer=new')), { outcome: 'limit_exceeded', availableE8: 30n });
      await limit('customer=1', { day: 900n });
      const answer = await ledger.reserve(hold(291n, 'customer=1'));
      assertIncludes(answer, { outcome: 'limit_exceeded', availableE8: 290n });
      assertIncludes('limit' in answer ? answer.limit : undefined, { window: 'month' });
      await limit('customer=1', {});
      assertIncludes(await ledger.reserve(hold(91n, 'customer=1')), { outcome: 'limit_exceeded', availableE8: 90n });
      await limit('customer', { day: 50n });
      assertIncludes(await ledger.reserve(hold(41n, 'customer=1')), { outcome: 'limit_exceeded', availableE8: 40n });
    });

    it('count no more once neither the name nor a value has a limit, and resume what was counted', async () => {
      await limit('customer', { total: 100n });
      await charge(70n, 'customer=1');
      await limit('customer', {}, false);
      await charge(200n, 'customer=1');
      assert.deepEqual(await sums('customer=1'), { held: 0n, spent: 70n });
      await limit('customer', { total: 100n });
      assertIncludes(await ledger.reserve(hold(31n, 'customer=1')), { outcome: 'limit_exceeded', availableE8: 30n });
    });

    it('are charged by the hold that named them, however a call ends, and are followed by a roll', async () => {
      await limit('customer', { total: 100n });
      const ends = { settled: hold(20n, 'customer=1'), released: hold(20n, 'customer=1') };
      const expired = reserveRequest(payer, 20n, { keyRev: 999, tags: 'customer=1', lifetimeMs: 0 });
      const sandbox = reserveRequest(payer, 20n, { keyRev: 999, tags: 'customer=1', lifetimeMs: undefined });
      for (const each of [...Object.values(ends), expired, sandbox]) await ledger.reserve(each);
      assert.deepEqual(await sums('customer=1'), { held: 80n, spent: 0n });
      await ledger.settle({ ...payer, rid: ends.settled.rid, costE8: 5n, record: '' });
      await ledger.release({ ...payer, rid: ends.released.rid, record: '' });
      await ledger.expire(payer, expired.rid);
      assert.deepEqual(await sums('customer=1'), { held: 20n, spent: 5n });
      const roll = (amountE8: bigint) =>
        ledger.roll({ ...payer, rid: sandbox.rid, costE8: 15n, record: '', next: { rid: newId(), amountE8 } });
      assertIncludes(await roll(81n), { outcome: 'limit_exceeded', availableE8: 80n });
      assertIncludes(await roll(80n), { outcome: 'rolled' });
      assert.deepEqual(await sums('customer=1'), { held: 80n, spent: 20n });
    });

    it('bound a hold that grows, a cost beyond the hold, and the hold of a call with a minimum', async () => {
      await limit('customer', { total: 100n });
      assert.deepEqual(await ledger.reserve(hold(900n, 'customer=1', 10n)), { outcome: 'reserved', heldE8: 50n });
      const request = hold(20n, 'customer=1');
      await ledger.reserve(request);
      const renew = (amountE8: bigint) => ledger.renew({ ...payer, rid: request.rid, lifetimeMs: undefined, amountE8 });
      assertIncludes(await renew(51n), { outcome: 'limit_exceeded', availableE8: 30n });
      assert.deepEqual(await renew(40n), { outcome: 'renewed' });
      const answer = await ledger.settle({ ...payer, rid: request.rid, costE8: 70n, record: request.record });
      assert.deepEqual(answer, { outcome: 'settled', chargedE8: 50n, shortfallE8: 20n });
    });

    it('may be two with a limit, beside any without; a third is refused', async () => {
      for (const name of ['customer', 'project', 'agent']) await limit(name, { day: 100n });
      assertIncludes(await ledger.reserve(hold(60n, 'agent=a customer=1 end_user=u')), { outcome: 'reserved' });
      assertIncludes(await ledger.reserve(hold(41n, 'customer=1 project=p')), {
        outcome: 'limit_exceeded',
        availableE8: 40n,
      });
      const answer = await ledger.reserve(hold(1n, 'agent=a customer=1 project=p'));
      assert.deepEqual(answer, { outcome: 'too_many_limited_tags' });
      assert.deepEqual(await sums('customer=1'), { held: 60n, spent: 0n });
      assert.equal(await sums('project=p'), undefined);
    });

    it('leave the ledger when they are idle and Postgres has their charges, and come back with what Postgres knows', async () => {
      await limit('customer', { total: 100n });
      await charge(30n, 'customer=1');
      await leave();
      assert.deepEqual(await sums('customer=1'), { held: 0n, spent: 30n }, 'the charge is not in Postgres');
      await ship();
      const open = hold(10n, 'customer=2');
      await ledger.reserve(open);
      await leave();
      assert.deepEqual(await ledger.listTags(payer.accountId), [scopeOf('customer=2')], 'it has an open hold');
      assertIncludes(await ledger.reserve(hold(71n, 'customer=1')), { outcome: 'limit_exceeded', availableE8: 70n });
      assert.equal(await sums('customer=1'), undefined);
      await charge(20n, 'customer=1');
      assert.deepEqual(await sums('customer=1'), { held: 0n, spent: 50n });
    });

    it('stay while a hold of 0 is open, so that a cost beyond it counts with what was spent before', async () => {
      await limit('customer', { total: 100n });
      await charge(30n, 'customer=1');
      const free = hold(0n, 'customer=1');
      await ledger.reserve(free);
      await ship();
      await leave();
      await ledger.settle({ ...payer, rid: free.rid, costE8: 5n, record: '' });
      assert.deepEqual(await sums('customer=1'), { held: 0n, spent: 35n });
    });

    it('are looked after by the sweep of expired holds from their first hold on', async () => {
      await limit('customer', { total: 100n });
      const due = async () => (await ledger.due([shardOf(payer.accountId)], 9)).map(({ rid }) => rid);
      assert.deepEqual(await due(), []);
      await charge(1n, 'customer=1');
      assert.deepEqual(await due(), [`g ${payer.accountId}`]);
      await ship();
      await leave();
      assert.deepEqual(await due(), []);
    });

    it('are refused beyond the most values that the ledger counts for an account', async () => {
      await limit('customer', { total: 100n });
      for (let each = 0; each < TestTags.MOST; each += 1) await charge(1n, `customer=${each}`);
      assert.deepEqual(await ledger.reserve(hold(1n, 'customer=more')), { outcome: 'too_many_tags' });
      await charge(1n, 'customer=0');
    });

    it('are read again if their limits change meanwhile, and the call is given up if that does not end', async () => {
      await limit('customer=1', { total: 100n });
      postgres.whenRead = async () => {
        postgres.whenRead = undefined;
        await limit('customer=1', { total: 20n });
      };
      await limit('customer', {});
      assertIncludes(await ledger.reserve(hold(21n, 'customer=1')), { outcome: 'limit_exceeded', availableE8: 20n });
      assert.equal(postgres.reads, 2);
      postgres.whenRead = () => limit('customer=1', { total: 20n });
      assert.equal((await rejection(ledger.reserve(hold(1n, 'customer=1')))).name, 'LedgerUnavailable');
      assert.equal(postgres.reads, 2 + TAG_READS);
      assert.equal(await sums('customer=1'), undefined);
    });

    it('admit exactly ten of 200 calls at once if the limit of a value covers ten, although the first ones read it at once', async () => {
      await limit('customer', { month: 109n });
      const answers = await Promise.all(Array.from({ length: 200 }, () => ledger.reserve(hold(10n, 'customer=1'))));
      assert.equal(answers.filter(({ outcome }) => outcome === 'reserved').length, 10);
      assert.equal(answers.filter(({ outcome }) => outcome === 'limit_exceeded').length, 190);
      assert.deepEqual(await sums('customer=1'), { held: 100n, spent: 0n });
    });

    it('keep the newest limits of a name, whatever late repetition of a change arrives', async () => {
      const set = (rev: number, total: bigint, isLimited = true) => {
        const { accountId } = payer;
        return ledger.setScope({
          accountId,
          scope: scopeOf('customer'),
          name: 'customer',
          rev,
          limits: { total },
          isLimited,
        });
      };
      await set(7, 10n);
      await set(6, 900n);
      await set(6, 0n, false);
      assertIncludes(await ledger.reserve(hold(11n, 'customer=1')), { outcome: 'limit_exceeded', availableE8: 10n });
      await set(8, 0n, false);
      await set(7, 10n);
      assertIncludes(await ledger.reserve(hold(11n, 'customer=1')), { outcome: 'reserved' });
    });

    it('of a restored account have the limits of their names again, and their values come back with the next calls', async () => {
      await limit('customer', { total: 100n });
      await charge(30n, 'customer=1');
      await ship();
      const { accountId } = payer;
      const restored = (limits: SpendingLimits, seq: number) =>
        ledger.restore([
          {
            ...{ accountId, status: 'active', postedE8: 970n, seq, closed: [], open: [] },
            spending: { day: 0, spentE8: { total: 30n, day: 0n, week: 0n, month: 0n } },
            scopes: [
              { accountId, scope: scopeOf('customer'), name: 'customer', rev: ++revision, limits, isLimited: true },
              { accountId, scope: scopeOf('customer=1'), name: 'customer=1', rev: ++revision, limits: { day: 40n } },
            ].map((each) => ({ ...each, spending: { day: 0, spentE8: { total: 0n, day: 0n, week: 0n, month: 0n } } })),
            keys: [],
          },
        ]);
      await restored({ total: 90n }, 0);
      assert.deepEqual(await sums('customer=1'), { held: 0n, spent: 30n }, 'not behind');
      assertIncludes(await ledger.reserve(hold(11n, 'customer=1')), { outcome: 'limit_exceeded', availableE8: 10n });
      await restored({ total: 80n }, 99);
      assert.deepEqual(await ledger.listTags(accountId), []);
      assertIncludes(await ledger.reserve(hold(51n, 'customer=1')), { outcome: 'limit_exceeded', availableE8: 50n });
    });
  });
}
