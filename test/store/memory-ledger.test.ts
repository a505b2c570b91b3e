import { expect } from 'chai';
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
    expect(await ledger.expire(payer, request.rid)).deep.equal({ outcome: 'not_due' });
    now = 1_500;
    expect(await ledger.expire(payer, request.rid)).deep.equal({ outcome: 'expired' });
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
    expect(ledger.snapshot().reservations.size, 'not committed: kept').equal(3);
    const shard = shardOf(payer.accountId);
    await ledger.trimOutbox(shard, (await ledger.readOutbox([shard], 10)).get(shard) ?? []);
    now += CLOSED_MS - 1;
    await ledger.reserve(reserveRequest(payer, 1n));
    expect(ledger.snapshot().reservations.size).equal(4);
    now += 1;
    await ledger.reserve(reserveRequest(payer, 1n));
    expect(ledger.snapshot().reservations.size, 'only the open ones').equal(2);
  });
});
