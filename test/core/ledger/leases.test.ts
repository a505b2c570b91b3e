import assert from 'node:assert/strict';
import { metrics } from '../../../core/base/metrics';
import { startLeases } from '../../../core/ledger/leases';
import { LedgerUnavailable } from '../../../core/ledger/ledger';
import { measuredSettle } from '../../../core/ledger/ledger-metrics';
import { MemoryLedger } from '../../../core/ledger/memory-ledger';
import { fundedPayer, holding, reserveRequest } from '../../store/ledger/ledger-fixture';
import { quiet } from '../../support/databases';
import { until } from '../../support/until';

class CountingLedger extends MemoryLedger {
  readonly renewed: string[] = [];
  isDown = false;

  override async renew(request: Parameters<MemoryLedger['renew']>[0]) {
    this.renewed.push(request.rid);
    if (this.isDown) throw new LedgerUnavailable('it is down');
    return super.renew(request);
  }
}

const NEVER_MS = 3_600_000;

async function read(name: string): Promise<number> {
  return (await metrics.getSingleMetric(name)?.get())?.values[0]?.value ?? 0;
}

describe('the leases of holds', () => {
  const open = async (lifetimeMs: number) => {
    const ledger = new CountingLedger();
    await ledger.open();
    const { payer, request } = await holding(ledger, 1_000n, 400n, { lifetimeMs });
    return { ledger, payer, rid: request.rid };
  };
  const heldOf = async (ledger: MemoryLedger, accountId: string) => (await ledger.readAccount(accountId))?.heldE8;

  it('are renewed while a call is open, until its hold is no longer tracked', async () => {
    const { ledger, payer, rid } = await open(60_000);
    const leases = startLeases({
      calls: ledger,
      ledger,
      log: quiet,
      times: { renewEveryMs: 20, sweepEveryMs: NEVER_MS },
    });
    leases.track(payer, rid, 400n);
    await until('it is renewed three times', () => ledger.renewed.length >= 3);
    assert.ok((ledger.snapshot().deadlines.get(rid) ?? 0) > Date.now() + 100_000);
    leases.untrack(rid);
    const { length } = ledger.renewed;
    await new Promise((wake) => setTimeout(wake, 80));
    await leases.stop();
    assert.equal(ledger.renewed.length, length);
  });

  it('are renewed by the monotonic clock, even if the system clock is set back', async () => {
    const { ledger, payer, rid } = await open(60_000);
    const leases = startLeases({
      calls: ledger,
      ledger,
      log: quiet,
      times: { renewEveryMs: 20, sweepEveryMs: NEVER_MS },
    });
    leases.track(payer, rid, 400n);
    const { now } = Date;
    Date.now = () => now() - NEVER_MS;
    try {
      await until('it is renewed twice', () => ledger.renewed.length >= 2);
    } finally {
      Date.now = now;
      await leases.stop();
    }
  });

  it('are not renewed after the call is closed', async () => {
    const { ledger, payer, rid } = await open(60_000);
    await ledger.release({ ...payer, rid, record: '' });
    const leases = startLeases({
      calls: ledger,
      ledger,
      log: quiet,
      times: { renewEveryMs: 20, sweepEveryMs: NEVER_MS },
    });
    leases.track(payer, rid, 400n);
    await until('it is asked once', () => ledger.renewed.length === 1);
    await new Promise((wake) => setTimeout(wake, 80));
    await leases.stop();
    assert.equal(ledger.renewed.length, 1);
  });

  it('are renewed again when the ledger is available after an outage', async () => {
    const { ledger, payer, rid } = await open(3_600);
    ledger.isDown = true;
    const leases = startLeases({
      calls: ledger,
      ledger,
      log: quiet,
      times: { renewEveryMs: 20, sweepEveryMs: NEVER_MS },
    });
    leases.track(payer, rid, 400n);
    await until('it was tried', () => ledger.renewed.length >= 2);
    ledger.isDown = false;
    await until('it is renewed', () => (ledger.snapshot().deadlines.get(rid) ?? 0) > Date.now() + 100_000);
    await leases.stop();
  });

  it('return only the hold of a call whose process has crashed, and count it as expired', async () => {
    const before = await read('tollgate_ledger_expired_total');
    const { ledger, payer, rid } = await open(0);
    await ledger.reserve(reserveRequest(payer, 100n));
    const leases = startLeases({ calls: ledger, ledger, log: quiet, times: { sweepEveryMs: 20 } });
    await until('it has expired', async () => (await heldOf(ledger, payer.accountId)) === 100n);
    await leases.stop();
    assert.equal(await read('tollgate_ledger_expired_total'), before + 1);
    assert.equal((await ledger.settle({ ...payer, rid, costE8: 1n, record: '' })).outcome, 'expired');
  });

  it('return holds after the clock jumps forward or back, even if the ledger was opened while the clock was ahead', async () => {
    for (const step of [3_600_000, -3_600_000]) {
      let ahead = 0;
      const ledger = new MemoryLedger({ now: () => Date.now() + ahead });
      await ledger.open();
      const payer = await fundedPayer(ledger, 1_000n);
      ahead = step;
      await ledger.reserve(reserveRequest(payer, 400n, { lifetimeMs: 0 }));
      const leases = startLeases({ calls: ledger, ledger, log: quiet, times: { sweepEveryMs: 20 } });
      await until('it has expired', async () => (await heldOf(ledger, payer.accountId)) === 0n);
      await leases.stop();
    }
  });

  it('that expire before the settle cause no charge, and the settle counts as late', async () => {
    const { ledger, payer, rid } = await open(0);
    await ledger.expire(payer, rid);
    const before = await read('tollgate_ledger_late_settles_total');
    await measuredSettle(ledger, { ...payer, rid, costE8: 1n, record: '' });
    assert.equal(await read('tollgate_ledger_late_settles_total'), before + 1);
  });
});
