import assert from 'node:assert/strict';
import { Allowance, type OpenCall, rightNow } from '../../../core/ledger/allowances/allowance';
import type { ReportRequest } from '../../../core/ledger/allowances/allowance-store';

describe("an account's allowance (money that a node holds in advance)", () => {
  const payer = { accountId: 'account', keyId: 'key' };
  const allowanceOf = (freeE8: bigint) =>
    new Allowance(payer, { generation: 'generation', keyRev: 0, freeE8, limitedTags: '', askedAt: rightNow() });
  const hold = (allowance: Allowance, rid: string, amountE8: bigint): OpenCall => {
    allowance.hold(amountE8);
    return { rid, allowance, amountE8 };
  };
  const end = (allowance: Allowance, call: OpenCall, costE8: bigint) =>
    allowance.end(call, { rid: call.rid, ending: 'settled', costE8, shortfallE8: 0n, record: '' });

  const wants = ({ wantE8 }: ReportRequest) => wantE8;

  it('admits no call with the money of ended calls while the ledger has not covered a hold that grew', () => {
    const allowance = allowanceOf(50n);
    const [grows, ends] = [hold(allowance, 'grows', 20n), hold(allowance, 'ends', 20n)];
    allowance.enlarge(grows, 40n);
    end(allowance, ends, 5n);
    assert.equal(allowance.covers(15n, 0), false);
    const { openE8, costE8, giveE8 } = allowance.report(20n, true);
    assert.deepEqual([openE8, costE8, giveE8], [60n, 5n, 0n]);
    // The ledger covers the whole hold and gives 30 more.
    allowance.answered(
      { outcome: 'reported', freeE8: 30n, mayAdmit: true, uncoveredE8: 0n, limitedTags: '' },
      rightNow(),
    );
    assert.equal(allowance.freeE8, 30n);
  });

  it('no longer includes the money that a report returns to the ledger, even before the ledger receives the report', () => {
    const allowance = allowanceOf(1_000n);
    assert.equal(allowance.report(10n, true).giveE8, 900n);
    assert.equal(allowance.freeE8, 100n);
  });

  it('subtracts the growth of a hold after the ledger recalled the allowance, even if an older report is answered later', () => {
    const allowance = allowanceOf(50n);
    const grows = hold(allowance, 'grows', 20n);
    allowance.report(0n, true);
    allowance.admits = false; // The recall arrives.
    allowance.enlarge(grows, 20n);
    allowance.answered(
      { outcome: 'reported', freeE8: 30n, mayAdmit: true, uncoveredE8: 0n, limitedTags: '' },
      rightNow(),
    );
    assert.equal(allowance.freeE8, 10n);
  });

  it('requests enough money for the highest number of simultaneous calls, even if no call is open now', () => {
    const allowance = allowanceOf(2_000n);
    const calls = Array.from({ length: 100 }, (_, at) => hold(allowance, `call-${at}`, 20n));
    for (const call of calls) end(allowance, call, 1n);
    // One and a half times the 2,000 that were held, plus the cost between two reports.
    assert.deepEqual(wants(allowance.report(20n, true)), 3_200n - 1_900n);
  });

  it('requests less money with each report while there are no calls, down to enough for ten holds', () => {
    const allowance = allowanceOf(2_000n);
    const calls = Array.from({ length: 100 }, (_, at) => hold(allowance, `call-${at}`, 20n));
    for (const call of calls) end(allowance, call, 1n);
    const free = Array.from({ length: 60 }, () => {
      const report = allowance.report(20n, true);
      const freeE8 = allowance.freeE8 + report.wantE8;
      allowance.answered({ outcome: 'reported', freeE8, mayAdmit: true, uncoveredE8: 0n, limitedTags: '' }, rightNow());
      return allowance.freeE8;
    });
    assert.deepEqual(
      free,
      free.toSorted((one, other) => Number(other - one)),
    );
    // The allowance keeps up to twice what it asks for.
    assert.ok((free.at(-1) ?? 0n) <= 400n, String(free.at(-1)));
  });
});
