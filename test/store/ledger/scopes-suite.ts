import assert from 'node:assert/strict';
import { newId } from '../../../core/base/ids';
import { type Ledger, type Payer, WrongPayer } from '../../../core/ledger/ledger';
import type { SpendingLimits } from '../../../core/ledger/scopes';
import { shardOf } from '../../../core/ledger/shard';
import { rejection } from '../../support/rejection';
import { assertIncludes, fundedPayer, keyRequest, reserveRequest, settingsOf } from './ledger-fixture';

/** The tests of scopes: limits of accounts, teams and members, which every ledger must pass. */
export function scopesSuite(ledgerOfTest: () => Ledger): void {
  describe('the scopes of a call', () => {
    let ledger: Ledger;
    let payer: Payer;
    let teamId: string;
    let memberId: string;

    beforeEach(async () => {
      ledger = ledgerOfTest();
      payer = await fundedPayer(ledger, 1_000n);
      [teamId, memberId] = [newId(), newId()];
      await limit(`t:${teamId}`, {});
      await limit(`m:${memberId}`, {});
      await assign(payer, { teamId, memberId });
    });

    let revision = 0;
    const limit = (scope: string, limits: SpendingLimits, rev = ++revision) =>
      ledger.setScope({ accountId: payer.accountId, scope, name: `the name of ${scope[0]}`, rev, limits });
    const assign = (who: Payer, scopes: { teamId?: string; memberId?: string }, limitE8?: bigint) =>
      ledger.setKey(keyRequest(who, { limitE8, settings: settingsOf({ rev: ++revision, ...scopes }) }));
    /** Makes another key of the account. */
    const keyOf = async (scopes: { teamId?: string; memberId?: string }) => {
      const who = { ...payer, keyId: newId() };
      await assign(who, scopes);
      return who;
    };
    const hold = (amountE8: bigint, who = payer, minE8?: bigint) =>
      reserveRequest(who, amountE8, { keyRev: revision, ...(minE8 !== undefined && { minE8 }) });
    const charge = async (costE8: bigint, who = payer) => {
      const request = hold(costE8, who);
      assert.equal((await ledger.reserve(request)).outcome, 'reserved');
      return ledger.settle({ ...who, rid: request.rid, costE8, record: request.record });
    };
    const sums = async (scope: string) => {
      const { heldE8, spending } = (await ledger.readScope(payer.accountId, scope)) ?? {};
      return { held: heldE8, spent: spending?.spentE8.total };
    };

    it('all hold the amount of a call, and all count its cost', async () => {
      const request = hold(100n);
      await ledger.reserve(request);
      const names = [`a:${payer.accountId}`, `t:${teamId}`, `m:${memberId}`, `k:${payer.keyId}`];
      for (const name of names) assert.deepEqual(await sums(name), { held: 100n, spent: 0n }, name);
      await ledger.settle({ ...payer, rid: request.rid, costE8: 70n, record: request.record });
      for (const name of names) assert.deepEqual(await sums(name), { held: 0n, spent: 70n }, name);
      const [entry] = [...((await ledger.readOutbox([shardOf(payer.accountId)], 9)).values() ?? [])].flat().slice(-1);
      assertIncludes(entry, { scopes: `t:${teamId} m:${memberId}`, day: Math.floor(Date.now() / 86_400_000) });
    });

    it('all release what a call held if one of them refuses it, and the answer names the limit and its scope', async () => {
      await limit(`t:${teamId}`, { day: 150n });
      await charge(40n);
      await ledger.reserve(hold(60n));
      const answer = await ledger.reserve(hold(51n));
      assertIncludes(answer, { outcome: 'limit_exceeded', availableE8: 50n });
      assertIncludes('limit' in answer ? answer.limit : undefined, {
        ...{ kind: 'team', id: teamId, name: 'the name of t', window: 'day' },
        ...{ limitE8: 150n, spentE8: 40n, heldE8: 60n },
        resetsAtMs: (Math.floor(Date.now() / 86_400_000) + 1) * 86_400_000,
      });
      for (const name of [`a:${payer.accountId}`, `t:${teamId}`, `m:${memberId}`, `k:${payer.keyId}`])
        assert.deepEqual(await sums(name), { held: 60n, spent: 40n }, name);
    });

    it('refuse a call by the one that leaves least of those that do not cover it', async () => {
      await limit(`a:${payer.accountId}`, { month: 300n });
      await limit(`t:${teamId}`, { total: 60n });
      await limit(`m:${memberId}`, { week: 40n });
      await assign(payer, { teamId, memberId }, 50n);
      for (const [amountE8, kind, leftE8] of [
        [1_001n, 'member', 40n],
        [41n, 'member', 40n],
      ] as const) {
        const answer = await ledger.reserve(hold(amountE8));
        assertIncludes(answer, { outcome: 'limit_exceeded', availableE8: leftE8 });
        assertIncludes('limit' in answer ? answer.limit : undefined, { kind });
      }
      await limit(`m:${memberId}`, {});
      const answer = await ledger.reserve(hold(51n));
      assertIncludes('limit' in answer ? answer.limit : undefined, { kind: 'key', id: payer.keyId, window: 'total' });
      await assign(payer, {});
      assertIncludes(await ledger.reserve(hold(301n)), { outcome: 'limit_exceeded', availableE8: 300n });
      await limit(`a:${payer.accountId}`, {});
      assertIncludes(await ledger.reserve(hold(2_000n)), { outcome: 'insufficient_balance', availableE8: 1_000n });
    });

    it('admit exactly ten of 200 calls at once, from 20 keys of 5 members, if the limit of their team covers ten', async () => {
      await limit(`t:${teamId}`, { month: 109n });
      const members = Array.from({ length: 5 }, newId);
      for (const each of members) await limit(`m:${each}`, {});
      const keys: Payer[] = [];
      for (let at = 0; at < 20; at += 1) keys.push(await keyOf({ teamId, memberId: members[at % 5] ?? '' }));
      const answers = await Promise.all(
        Array.from({ length: 200 }, (_, at) => ledger.reserve(hold(10n, keys[at % 20]))),
      );
      assert.equal(answers.filter(({ outcome }) => outcome === 'reserved').length, 10);
      assert.equal(answers.filter(({ outcome }) => outcome === 'limit_exceeded').length, 190);
      assert.deepEqual(await sums(`t:${teamId}`), { held: 100n, spent: 0n });
    });

    it('let a call with a minimum hold half of what the tightest limit leaves', async () => {
      await limit(`t:${teamId}`, { total: 100n });
      assert.deepEqual(await ledger.reserve(hold(900n, payer, 10n)), { outcome: 'reserved', heldE8: 50n });
    });

    it('charge a cost beyond the hold only as far as the tightest limit allows', async () => {
      await limit(`m:${memberId}`, { total: 100n });
      const request = hold(60n);
      await ledger.reserve(request);
      const answer = await ledger.settle({ ...payer, rid: request.rid, costE8: 150n, record: request.record });
      assert.deepEqual(answer, { outcome: 'settled', chargedE8: 100n, shortfallE8: 50n });
    });

    it('count what was spent before a limit was set', async () => {
      await charge(80n);
      await limit(`t:${teamId}`, { day: 100n, week: 100n, month: 100n, total: 100n });
      assertIncludes(await ledger.reserve(hold(21n)), { outcome: 'limit_exceeded', availableE8: 20n });
      assertIncludes(await ledger.reserve(hold(20n)), { outcome: 'reserved' });
    });

    it('that a call had at its beginning count it, whatever team its key has at the end', async () => {
      const later = newId();
      await limit(`t:${later}`, { total: 500n });
      const [settled, released] = [hold(100n), hold(50n)];
      for (const each of [settled, released]) await ledger.reserve(each);
      await assign(payer, { teamId: later });
      await ledger.settle({ ...payer, rid: settled.rid, costE8: 30n, record: settled.record });
      await ledger.release({ ...payer, rid: released.rid, record: released.record });
      assert.deepEqual(await sums(`t:${teamId}`), { held: 0n, spent: 30n });
      assert.deepEqual(await sums(`t:${later}`), { held: 0n, spent: 0n });
      await charge(20n);
      assert.deepEqual([await sums(`t:${later}`), (await sums(`t:${teamId}`)).spent], [{ held: 0n, spent: 20n }, 30n]);
    });

    it('of a roll are the old ones for its cost, and the present ones of its key for the next hold', async () => {
      const later = newId();
      await limit(`t:${later}`, { total: 50n });
      const first = reserveRequest(payer, 100n, { keyRev: revision, lifetimeMs: undefined });
      await ledger.reserve(first);
      await assign(payer, { teamId: later });
      const roll = (amountE8: bigint) =>
        ledger.roll({ ...payer, rid: first.rid, costE8: 60n, record: '', next: { rid: newId(), amountE8 } });
      assertIncludes(await roll(51n), { outcome: 'limit_exceeded', availableE8: 50n });
      assertIncludes(await roll(50n), { outcome: 'rolled', chargedE8: 60n });
      assert.deepEqual(await sums(`t:${teamId}`), { held: 0n, spent: 60n });
      assert.deepEqual(await sums(`t:${later}`), { held: 50n, spent: 0n });
    });

    it('bound a hold that grows', async () => {
      await limit(`t:${teamId}`, { week: 80n });
      const request = hold(50n);
      await ledger.reserve(request);
      const renew = (amountE8: bigint) => ledger.renew({ ...payer, rid: request.rid, lifetimeMs: undefined, amountE8 });
      assertIncludes(await renew(81n), { outcome: 'limit_exceeded', availableE8: 30n });
      assert.deepEqual(await renew(80n), { outcome: 'renewed' });
      assert.deepEqual(await sums(`m:${memberId}`), { held: 80n, spent: 0n });
    });

    it('keep the newest limits, whatever late repetition of a change arrives, and are not those of another account', async () => {
      await limit(`t:${teamId}`, { total: 10n }, 1_000);
      await limit(`t:${teamId}`, { total: 900n }, 999);
      assertIncludes(await ledger.reserve(hold(11n)), { outcome: 'limit_exceeded', availableE8: 10n });
      const foreign = {
        accountId: idInShardOf(payer.accountId),
        scope: `t:${teamId}`,
        name: '',
        rev: 2_000,
        limits: {},
      };
      await ledger.setAccount(foreign.accountId, 'active');
      assert.ok((await rejection(ledger.setScope(foreign))) instanceof WrongPayer);
      assertIncludes(await ledger.readScope(payer.accountId, `t:${teamId}`), { limits: { total: 10n } });
    });

    it('of an account that the ledger does not know cannot have limits', async () => {
      const accountId = newId();
      const limits = { total: 10n };
      const failure = await rejection(
        ledger.setScope({ accountId, scope: `a:${accountId}`, name: '', rev: 0, limits }),
      );
      assert.match(String(failure), /unknown_account/);
      assert.equal(await ledger.readAccount(accountId), undefined);
    });

    it('are restored with their limits and with what they have spent', async () => {
      const { accountId } = payer;
      const day = Math.floor(Date.now() / 86_400_000);
      const spent = (total: bigint) => ({ day, spentE8: { total, day: 10n, week: 20n, month: 30n } });
      const settings = settingsOf({ rev: ++revision, teamId, memberId });
      await ledger.restore([
        {
          ...{ accountId, status: 'active', postedE8: 800n, seq: 9, closed: [], spending: spent(400n) },
          scopes: [
            {
              accountId,
              scope: `t:${teamId}`,
              name: 'blue',
              rev: ++revision,
              limits: { week: 70n },
              spending: spent(50n),
            },
            { accountId, scope: `m:${memberId}`, name: '', rev: ++revision, limits: {}, spending: spent(60n) },
          ],
          keys: [{ ...keyRequest(payer, { settings }), spending: spent(70n) }],
          open: [{ ...payer, rid: newId(), amountE8: 15n, scopes: `t:${teamId} m:${memberId}` }],
        },
      ]);
      const answer = await ledger.reserve(hold(36n));
      assertIncludes(answer, { outcome: 'limit_exceeded', availableE8: 35n });
      assertIncludes('limit' in answer ? answer.limit : undefined, {
        kind: 'team',
        name: 'blue',
        spentE8: 20n,
        heldE8: 15n,
      });
      assert.deepEqual(await sums(`m:${memberId}`), { held: 15n, spent: 60n });
      assert.deepEqual(await sums(`a:${accountId}`), { held: 15n, spent: 400n });
    });
  });
}

/** Makes an id that is kept in the same shard, where the ledger notices a reused name. */
function idInShardOf(accountId: string): string {
  for (;;) {
    const id = newId();
    if (shardOf(id) === shardOf(accountId)) return id;
  }
}
