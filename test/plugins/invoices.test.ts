import assert from 'node:assert/strict';
import pino from 'pino';
import { v7 } from 'uuid';
import { metrics } from '../../core/base/metrics';
import { buildCatalog, type Catalog, type Reporting, type Upstream } from '../../core/catalog/catalog';
import { insertAttempts, insertUsage } from '../../core/ledger/outbox/rows';
import { openEgress } from '../../core/wire/egress';
import { utcDayOf } from '../../plugins/invoices/report';
import { compareLastDay } from '../../plugins/invoices/watch';
import { usageRecord } from '../store/ledger/ledger-fixture';
import { sampleModel, samplePrice, sampleUpstream } from '../support/catalog-samples';
import { runTollgate } from '../support/command-line';
import { DATABASES } from '../support/databases';
import { openDesk, type TestDesk } from '../support/desk';
import { centsOf, countedAttempt, INPUT_RATE, OUTPUT_RATE, sampleAttempt, writeDay } from '../support/planted-day';
import { ADMIN_KEY, type ReportVendor, startReportVendor } from '../support/report-vendors';

const DAY = '2026-11-20';
const NEXT = '2026-11-21';
const HOUR_MS = 3_600_000;

function reportingOf(vendor: ReportVendor, more: Partial<Reporting> = {}): Reporting {
  return {
    vendor: 'anthropic',
    url: new URL(vendor.url),
    credential: ADMIN_KEY,
    missing: undefined,
    apiKeyId: undefined,
    workspaceId: undefined,
    alarmAboveE8: 100_000_000n,
    ...more,
  };
}

