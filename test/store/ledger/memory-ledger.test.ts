import assert from 'node:assert/strict';
import { newId } from '../../../core/base/ids';
import { CLOSED_MS, INTENT_MS } from '../../../core/ledger/ledger';
import { MemoryLedger } from '../../../core/ledger/memory-ledger';
import { shardOf } from '../../../core/ledger/shard';
import {
  assertIncludes,
  fundedPayer,
  holding,
  keyRequest,
  reserveRequest,
  settingsOf,
  tagSettings,
  testTags,
} from './ledger-fixture';
import { ledgerSuite } from './ledger-suite';

ledgerSuite('in the process', async () => new MemoryLedger(tagSettings(testTags)));

describe('the ledger in memory', () => {
  it('resets the sums of a day and a month when the next begins, and refills limits per minute evenly', async () => {
    let now = Date.parse('2027-01-30T23:59:59.999Z');
    const ledger = new MemoryLedger({ now: () => now });
    await ledger.open();
    const payer = await fundedPayer(ledger, 1_000n);
    await ledger.setKey(keyRequest(payer, { dailyLimitE8: 100n, monthlyLimitE8: 150n, callsPerMinute: 4 }));
    const spend = async (amountE8: bigint) => {
      const request = reserveRequest(payer, amountE8, { tokens: 1 });
      const answer = await ledger.reserve(request);
      if (answer.outcome === 'reserved')
        await ledger.settle({ ...payer, rid: request.rid, costE8: amountE8, record: '' });
      return 'availableE8' in answer ? answer.availableE8 : answer.outcome;
    };
    assert.equal(await spend(100n), 'reserved');
    assert.equal(await spend(1n), 0n);
    now = Date.parse('2027-01-31T00:00:00.000Z');
    assert.equal(await spend(51n), 50n, 'the month leaves 50');
    assert.equal(await spend(50n), 'reserved');
    now = Date.parse('2027-02-01T00:00:00.000Z');
    for (let each = 0; each < 4; each++) assert.equal(await spend(1n), 'reserved');
    assert.deepEqual(await ledger.reserve(reserveRequest(payer, 1n, { tokens: 1 })), {
      outcome: 'rate_limited',
      retryAfterMs: 15_000,
    });
    now += 14_999;
    assert.equal(await spend(1n), 'rate_limited');
    now += 1;
    assert.equal(await spend(1n), 'reserved');
    assert.equal(await spend(1n), 'rate_limited');
  });

  it('deletes closed reservations and tombstones a quarter of an hour after their rows are committed', async () => {
    let now = 0;
    const ledger = new MemoryLedger({ now: () => now });
    await ledger.open();
    const { payer, request: closed } = await holding(ledger, 10n, 10n);
    await ledger.settle({ ...payer, rid: closed.rid, costE8: 1n, record: '' });
    now += 2 * CLOSED_MS;
    await ledger.release({ ...payer, rid: newId(), record: '' });
    assert.equal(ledger.snapshot().reservations.size, 3, 'not committed: kept');
    const shard = shardOf(payer.accountId);
    await ledger.trimOutbox(shard, (await ledger.readOutbox([shard], 10)).get(shard) ?? []);
    now += CLOSED_MS - 1;
    await ledger.reserve(reserveRequest(payer, 1n));
    assert.equal(ledger.snapshot().reservations.size, 4);
    now += 1;
    await ledger.reserve(reserveRequest(payer, 1n));
    assert.equal(ledger.snapshot().reservations.size, 2, 'only the open ones');
  });

  it('keeps an Idempotency-Key while its call is open, and for ten minutes after its last entry is committed', async () => {
    let now = 0;
    const ledger = new MemoryLedger({ now: () => now });
    await ledger.open();
    const payer = await fundedPayer(ledger, 10n);
    const intent = { key: 'key', body: 'body', requestId: 'req_1' };
    const first = reserveRequest(payer, 1n, { intent });
    const outcome = async () => (await ledger.reserve(reserveRequest(payer, 1n, { intent }))).outcome;
    await ledger.reserve(first);
    now += 2 * INTENT_MS;
    assert.equal(await outcome(), 'intent_open');
    await ledger.settle({ ...payer, rid: first.rid, costE8: 1n, record: '' });
    const shard = shardOf(payer.accountId);
    await ledger.trimOutbox(shard, (await ledger.readOutbox([shard], 10)).get(shard) ?? []);
    now += INTENT_MS - 1;
    assert.equal(await outcome(), 'intent_charged');
    now += 1;
    assert.equal(await outcome(), 'reserved');
  });

  it('counts a cost in the windows in which it is charged, and never goes back to an earlier window', async () => {
    const SUNDAY = Date.UTC(2026, 10, 29, 23, 59);
    let now = SUNDAY;
    const ledger = new MemoryLedger({ now: () => now });
    await ledger.open();
    const payer = await fundedPayer(ledger, 1_000n);
    const team = {
      accountId: payer.accountId,
      scope: 't:team',
      name: 'blue',
      limits: { day: 100n, week: 100n, month: 500n },
    };
    await ledger.setScope({ ...team, rev: 0 });
    await ledger.setKey(keyRequest(payer, { settings: settingsOf({ rev: 1, teamId: 'team' }) }));
    const hold = (amountE8: bigint) => reserveRequest(payer, amountE8, { keyRev: 1 });
    const settle = (rid: string, costE8: bigint) => ledger.settle({ ...payer, rid, costE8, record: '' });
    const [early, late] = [hold(60n), hold(40n)];
    for (const each of [early, late]) assert.equal((await ledger.reserve(each)).outcome, 'reserved');
    await settle(early.rid, 60n);
    const refused = await ledger.reserve(hold(1n));
    const limit = 'limit' in refused ? refused.limit : undefined;
    assertIncludes(limit, { window: 'day', spentE8: 60n, heldE8: 40n, resetsAtMs: Date.UTC(2026, 10, 30) });

    now = Date.UTC(2026, 10, 30); // Monday: a new day and a new week of the same month.
    await settle(late.rid, 40n);
    assertIncludes(await ledger.reserve(hold(61n)), { outcome: 'limit_exceeded', availableE8: 60n });
    const monday = hold(60n);
    assert.equal((await ledger.reserve(monday)).outcome, 'reserved');

    now = SUNDAY; // The clock is set back, but the stored window continues.
    await settle(monday.rid, 60n);
    assertIncludes(await ledger.reserve(hold(1n)), { outcome: 'limit_exceeded', availableE8: 0n });
    const { spending } = (await ledger.readScope(payer.accountId, 't:team')) ?? {};
    assert.deepEqual(spending?.spentE8, { total: 160n, day: 100n, week: 100n, month: 160n });

    now = Date.UTC(2026, 11, 1);
    const december = await ledger.reserve(hold(1n));
    assertIncludes('limit' in december ? december.limit : undefined, {
      window: 'week',
      resetsAtMs: Date.UTC(2026, 11, 7),
    });
  });

  it('deletes the Idempotency-Keys of an account that has had no new ones for a day', async () => {
    let now = 0;
    const ledger = new MemoryLedger({ now: () => now });
    await ledger.open();
    const [idle, busy] = [await fundedPayer(ledger, 10n), await fundedPayer(ledger, 10n)];
    const intent = { key: 'key', body: 'body', requestId: 'req_1' };
    await ledger.reserve(reserveRequest(idle, 1n, { intent }));
    now += 86_400_000;
    await ledger.reserve(reserveRequest(busy, 1n, { intent }));
    assert.deepEqual([...ledger.snapshot().intents.keys()], [busy.accountId]);
  });
});
