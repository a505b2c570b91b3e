import assert from 'node:assert/strict';
import { buildCatalog } from '../../core/catalog/catalog';
import { insertAttempts } from '../../core/ledger/outbox/rows';
import { openEgress } from '../../core/wire/egress';
import { sampleModel, samplePrice, sampleUpstream } from '../support/catalog-samples';
import { runTollgate } from '../support/command-line';
import { DATABASES } from '../support/databases';
import { openDesk, type TestDesk } from '../support/desk';
import { centsOf, countedAttempt, INPUT_RATE, OUTPUT_RATE, sampleAttempt, writeDay } from '../support/planted-day';
import { ADMIN_KEY, type ReportVendor, startReportVendor } from '../support/report-vendors';

const DAY = '2026-11-20';
const CALLS = 100_000;

for (const { name } of DATABASES) {
  describe(`the comparison of a vendor's bill with 10^5 calls of a day on ${name}`, function () {
    this.timeout(540_000);
    let vendor: ReportVendor;
    let desk: TestDesk;
    const egress = openEgress();

    before(async () => {
      vendor = await startReportVendor('anthropic');
      const price = samplePrice(INPUT_RATE, OUTPUT_RATE);
      const models = ['large', 'small', 'tiny'].map((model) => sampleModel(model, { price }));
      const reporting = {
        vendor: 'anthropic' as const,
        url: new URL(vendor.url),
        credential: ADMIN_KEY,
        missing: undefined,
        apiKeyId: 'apikey_acme',
        workspaceId: undefined,
        alarmAboveE8: 1_000_000n,
      };
      const catalog = buildCatalog([sampleUpstream('acme', models, { allowPrivate: true, reporting })]);
      desk = await openDesk(name as 'Postgres', { catalog, egress });
    });
    after(async () => {
      await desk.close();
      await egress.close();
      await vendor.close();
    });

    it('prints exactly the three planted differences', async () => {
      const { usage, costE14 } = await writeDay(desk.database, DAY, CALLS);
      const write = (...made: Parameters<typeof insertAttempts>[1][number]['made']) =>
        insertAttempts(desk.database, [{ requestId: 'req_planted', accountId: null, made }]);
      await write(
        countedAttempt(DAY, 1, { input: 50, output: 20 }, { cause: 'left', isReported: false }),
        countedAttempt(DAY, 3, { input: 100, output: 10 }, { model: 'tiny' }),
        sampleAttempt(DAY, 2, { model: 'small', cause: 'failed', outcome: 'timeout', isReported: false }),
      );
      const [large, small] = usage as [(typeof usage)[0], (typeof usage)[0]];
      vendor.books.usage.push(
        { ...large, input: (large.input ?? 0) + 50, output: (large.output ?? 0) + 321 },
        { ...small, input: (small.input ?? 0) + 7_000 },
        // A program used the vendor's key without the gateway.
        { day: DAY, apiKeyId: 'apikey_acme', model: 'tiny', input: 109, output: 10 },
      );
      const planted = (50n + 7_000n + 109n) * INPUT_RATE + 331n * OUTPUT_RATE;
      vendor.books.costs.push({ day: DAY, workspaceId: null, item: 'all', amount: centsOf(costE14 + planted) });

      const begun = performance.now();
      const { status, out } = await runTollgate(['--json', 'invoices', 'compare', 'acme', '--from', DAY], {
        TOLLGATE_URL: desk.adminUrl,
        TOLLGATE_TOKEN: 'any',
      });
      if (process.env['SHOW_FIGURES'] !== undefined) console.log(`      ${Math.round(performance.now() - begun)} ms`);
      assert.equal(status, 1, 'a difference is above the bound');
      const { counts, costs } = JSON.parse(out) as {
        counts: { model: string; meter: string; difference: number; differenceUsd: string; causes: object[] }[];
        costs: { differenceUsd: string; ofPricesUsd: string }[];
      };
      assert.deepEqual(
        counts.map(({ model, meter, difference, differenceUsd, causes }) => [
          model,
          meter,
          difference,
          differenceUsd,
          causes,
        ]),
        [
          ['large', 'output', 301, '0.00451500', [{ cause: 'left', attempts: 1 }]],
          ['small', 'input', 7_000, '0.02100000', [{ cause: 'failed', attempts: 1 }]],
          ['tiny', 'input', 9, '0.00002700', [{ cause: 'unexplained', attempts: 0 }]],
        ],
      );
      assert.equal(costs[0]?.differenceUsd, '0.02554200');
      assert.equal(costs[0]?.ofPricesUsd, '0.00000000');
    });
  });
}
