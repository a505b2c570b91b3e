import assert from 'node:assert/strict';
import { newId } from '../../core/ids';
import { CLOSED_MS } from '../../core/ledger/ledger';
import { MemoryLedger } from '../../core/ledger/memory-ledger';
import { shardOf } from '../../core/ledger/shard';
import { fundedPayer, reserveRequest } from './ledger-fixture';
import { ledgerSuite } from './ledger-suite';

ledgerSuite('in the process', async () => new MemoryLedger());

describe('the ledger in the process', () => {
  it('expires at the deadline and not a millisecond before', async () => {
    let now = 1_000;
    const ledger = new MemoryLedger({ now: () => now });
    await ledger.open();
    const payer = await fundedPayer(ledger, 10n);
    const request = reserveRequest(payer, 10n, { lifetimeMs: 500 });
    await ledger.reserve(request);
    now = 1_499;
    assert.deepEqual(await ledger.expire(payer, request.rid), { outcome: 'not_due' });
    now = 1_500;
    assert.deepEqual(await ledger.expire(payer, request.rid), { outcome: 'expired' });
  });

  it('forgets closed reservations and tombstones a quarter of an hour after their rows are committed', async () => {
    let now = 0;
    const ledger = new MemoryLedger({ now: () => now });
    await ledger.open();
    const payer = await fundedPayer(ledger, 10n);
    const closed = reserveRequest(payer, 10n);
    await ledger.reserve(closed);
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
});
