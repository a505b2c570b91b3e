import { expect } from 'chai';
import { ask, PATH } from '../support/calls';
import { type Answered, MODEL } from '../support/gateway';
import { ADMIN_KEY, type ReportVendor, startReportVendor } from '../support/report-vendors';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { messagesAnswer, messagesStream, neverAnswer } from '../support/upstream';

/** Returns the current day, and assumes that it does not end during the test. */
const today = (): string => new Date().toISOString().slice(0, 10);

describe("A vendor's invoice and the records of real calls", () => {
  const upstream = useUpstream();
  let vendor: ReportVendor;
  let key: string;

  const gateway = useGateway(async () => {
    vendor = await startReportVendor('anthropic');
    const reporting = { credential: { env: 'VENDOR_ADMIN_KEY' }, url: vendor.url, alarmAboveUsd: 0.01 };
    const timeouts = { connect: '1s', headers: '1s', idle: '1s' };
    return {
      env: { VENDOR_ADMIN_KEY: ADMIN_KEY },
      upstreams: { acme: { url: upstream.url, reporting, timeouts } },
    };
  });

  before(async () => {
    ({ key } = await gateway.newCustomer('10'));
  });
  after(async () => {
    await vendor?.close();
  });

  const call = (more: Record<string, unknown> = {}): Promise<Answered> =>
    gateway.call(PATH.messages, { key, body: ask(more) });
  const compare = async () => {
    const days = `from=${today()}&to=${today()}`;
    return (await gateway.admin('GET', `/admin/v1/invoices/acme/comparison?${days}`)).json;
  };

  it('agree if the vendor charges what it reported, including for an operator’s test', async () => {
    upstream.always(messagesAnswer({ usage: { input: 1_000, output: 100 } }));
    const answers = [await call(), await call()];
    upstream.always(messagesStream({ usage: { input: 500, output: 50 } }));
    answers.push(await call({ stream: true }));
    for (const { headers } of answers) await gateway.record(key, headers['x-svc-request-id'] ?? '');
    upstream.always(messagesAnswer({ usage: { input: 20, output: 1 } }));
    expect((await gateway.admin('POST', '/admin/v1/upstreams/acme/test', {})).json).to.include({ ok: true });
    // The invoice may name a model like the configuration with a date, or like the answers.
    vendor.books.usage = [
      { day: today(), apiKeyId: 'apikey_1', model: `${MODEL}-20260801`, input: 2_000, output: 200 },
      { day: today(), apiKeyId: 'apikey_1', model: 'test-model', input: 520, output: 51 },
    ];
    // 2,520 × 3 + 251 × 15 USD per million, in cents.
    vendor.books.costs = [{ day: today(), workspaceId: null, item: 'Claude Usage', amount: '1.1325' }];
    const { counts, costs, causes, isAlarm } = await compare();
    expect(counts).to.deep.equal([]);
    expect(isAlarm).to.equal(false);
    // The platform paid for the operator's test: 20 × 3 + 1 × 15.
    expect(costs[0]).to.include({
      reportedUsd: '0.01132500',
      recordedUsd: '0.01132500',
      differenceUsd: '0.00000000',
      chargedUsd: '0.01125000',
    });
    expect(causes.map((each: { cause: string; attempts: number }) => [each.cause, each.attempts])).to.deep.equal([
      ['answered', 3],
      ['test', 1],
    ]);
  });

  it('differ by attempts that timed out, which the vendor charges but no customer paid; the comparison lists them', async () => {
    upstream.always(neverAnswer());
    const failed = await call({ max_tokens: 16 });
    expect(failed.status).to.equal(504);
    const requestId = failed.headers['x-svc-request-id'] ?? '';
    const attempts = await until('the attempts exist', async () => {
      const { status, json } = await gateway.admin('GET', `/admin/v1/usage/${requestId}/attempts`);
      return status === 200 ? json.items : undefined;
    });
    vendor.books.usage = [{ day: today(), apiKeyId: 'apikey_1', model: MODEL, input: 12_520, output: 251 }];
    vendor.books.costs = [{ day: today(), workspaceId: null, item: 'Claude Usage', amount: '4.1325' }];
    const { counts, costs, isAlarm } = await compare();
    expect(counts).to.have.length(1);
    expect(counts[0]).to.deep.include({
      meter: 'input',
      difference: 10_000,
      differenceUsd: '0.03000000',
      causes: [{ cause: 'failed', attempts: attempts.length }],
    });
    expect(costs[0]).to.include({ differenceUsd: '0.03000000', ofCountsUsd: '0.03000000', ofPricesUsd: '0.00000000' });
    expect(isAlarm).to.equal(true);
  });
});
