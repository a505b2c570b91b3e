import { expect } from 'chai';
import { ask, PATH } from '../support/calls';
import { MODEL, startGateway, type TestGateway } from '../support/gateway';
import { until } from '../support/until';
import { messagesAnswer, startUpstream, type TestUpstream } from '../support/upstream';

const PLAIN = {
  context: 100_000,
  maxOutput: 1_000,
  estimatedMaxTokens: 100,
  tokenizerFactor: 1,
  price: { input: 10, output: 100 },
};

/** Calls for which the vendor reports more tokens than the gateway could expect. */
describe('An upstream that reports more than was held', () => {
  let upstream: TestUpstream;
  let gateway: TestGateway;

  before(async () => {
    upstream = await startUpstream();
    gateway = await startGateway({
      upstreams: {
        acme: { url: upstream.url, models: { [MODEL]: PLAIN } },
        other: { url: upstream.url, models: { other: PLAIN } },
      },
      system: { excess: { freezeAboveUsd: 1 } },
    });
  });
  after(async () => {
    await gateway?.stop();
    await upstream?.stop();
  });
  beforeEach(() => upstream.reset());

  const call = (key: string, more: Record<string, unknown> = {}) =>
    gateway.call(PATH.messages, { key, body: ask(more) });
  const accountOf = async (id: string) => (await gateway.admin('GET', `/admin/v1/accounts/${id}`)).json;
  const operatorsRecord = async (accountId: string) =>
    until('the record is there', async () => {
      const { json } = await gateway.admin('GET', `/admin/v1/usage?account=${accountId}`);
      return json.items[0];
    });

  it('costs the customer at most the hold, and its answer is flagged if the body bounds what it can read', async () => {
    upstream.always(messagesAnswer({ usage: { input: 10, output: 900_000 } }));
    const { accountId, key } = await gateway.newCustomer('10');
    const answered = await call(key, { max_tokens: 16 });
    expect(answered.status).to.equal(200);
    const cost = Number(answered.headers['x-ai-cost']);
    expect(cost).to.be.within(0.0016, 0.01);
    const record = await operatorsRecord(accountId);
    expect(record).to.deep.include({ billing: 'actual', outputTokens: 900_000, flags: ['suspect'] });
    expect(Number(record.cost)).to.equal(cost);
    expect(Number(record.excess)).to.be.closeTo(90.0001 - cost, 1e-7);
    expect(Number((await gateway.balance(key)).balanceUsd)).to.be.closeTo(10 - cost, 1e-9);
    // The customer did not cause the excess.
    expect(await accountOf(accountId)).to.include({ status: 'active', excessUsd: '0.00000000' });
    const { text } = await gateway.admin('GET', '/metrics');
    expect(text).to.match(/tollgate_usage_doubts_total{upstream="acme",kind="suspect"} 1/);
    expect(text).to.match(/tollgate_excess_usd_total{upstream="acme",cause="upstream"} 89.99/);
    expect(gateway.output()).to.contain('reports more usage than the call allows');
    // The customer sees the flag, and not what the platform paid.
    const own = await gateway.record(key, String(answered.headers['request-id']));
    expect(own)
      .to.deep.include({ flags: ['suspect'] })
      .and.not.have.property('excess');
  });

  it('makes the gateway freeze an account if its own requests caused an excess above the bound since it was last unfrozen', async () => {
    // An unknown member makes the vendor read more than the context window that was held.
    upstream.always(messagesAnswer({ usage: { input: 160_000, output: 1 } }));
    const { accountId, key } = await gateway.newCustomer('100');
    const strange = { strange_member: 'reads something that nobody has heard of yet' };
    const first = await call(key, strange);
    expect(first.status).to.equal(200);
    expect(Number(first.headers['x-ai-cost'])).to.be.within(1, 1.02);
    await until('the excess is known', async () => Number((await accountOf(accountId)).excessUsd) > 0.5);
    expect((await accountOf(accountId)).status).to.equal('active');
    expect((await call(key, strange)).status).to.equal(200);
    await until('the account is frozen', async () => (await accountOf(accountId)).status === 'frozen', 20_000);
    upstream.always(messagesAnswer());
    // The ledger learns of the freeze after Postgres has it.
    const refused = await until('its calls are refused', async () => {
      const answered = await call(key);
      return answered.status === 403 ? answered : undefined;
    });
    expect(refused.json.error.code).to.equal('FORBIDDEN');
    const { json } = await gateway.admin('GET', '/admin/v1/audit?limit=5');
    const freeze = json.items.find(({ action }: { action: string }) => action === 'account.freeze');
    expect(freeze).to.include({ subject: `account:${accountId}`, actor: 'excess' });
    expect((await gateway.admin('GET', '/metrics')).text).to.contain('tollgate_excess_freezes_total 1');

    await gateway.admin('POST', `/admin/v1/accounts/${accountId}/unfreeze`);
    expect(await accountOf(accountId)).to.include({ status: 'active', excessUsd: '0.00000000' });
    expect((await call(key)).status).to.equal(200);
  });

  it('uses up the tokens per minute of a key only as far as was held', async () => {
    upstream.always(messagesAnswer({ usage: { input: 10, output: 900_000 } }));
    const { key } = await gateway.newCustomer('10', { tokensPerMinute: 1_000 });
    for (let each = 1; each <= 2; each += 1) expect((await call(key, { max_tokens: 16 })).status).to.equal(200);
  });

  it('is not ejected for suspect answers, however many', async () => {
    const { key } = await gateway.newCustomer('10');
    upstream.always(messagesAnswer({ usage: { input: 10, output: 2_000 } }));
    for (let each = 1; each <= 20; each += 1) await call(key, { model: 'other', max_tokens: 16 });
    const { json } = await gateway.admin('GET', '/admin/v1/upstreams');
    expect(json.items.find(({ name }: { name: string }) => name === 'other').state).to.equal('available');
  });
});
