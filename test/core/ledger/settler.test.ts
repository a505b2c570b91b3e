import assert from 'node:assert/strict';
import { newId } from '../../../core/base/ids';
import { LedgerUnavailable } from '../../../core/ledger/ledger';
import { MemoryLedger } from '../../../core/ledger/memory-ledger';
import { createSettler } from '../../../core/ledger/settler';
import { fundedPayer, reserveRequest } from '../../store/ledger/ledger-fixture';
import { quiet } from '../../support/databases';
import { settlesWithin, until } from '../../support/until';

/** A ledger that can be slow or unavailable. */
class FaultyLedger extends MemoryLedger {
  fault: 'none' | 'unavailable' | 'hanging' = 'none';
  asked = 0;

  override async settle(request: Parameters<MemoryLedger['settle']>[0]) {
    this.asked += 1;
    if (this.fault === 'unavailable') throw new LedgerUnavailable('it is down');
    if (this.fault === 'hanging') await until('the ledger is back', () => this.fault !== 'hanging');
    return super.settle(request);
  }

  override async release(request: Parameters<MemoryLedger['release']>[0]) {
    if (this.fault === 'unavailable') throw new LedgerUnavailable('it is down');
    return super.release(request);
  }
}

describe('the settler', () => {
  const start = async (maxPending = 100) => {
    const ledger = new FaultyLedger();
    await ledger.open();
    const payer = await fundedPayer(ledger, 1_000n);
    const nudged: string[] = [];
    const shipper = { nudge: (accountId: string) => void nudged.push(accountId) };
    const settler = createSettler({ ledger, shipper, log: quiet, maxPending });
    const open = async () => {
      const request = reserveRequest(payer, 400n);
      await ledger.reserve(request);
      return { ...payer, rid: request.rid, record: '' };
    };
    return { ledger, payer, nudged, settler, open };
  };

  it("returns the charged amount, and wakes the shipper, which writes the shard's new entries to Postgres", async () => {
    const { payer, nudged, settler, open } = await start();
    const request = await open();
    assert.deepEqual(await settler.settle({ ...request, costE8: 1_200n }), { chargedE8: 1_000n, inTime: true });
    assert.deepEqual(nudged, [payer.accountId]);
    assert.equal(settler.pending(), 0);
  });

  it('reports that nothing was charged if the reservation is closed or unknown', async () => {
    const { payer, settler, open } = await start();
    const released = await open();
    assert.deepEqual(await settler.release(released), { inTime: true });
    assert.deepEqual(await settler.settle({ ...released, costE8: 7n }), { chargedE8: 0n, inTime: true });
    const unknown = { ...payer, rid: newId(), record: '', costE8: 7n };
    assert.deepEqual(await settler.settle(unknown), { chargedE8: 0n, inTime: true });
  });

  for (const fault of ['unavailable', 'hanging'] as const) {
    it(`returns within 250 ms while the ledger is ${fault}, and settles once the ledger is available again`, async () => {
      const { ledger, payer, settler, open } = await start();
      const request = await open();
      ledger.fault = fault;
      const settling = settler.settle({ ...request, costE8: 7n });
      assert.ok(await settlesWithin(300, settling));
      assert.deepEqual(await settling, { chargedE8: 7n, inTime: false });
      assert.equal(settler.pending(), 1);
      ledger.fault = 'none';
      await until('it is settled', () => settler.pending() === 0);
      assert.equal((await ledger.readAccount(payer.accountId))?.postedE8, 993n);
    });
  }

  it('returns from a release while the ledger is unavailable, and retries it', async () => {
    const { ledger, payer, settler, open } = await start();
    const request = await open();
    ledger.fault = 'unavailable';
    assert.deepEqual(await settler.release(request), { inTime: false });
    ledger.fault = 'none';
    await until('it is released', () => settler.pending() === 0);
    assert.equal((await ledger.readAccount(payer.accountId))?.heldE8, 0n);
  });

  it('waits for a ledger that is being restored', async () => {
    const { payer } = await start();
    const ledger = new MemoryLedger();
    const settler = createSettler({ ledger, shipper: { nudge: () => {} }, log: quiet });
    const request = { ...payer, rid: newId(), record: '', costE8: 7n };
    assert.deepEqual(await settler.settle(request), { chargedE8: 7n, inTime: false });
    await ledger.open();
    await until('it has an outcome', () => settler.pending() === 0);
  });

  it('retries a limited number of settles, and drops further ones at once', async () => {
    const { ledger, settler, open } = await start(2);
    const request = await open();
    ledger.fault = 'unavailable';
    const answers = await Promise.all(Array.from({ length: 6 }, () => settler.settle({ ...request, costE8: 1n })));
    assert.equal(settler.pending(), 2);
    assert.equal(answers.filter(({ inTime }) => inTime).length, 4);
    await settler.stop();
  });

  it('tries each settle once more before it stops', async () => {
    const { ledger, settler, open } = await start();
    const request = await open();
    ledger.fault = 'unavailable';
    await settler.settle({ ...request, costE8: 7n });
    const { asked } = ledger;
    await settler.stop();
    assert.equal(settler.pending(), 0);
    assert.equal(ledger.asked, asked + 1);
  });
});
