import { expect } from 'chai';
import { ask } from '../support/calls';
import type { Answered } from '../support/gateway';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { messagesAnswer, when } from '../support/upstream';

describe('The ledger', () => {
  const upstream = useUpstream();

  const gateway = useGateway(() => ({ upstreams: { acme: { url: upstream.url } } }));
  beforeEach(() => upstream.reset());

  /** Returns the hold of a call of `ask()`. It is read from a 402, so that the test does not repeat the formula. */
  async function holdOf(): Promise<number> {
    const { key } = await gateway.newCustomer('0');
    const answer = await gateway.call('/v1/messages', { key, body: ask() });
    expect(answer.status).to.equal(402);
    expect(answer.json.error).to.include({ type: 'Payment Required', code: 'INSUFFICIENT_BALANCE' });
    expect(answer.json.error.details.availableUsd).to.equal('0.00000000');
    return Math.round(Number(answer.json.error.details.requiredUsd) * 1e8);
  }

  const usd = (e8: number) => (e8 / 1e8).toFixed(8);

  it('admits exactly 10 of 200 parallel calls if the balance suffices for 10', async () => {
    const hold = await holdOf();
    const { key } = await gateway.newCustomer(usd(hold * 10));
    let open = (): void => undefined;
    upstream.always(
      when(new Promise<void>((resolve) => (open = resolve)), messagesAnswer({ usage: { input: 10, output: 5 } })),
    );
    const told: number[] = [];
    const answers: Promise<number>[] = [];
    const call = () => {
      const answer = gateway.call('/v1/messages', { key, body: ask() });
      answers.push(answer.then(({ status }) => told.push(status)));
    };
    const eachIsToldOrOpen = () => told.length + upstream.calls.length === answers.length;
    for (let each = 0; each < 200; each += 1) call();
    await until('each is refused or open', eachIsToldOrOpen, 20_000);
    // On a busy machine the ledger may be late: the call gets 503 and its hold is returned. The test then sends further calls,
    // because the returned money allows them.
    await until('10 are open', async () => {
      if (upstream.calls.length >= 10 || !told.includes(503)) return true;
      call();
      await until('that one is refused or open', eachIsToldOrOpen);
      return false;
    });
    expect(upstream.calls).to.have.length(10);
    expect((await gateway.balance(key)).availableUsd).to.equal('0.00000000');
    open();
    await Promise.all(answers);
    expect(told.filter((status) => status === 200)).to.have.length(10);
    expect(told.filter((status) => ![200, 402, 503].includes(status))).to.have.length(0);
    expect(upstream.calls).to.have.length(10);
    await until('all is settled', async () => (await gateway.balance(key)).heldUsd === '0.00000000');
    expect((await gateway.balance(key)).balanceUsd).to.equal(usd(hold * 10 - 10 * 10_500));
  });

  it('answers 429 with Retry-After to a key above its calls per minute, and no upstream is called', async () => {
    const { key, keyId } = await gateway.newCustomer('10', { callsPerMinute: 2 });
    upstream.always(messagesAnswer());
    for (let each = 0; each < 2; each += 1) {
      expect((await gateway.call('/v1/messages', { key, body: ask() })).status).to.equal(200);
    }
    const answer = await gateway.call('/v1/messages', { key, body: ask() });
    expect(answer.status).to.equal(429);
    expect(answer.json.error).to.include({ type: 'rate_limit_error', code: 'KEY_RATE_LIMITED', retryable: true });
    expect(Number(answer.headers['retry-after'])).to.be.within(1, 30);
    expect(upstream.calls).to.have.length(2);
    await gateway.admin('PATCH', `/admin/v1/keys/${keyId}`, { callsPerMinute: null });
    expect((await gateway.call('/v1/messages', { key, body: ask() })).status).to.equal(200);
  });

  it('counts refused calls towards the calls per minute of their key, whatever the reason of the refusal', async () => {
    for (const [body, status] of [
      [ask(), 402],
      ['no JSON', 400],
      [ask({ model: 'nothing-like-it' }), 400],
    ] as const) {
      const { key } = await gateway.newCustomer('0', { callsPerMinute: 3 });
      const answers: Answered[] = [];
      for (let each = 0; each < 5; each += 1) answers.push(await gateway.call('/v1/messages', { key, body }));
      expect(answers.map((answer) => answer.status)).to.deep.equal([status, status, status, 429, 429]);
      expect(answers[4]?.json.error.code).to.equal('KEY_RATE_LIMITED');
      expect(Number(answers[4]?.headers['retry-after'])).to.be.within(1, 20);
    }
  });

  it('writes few usage records for a thousand refused calls of a key, and their counts add up to all calls', async () => {
    const { key } = await gateway.newCustomer('0');
    const startedMs = Date.now();
    for (let round = 0; round < 20; round += 1) {
      const calls = Array.from({ length: 50 }, () => gateway.call('/v1/messages', { key, body: ask() }));
      for (const { status } of await Promise.all(calls)) expect(status).to.be.oneOf([402, 503]);
    }
    const seconds = Math.ceil((Date.now() - startedMs) / 1_000) + 1;
    const records = await until('all are written', async () => {
      const { items } = (await gateway.call('/v1/usage?limit=1000', { method: 'GET', key })).json;
      const calls = items.reduce((sum: number, each: { calls: number }) => sum + each.calls, 0);
      return calls === 1_000 ? items : undefined;
    });
    // A call whose reserve Redis did not answer in time has its own record.
    const alike = records.filter(({ errorCode }: { errorCode: string }) => errorCode === 'INSUFFICIENT_BALANCE');
    expect(alike.length).to.be.at.most(6 * seconds);
    const csv = (await gateway.call('/v1/usage.csv', { method: 'GET', key })).text.trim().split('\r\n');
    expect(csv).to.have.length(records.length + 1);
    const column = (name: string) => {
      const at = csv[0]?.split(',').indexOf(name) ?? -1;
      return csv.slice(1).reduce((sum, line) => sum + Number(line.split(',')[at]), 0);
    };
    expect(column('calls')).to.equal(1_000);
    expect(column('cost')).to.equal(0);
  });

  it('refuses a key at its daily limit until the limit is raised', async () => {
    const hold = await holdOf();
    const { key, keyId } = await gateway.newCustomer('10', { dailyLimit: usd(hold - 1), monthlyLimit: '5' });
    upstream.always(messagesAnswer());
    const answer = await gateway.call('/v1/messages', { key, body: ask() });
    expect(answer.status).to.equal(402);
    expect(answer.json.error.code).to.equal('KEY_LIMIT_EXCEEDED');
    const raised = await gateway.admin('PATCH', `/admin/v1/keys/${keyId}`, { dailyLimit: usd(hold) });
    expect(raised.json).to.include({ dailyLimit: usd(hold), monthlyLimit: '5.00000000', callsPerMinute: null });
    expect((await gateway.call('/v1/messages', { key, body: ask() })).status).to.equal(200);
  });

  it('refuses a key at its limit although the account has money, but not other keys of the account', async () => {
    const hold = await holdOf();
    const { accountId, key } = await gateway.newCustomer('10', { balanceLimit: usd(hold - 1) });
    const other = await gateway.admin('POST', `/admin/v1/accounts/${accountId}/keys`, { name: 'other' });
    upstream.always(messagesAnswer());
    const answer = await gateway.call('/v1/messages', { key, body: ask() });
    expect(answer.status).to.equal(402);
    expect(answer.json.error.code).to.equal('KEY_LIMIT_EXCEEDED');
    expect((await gateway.call('/v1/messages', { key: other.json.key, body: ask() })).status).to.equal(200);
  });

  it('counts the charges of a key towards the limit of the key', async () => {
    const hold = await holdOf();
    const { key } = await gateway.newCustomer('10', { balanceLimit: usd(hold + 10_499) });
    upstream.always(messagesAnswer({ usage: { input: 10, output: 5 } }));
    expect((await gateway.call('/v1/messages', { key, body: ask() })).status).to.equal(200);
    const second = await gateway.call('/v1/messages', { key, body: ask() });
    expect(second.json.error.code).to.equal('KEY_LIMIT_EXCEEDED');
    expect((await gateway.balance(key)).key).to.include({ spentUsd: '0.00010500', heldUsd: '0.00000000' });
  });

  it('refuses a revoked key from the next request on, at every route and with the same message', async () => {
    const { key, keyId } = await gateway.newCustomer('10');
    upstream.always(messagesAnswer());
    expect((await gateway.call('/v1/messages', { key, body: ask() })).status).to.equal(200);
    expect((await gateway.admin('DELETE', `/admin/v1/keys/${keyId}`)).status).to.be.oneOf([200, 204]);
    for (const answer of [
      await gateway.call('/v1/messages', { key, body: ask() }),
      await gateway.call('/v1/messages', { key, body: ask({ model: 'nobody-has-this' }) }),
      await gateway.call('/v1/messages', { key, body: '{' }),
      await gateway.call('/v1/balance', { method: 'GET', key }),
      await gateway.call('/v1/models', { method: 'GET', key }),
      await gateway.call('/v1/usage', { method: 'GET', key }),
    ]) {
      expect(answer.status).to.equal(401);
      expect(answer.json.error).to.include({ type: 'authentication_error', code: 'INVALID_API_KEY' });
    }
  });

  it("applies a key's list of models to the key's first call, and applies a changed list to the next call", async () => {
    const { key, keyId } = await gateway.newCustomer('10', { allowedModels: ['another-model'] });
    upstream.always(messagesAnswer());
    const refused = await gateway.call('/v1/messages', { key, body: ask() });
    expect(refused.status).to.equal(400);
    expect(refused.json.error).to.include({ code: 'MODEL_NOT_ALLOWED', param: 'model' });
    await gateway.admin('PATCH', `/admin/v1/keys/${keyId}`, { allowedModels: ['acme-large'] });
    expect((await gateway.call('/v1/messages', { key, body: ask() })).status).to.equal(200);
  });

  it('refuses a frozen account without a charge, and serves it again after unfreezing', async () => {
    const { key, accountId } = await gateway.newCustomer('10');
    upstream.always(messagesAnswer());
    await gateway.admin('POST', `/admin/v1/accounts/${accountId}/freeze`);
    expect((await gateway.call('/v1/messages', { key, body: ask() })).status).to.equal(403);
    await gateway.admin('POST', `/admin/v1/accounts/${accountId}/unfreeze`);
    expect((await gateway.call('/v1/messages', { key, body: ask() })).status).to.equal(200);
  });

  it('has metrics of operation durations, refusals and costs above holds', async () => {
    const read = async (metric: string) => {
      const { text } = await gateway.admin('GET', '/metrics');
      const line = text.split('\n').find((each) => each.startsWith(`${metric} `));
      return Number(line?.slice(metric.length) ?? '0');
    };
    const METRICS = [
      'tollgate_ledger_reserve_seconds_count',
      'tollgate_ledger_settle_seconds_count',
      'tollgate_ledger_refusals_total{reason="insufficient_balance"}',
      'tollgate_excess_usd_total{upstream="acme",cause="upstream"}',
      'tollgate_ledger_shortfalls_total',
      'tollgate_ledger_shortfall_usd_total',
      'tollgate_ledger_expired_total',
      'tollgate_ledger_late_settles_total',
    ];
    const readAll = () => Promise.all(METRICS.map(read));
    const hold = await holdOf();
    const before = await readAll();
    const { key } = await gateway.newCustomer(usd(hold));
    upstream.always(messagesAnswer({ usage: { input: 100_000, output: 0 } }));
    expect((await gateway.call('/v1/messages', { key, body: ask() })).status).to.equal(200);
    expect((await gateway.call('/v1/messages', { key, body: ask() })).status).to.equal(402);
    const grown = (await readAll()).map((value, index) => Math.round((value - (before[index] ?? 0)) * 1e8));
    const unit = 1e8;
    expect(grown).to.deep.equal([2 * unit, unit, unit, 0.3 * unit - hold, 0, 0, 0, 0]);
  });
});