for (const { name } of DATABASES) {
  describe(`invoices on ${name}`, function () {
    this.timeout(120_000);
    let anthropic: ReportVendor;
    let openai: ReportVendor;
    let desk: TestDesk;
    let catalog: Catalog;
    const egress = openEgress();

    before(async () => {
      anthropic = await startReportVendor('anthropic');
      openai = await startReportVendor('openai');
      const price = samplePrice(INPUT_RATE, OUTPUT_RATE);
      const models = ['large', 'small'].map((model) => sampleModel(model, { price }));
      const upstream = (its: string, reporting?: Reporting): Upstream =>
        sampleUpstream(
          its,
          models.map((each) => ({ ...each, name: each.name })),
          { allowPrivate: true, reporting },
        );
      catalog = buildCatalog([
        upstream('acme', reportingOf(anthropic, { apiKeyId: 'apikey_acme' })),
        upstream('other', reportingOf(anthropic, { workspaceId: 'wrkspc_one' })),
        upstream('chatty', reportingOf(openai, { vendor: 'openai', alarmAboveE8: 0n })),
        upstream('silent'),
        upstream('unset', reportingOf(anthropic, { credential: undefined, missing: 'ADMIN_KEY is not set' })),
      ]);
      desk = await openDesk(name as 'Postgres', { catalog, egress });
    });
    after(async () => {
      await desk.close();
      await egress.close();
      await anthropic.close();
      await openai.close();
    });
    beforeEach(async () => {
      await desk.database('upstream_attempts').delete();
      for (const vendor of [anthropic, openai]) {
        Object.assign(vendor.books, { usage: [], costs: [] });
        Object.assign(vendor, { pageSize: 31 });
        vendor.mishaps.splice(0);
        vendor.asked.splice(0);
      }
    });

    const compare = async (upstream = 'acme', days = `from=${DAY}`) =>
      (await desk.admin('GET', `/invoices/${upstream}/comparison?${days}`)).body;
    const fetch = (upstream = 'acme', days = `from=${DAY}&to=${DAY}`) =>
      desk.admin('GET', `/invoices/${upstream}?${days}`);
    const tollgate = (...args: string[]) =>
      runTollgate(['invoices', ...args], { TOLLGATE_URL: desk.adminUrl, TOLLGATE_TOKEN: 'any' });
    const write = (...made: Parameters<typeof insertAttempts>[1][number]['made']) =>
      insertAttempts(desk.database, [{ requestId: `req_${Math.random()}`, accountId: null, made }]);

    describe('the fetch of reports', () => {
      it("reads all pages of Anthropic's reports, by day, key, model and workspace", async () => {
        anthropic.pageSize = 1;
        const counts = { input: 10, cacheRead: 20, cacheWrite: 30, cacheWrite1h: 40, output: 50, webSearch: 6 };
        anthropic.books.usage.push(
          { day: DAY, apiKeyId: 'apikey_acme', model: 'large', ...counts },
          { day: NEXT, apiKeyId: 'apikey_acme', model: 'small', input: 1 },
          { day: NEXT, apiKeyId: 'apikey_other', model: 'small', input: 1_000 },
        );
        anthropic.books.costs.push(
          { day: DAY, workspaceId: null, item: 'Claude Usage', amount: '123.78912' },
          { day: NEXT, workspaceId: 'wrkspc_one', item: 'Claude Usage', amount: '0.000001' },
        );
        const { body } = await fetch('acme', `from=${DAY}&to=${NEXT}`);
        assert.deepEqual(
          body.usage.map((each: { day: string; model: string; counts: object }) => [each.day, each.model, each.counts]),
          [
            [DAY, 'large', counts],
            [NEXT, 'small', { input: 1, cacheRead: 0, cacheWrite: 0, cacheWrite1h: 0, output: 0, webSearch: 0 }],
          ],
        );
        assert.deepEqual(
          body.costs.map((each: { workspaceId: string; reportedUsd: string }) => [each.workspaceId, each.reportedUsd]),
          [
            [null, '1.23789120'],
            ['wrkspc_one', '0.00000001'],
          ],
        );
        const [first] = anthropic.asked;
        assert.deepEqual(first?.url.searchParams.getAll('group_by[]'), [
          'api_key_id',
          'workspace_id',
          'model',
          'service_tier',
        ]);
        assert.equal(first?.url.searchParams.get('bucket_width'), '1d');
        assert.equal(anthropic.asked.length, 4, 'two pages of each report');
      });

      it("reads OpenAI's reports, subtracts parts from the sums that contain them, and keeps every digit of an amount", async () => {
        openai.books.usage.push({
          day: DAY,
          apiKeyId: 'key_a',
          model: 'large',
          input: 10,
          cacheRead: 20,
          cacheWrite: 5,
          output: 50,
        });
        openai.books.usage.push({ day: DAY, apiKeyId: 'key_a', model: 'embed', input: 7, isEmbedding: true });
        openai.books.costs.push(
          { day: DAY, workspaceId: 'proj_a', item: 'large, input', amount: '90071992.00000001' },
          { day: DAY, workspaceId: 'proj_a', item: 'large, output', amount: '1.5e-7' },
        );
        const { body } = await fetch('chatty');
        assert.deepEqual(body.usage[0].counts, {
          ...{ input: 10, cacheRead: 20, cacheWrite: 5, audioInput: 0, audioCacheRead: 0, output: 50, audioOutput: 0 },
        });
        assert.deepEqual(
          [body.usage[1].model, body.usage[1].counts.input, body.usage[1].counts.output],
          ['embed', 7, 0],
        );
        assert.deepEqual(
          body.costs.map((each: { reportedUsd: string }) => each.reportedUsd),
          ['90071992.00000001', '0.00000015'],
        );
      });

      it("waits as long as a vendor's Retry-After, and retries", async () => {
        anthropic.mishaps.push({ status: 429, headers: { 'retry-after': '1' }, body: '{}' }, { status: 503, body: '' });
        const { status } = await fetch();
        assert.equal(status, 200);
        assert.equal(anthropic.asked.length, 4, 'two tries more than the two reports');
      });

      it('waits at most half a minute; for a longer Retry-After the fetch fails and says when to retry', async () => {
        anthropic.mishaps.push({ status: 429, headers: { 'retry-after': '3600' }, body: '{}' });
        const { status, body } = await fetch();
        assert.deepEqual([status, body.error.code], [502, 'REPORT_UNAVAILABLE']);
        assert.match(body.error.message, /429.*ask again in 3600 s/);
      });

      it('reports what the vendor refused, without the credential', async () => {
        anthropic.mishaps.push({ status: 401, body: `{"error":"${ADMIN_KEY} is not known"}` });
        const { status, body } = await fetch();
        assert.deepEqual([status, body.error.code], [502, 'REPORT_UNAVAILABLE']);
        assert.match(body.error.message, /"acme".*401.*\[credential\] is not known/);
        assert.equal(anthropic.asked.length, 1, 'a wrong key does not become right');
      });

      const malformed: Readonly<Record<string, string>> = {
        'no JSON': '{"data": [',
        'a bucket without results': '{"data": [{"starting_at": "2026-11-20T00:00:00Z"}], "has_more": false}',
        'a negative count':
          '{"data": [{"starting_at": "2026-11-20T00:00:00Z", "results": [{"output_tokens": -1}]}], "has_more": false}',
        'a count with a fraction':
          '{"data": [{"starting_at": "2026-11-20T00:00:00Z", "results": [{"output_tokens": 1.5}]}], "has_more": false}',
        'more pages without a next one': '{"data": [], "has_more": true, "next_page": null}',
      };
      for (const [what, body] of Object.entries(malformed)) {
        it(`refuses a report with ${what}`, async () => {
          anthropic.mishaps.push({ status: 200, body });
          const answer = await fetch();
          assert.deepEqual(
            [answer.status, answer.body.error.code],
            [502, 'REPORT_UNAVAILABLE'],
            JSON.stringify(answer.body),
          );
        });
      }

      it('refuses an amount that is not a decimal, and another currency', async () => {
        for (const cost of ['"amount": "12,5"', '"amount": "NaN"', '"amount": "1", "currency": "EUR"']) {
          const bucket = `{"starting_at": "${DAY}T00:00:00Z", "results": [{${cost}}]}`;
          anthropic.mishaps.push(
            { status: 200, body: '{"data": [], "has_more": false}' },
            { status: 200, body: `{"data": [${bucket}], "has_more": false}` },
          );
          assert.equal((await fetch()).status, 502, cost);
        }
      });

      it('reports what is missing: the upstream, its `reporting` settings, or the credential for its reports', async () => {
        assert.equal((await fetch('nobody')).status, 404);
        assert.match((await fetch('silent')).body.error.message, /has no `reporting`/);
        const unset = await fetch('unset');
        assert.deepEqual([unset.status, unset.body.error.code], [409, 'CONFLICT']);
        assert.match(unset.body.error.message, /ADMIN_KEY is not set/);
      });

      it('refuses invalid days, and ranges of more than a month', async () => {
        for (const days of [
          'from=2026-02-30',
          'from=yesterday',
          'from=2026-11-02&to=2026-11-01',
          'from=2026-01-01&to=2026-02-01',
        ])
          assert.equal((await fetch('acme', days)).body.error.code, 'INVALID_FIELD', days);
      });

      it('prints the tables of usage and of costs on the command line, for yesterday by default', async () => {
        const yesterday = utcDayOf(Date.now() - 86_400_000);
        anthropic.books.usage.push({ day: yesterday, apiKeyId: 'apikey_acme', model: 'large', input: 12 });
        anthropic.books.costs.push({ day: yesterday, workspaceId: null, item: 'Claude Usage', amount: '3.6' });
        const { status, out } = await tollgate('fetch', 'acme');
        assert.equal(status, 0);
        assert.match(out, new RegExp(`^${yesterday} +apikey_acme +large +standard +input +12$`, 'm'));
        assert.match(out, new RegExp(`^${yesterday} +- +0\\.03600000 +Claude Usage$`, 'm'));
      });
    });

    describe('the comparison of reports with records', () => {
      it('finds nothing on a day for which vendor and records agree', async () => {
        const { usage, costE14 } = await writeDay(desk.database, DAY, 500);
        anthropic.books.usage.push(...usage);
        anthropic.books.costs.push({ day: DAY, workspaceId: null, item: 'all', amount: centsOf(costE14) });
        const { counts, costs, isAlarm } = await compare();
        assert.deepEqual(counts, []);
        assert.equal(costs[0].differenceUsd, '0.00000000');
        assert.equal(isAlarm, false);
      });

      it('finds exactly the three differences that the test planted, with their causes', async () => {
        const { usage, costE14 } = await writeDay(desk.database, DAY, 500);
        // A client disconnected, and the vendor produced 300 tokens more than the estimate.
        await write(countedAttempt(DAY, 600, { input: 50, output: 20 }, { cause: 'left', isReported: false }));
        // An attempt timed out, and the vendor charges its input.
        await write(
          sampleAttempt(DAY, 601, { model: 'small', cause: 'failed', outcome: 'timeout', isReported: false }),
        );
        const [large, small] = usage as [(typeof usage)[0], (typeof usage)[0]];
        anthropic.books.usage.push(
          { ...large, input: (large.input ?? 0) + 50, output: (large.output ?? 0) + 320 },
          { ...small, input: (small.input ?? 0) + 7_000 },
          // Another program used the key.
          { day: DAY, apiKeyId: 'apikey_acme', model: 'never-asked', cacheRead: 9 },
        );
        const more = (50n + 7_000n) * INPUT_RATE + 320n * OUTPUT_RATE;
        anthropic.books.costs.push({ day: DAY, workspaceId: null, item: 'all', amount: centsOf(costE14 + more) });
        const { counts, costs, causes } = await compare();
        assert.deepEqual(
          counts.map((each: Record<string, unknown>) => [
            ...[each['model'], each['meter'], each['difference'], each['differenceUsd'], each['causes']],
          ]),
          [
            ['large', 'output', 300, '0.00450000', [{ cause: 'left', attempts: 1 }]],
            ['never-asked', 'cacheRead', 9, null, [{ cause: 'unexplained', attempts: 0 }]],
            ['small', 'input', 7_000, '0.02100000', [{ cause: 'failed', attempts: 1 }]],
          ],
        );
        assert.equal(costs[0].differenceUsd, '0.02550000', '0.0045 and 0.0210 USD');
        const of = (cause: string) => causes.find((each: { cause: string }) => each.cause === cause);
        assert.deepEqual([of('left').uncertain, of('failed').uncertain, of('failed').attempts], [1, 1, 11]);
        assert.deepEqual([of('mirror').attempts, of('test').attempts], [1, 1]);
      });

      it('distinguishes a different price from a different count if the vendor reports the same tokens at another price', async () => {
        await write(countedAttempt(DAY, 1, { input: 1_000_000, output: 0 }));
        anthropic.books.usage.push({ day: DAY, apiKeyId: 'apikey_acme', model: 'large', input: 1_000_100 });
        anthropic.books.costs.push({ day: DAY, workspaceId: null, item: 'all', amount: '310.03' });
        const [cost] = (await compare()).costs;
        assert.deepEqual(
          [cost.recordedUsd, cost.differenceUsd, cost.ofCountsUsd, cost.ofPricesUsd],
          ['3.00000000', '0.10030000', '0.00030000', '0.10000000'],
        );
      });

      it("never names a cause that cannot explain the difference: a failed attempt without counts cannot lower the vendor's count", async () => {
        await write(countedAttempt(DAY, 1, { input: 1_000, output: 10 }));
        await write(sampleAttempt(DAY, 2, { cause: 'failed', outcome: 'reset', isReported: false }));
        await write(countedAttempt(DAY, 3, { input: 0, output: 500 }, { cause: 'estimated', isReported: false }));
        anthropic.books.usage.push({ day: DAY, apiKeyId: 'apikey_acme', model: 'large', input: 900, output: 310 });
        assert.deepEqual(
          (await compare()).counts.map((each: Record<string, unknown>) => [
            each['meter'],
            each['difference'],
            each['causes'],
          ]),
          [
            ['input', -100, [{ cause: 'unexplained', attempts: 0 }]],
            ['output', -200, [{ cause: 'estimated', attempts: 1 }]],
          ],
        );
      });

      it('names calls of killed processes, which have no attempts', async () => {
        const { accountId, keyId } = await desk.customer();
        const payer = { accountId, keyId };
        const record = {
          createdAt: `${DAY}T10:00:00.000Z`,
          modelRequested: 'small',
          model: undefined,
          upstream: undefined,
          billing: 'expired' as const,
        };
        const expired = { record: JSON.stringify(usageRecord(payer, record)), rid: v7(), costE8: 0n };
        await insertUsage(desk.database, [expired]);
        anthropic.books.usage.push({ day: DAY, apiKeyId: 'apikey_acme', model: 'small', input: 700 });
        const [difference, ...more] = (await compare()).counts;
        await desk.database('usage_records').delete();
        assert.deepEqual([difference.causes, more], [[{ cause: 'expired', attempts: 1 }], []]);
      });

      it("counts a mirrored call and an operator's test call as the vendor does, if the upstream reported their usage", async () => {
        for (const cause of ['mirror', 'test'] as const)
          await write(countedAttempt(DAY, 1, { input: 100, output: 10 }, { cause }));
        anthropic.books.usage.push({ day: DAY, apiKeyId: 'apikey_acme', model: 'large', input: 200, output: 20 });
        anthropic.books.costs.push({ day: DAY, workspaceId: null, item: 'all', amount: '0.09' });
        const { counts, costs } = await compare();
        assert.deepEqual(counts, []);
        assert.equal(costs[0].differenceUsd, '0.00000000');
        assert.equal(costs[0].chargedUsd, '0.00000000', 'nobody paid for them');
      });

      it('compares only the costs of one workspace if the configuration names one', async () => {
        await write(countedAttempt(DAY, 1, { input: 100, output: 0 }, { upstream: 'other' }));
        anthropic.books.usage.push({ day: DAY, apiKeyId: 'any', model: 'large', input: 100 });
        anthropic.books.costs.push(
          { day: DAY, workspaceId: 'wrkspc_one', item: 'all', amount: '0.03' },
          { day: DAY, workspaceId: null, item: 'all', amount: '999' },
        );
        const [cost] = (await compare('other')).costs;
        assert.deepEqual([cost.reportedUsd, cost.differenceUsd], ['0.00030000', '0.00000000']);
      });

      it('assigns each attempt to its day in UTC', async () => {
        const at = (startedAt: string) => ({
          ...countedAttempt(DAY, 1, { input: 10, output: 0 }),
          startedAtMs: Date.parse(startedAt),
        });
        await write(at(`${DAY}T00:00:00.000Z`), at(`${DAY}T23:59:59.999Z`), at(`${NEXT}T00:00:00.000Z`));
        anthropic.books.usage.push(
          { day: DAY, apiKeyId: 'apikey_acme', model: 'large', input: 20 },
          { day: NEXT, apiKeyId: 'apikey_acme', model: 'large', input: 10 },
        );
        assert.deepEqual((await compare('acme', `from=${DAY}&to=${NEXT}`)).counts, []);
      });

      it('prints the tables on the command line, and exits with an error if a difference exceeds `alarmAboveUsd`', async () => {
        await write(countedAttempt(DAY, 1, { input: 1_000_000, output: 0 }));
        anthropic.books.usage.push({ day: DAY, apiKeyId: 'apikey_acme', model: 'large', input: 1_500_000 });
        anthropic.books.costs.push({ day: DAY, workspaceId: null, item: 'all', amount: '450' });
        const high = await tollgate('compare', 'acme', '--from', DAY);
        assert.equal(high.status, 1, high.notes);
        assert.match(
          high.out,
          /^2026-11-20 +4\.50000000 +3\.00000000 +1\.50000000 +1\.50000000 +0\.00000000 +0\.00000000 +yes$/m,
        );
        assert.match(high.out, /^2026-11-20 +large +input +1500000 +1000000 +500000 +1\.50000000 +unexplained$/m);
        assert.match(high.out, /^2026-11-20 +answered +1 +0 +3\.00000000$/m);
        const json = JSON.parse((await tollgate('compare', 'acme', '--from', DAY, '--json')).out);
        assert.equal(json.counts.length, 1);
        assert.equal((await tollgate('compare', 'acme', '--from', NEXT)).status, 0);
      });
    });

    describe('the daily watch', () => {
      const at = (time: string) => Date.parse(`${NEXT}T${time}Z`);
      const lines: { level: number; msg: string; counts?: string[]; differenceUsd?: string }[] = [];
      const ofAcme = () => ({ ...catalog, upstreams: catalog.upstreams.filter((each) => each.name === 'acme') });
      const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
      const look = (time: string) =>
        compareLastDay({ database: desk.database, egress, catalog: ofAcme(), log }, 12 * HOUR_MS, at(time));
      const metricOf = async (metric: string) => {
        const { values = [] } = (await metrics.getSingleMetric(metric)?.get()) ?? {};
        return values.find(({ labels }) => labels['upstream'] === 'acme')?.value ?? 0;
      };

      beforeEach(async () => {
        lines.splice(0);
        await desk.database('invoice_days').delete();
        await write(countedAttempt(DAY, 1, { input: 1_000_000, output: 0 }));
        anthropic.books.usage.push({ day: DAY, apiKeyId: 'apikey_acme', model: 'large', input: 2_000_000 });
        anthropic.books.costs.push({ day: DAY, workspaceId: null, item: 'all', amount: '600' });
      });

      it('raises an alarm for a difference above `alarmAboveUsd`, once a day', async () => {
        const before = await metricOf('tollgate_invoice_alarms_total');
        await look('12:00:00');
        await look('13:00:00');
        const told = lines.filter(({ level }) => level === 50);
        assert.deepEqual(
          told.map(({ differenceUsd, counts }) => [differenceUsd, counts]),
          [['3.00000000', ['large input 1000000: unexplained']]],
        );
        assert.equal((await metricOf('tollgate_invoice_alarms_total')) - before, 1);
        assert.equal(await metricOf('tollgate_invoice_difference_usd'), 3);
        const [row] = await desk.database('invoice_days').where({ upstream: 'acme' });
        assert.equal(String(row.difference_e8), '300000000');
        const [event, ...others] = await desk.database('events').where({ type: 'invoice.differs' });
        assert.deepEqual(event.data, { upstream: 'acme', day: DAY, differenceUsd: '3.00000000' });
        assert.deepEqual(others, []);
      });

      it('retries after a report could not be read, and logs it', async () => {
        const before = await metricOf('tollgate_invoice_failures_total');
        anthropic.mishaps.push({ status: 401, body: '{}' });
        await look('12:00:00');
        assert.equal((await metricOf('tollgate_invoice_failures_total')) - before, 1);
        assert.ok(lines.some(({ level, msg }) => level === 40 && msg.includes('could not be compared')));
        await look('13:00:00');
        assert.equal(lines.filter(({ level }) => level === 50).length, 1);
      });

      it('skips a day that another process has claimed, until that process has been dead for half an hour', async () => {
        await desk.database.raw(`INSERT INTO invoice_days (upstream, day) VALUES ('acme', '${DAY}')`);
        await look('12:00:00');
        assert.deepEqual(
          lines.filter(({ level }) => level === 50),
          [],
        );
        await desk.database.raw(
          `UPDATE invoice_days SET claimed_at = now() - interval '31 minutes' WHERE upstream = 'acme'`,
        );
        await look('12:00:00');
        assert.equal(lines.filter(({ level }) => level === 50).length, 1);
      });
    });
  });
}
