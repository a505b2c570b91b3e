import assert from 'node:assert/strict';
import { newId } from '../../../core/base/ids';
import { CLOSED_MS, INTENT_MS } from '../../../core/ledger/ledger';
import { MemoryLedger } from '../../../core/ledger/memory-ledger';
import { shardOf } from '../../../core/ledger/shard';
import { fundedPayer, holding, keyRequest, reserveRequest } from './ledger-fixture';
import { ledgerSuite } from './ledger-suite';

ledgerSuite('in the process', async () => new MemoryLedger());

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
