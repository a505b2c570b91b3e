import { expect } from 'chai';
import { ask, PATH } from '../support/calls';
import { MODEL, PRICE } from '../support/gateway';
import { setPolicy } from '../support/policy-settings';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { messagesAnswer } from '../support/upstream';

const USAGE = { input: 100, output: 50 };
const VENDOR_USD = '0.00105000';

const CUSTOMER_PRICES = {
  partner: { factor: 2, models: { [MODEL]: { price: { input: 6, output: 40 } } } },
  passing: { models: { other: { price: { input: 1, output: 1 } } } },
};

describe('Customers with a markup', () => {
  const upstream = useUpstream();

  const gateway = useGateway(() => ({
    upstreams: {
      acme: {
        url: upstream.url,
        models: { [MODEL]: { price: { ...PRICE, tiers: { priority: { factor: 2 } } } }, other: {}, staged: {} },
      },
      second: { url: upstream.url, models: { staged: {} } },
    },
    configure: (config) => {
      config['customerPrices'] = CUSTOMER_PRICES;
      const change = { upstreams: { model: 'staged', add: ['second'] } };
      config['rollouts'] = { second: { change, stages: [{ share: 50, hold: '1h' }] } };
      setPolicy(config, 'reserve-settle', { onInsufficient: 'clamp' }, 'cost');
    },
  }));
  beforeEach(() => {
    upstream.reset();
    upstream.always(messagesAnswer({ usage: USAGE }));
  });

  async function newCustomer(markup: { account?: string; key?: string }, usd = '10') {
    const { json: account } = await gateway.admin('POST', '/admin/v1/accounts', { name: 'm', markup: markup.account });
    const credit = { amountUsd: usd, idempotencyKey: account.id };
    if (usd !== '0') await gateway.admin('POST', `/admin/v1/accounts/${account.id}/credits`, credit);
    const wanted = { name: 'k', markup: markup.key };
    const { json: made } = await gateway.admin('POST', `/admin/v1/accounts/${account.id}/keys`, wanted);
    return { accountId: account.id as string, keyId: made.id as string, key: made.key as string };
  }

  const call = (key: string, more: Record<string, unknown> = {}, path: string = PATH.messages) =>
    gateway.call(path, { key, body: ask(more) });

  async function requiredUsd(key: string): Promise<number> {
    const { status, json } = await call(key);
    expect(status).to.equal(402);
    return Number(json.error.details.requiredUsd);
  }

  it('pay the price times the factor of their account, in hold, charge, balance and record', async () => {
    const plain = await requiredUsd((await newCustomer({}, '0')).key);
    const dearer = await requiredUsd((await newCustomer({ account: '1.5' }, '0')).key);
    expect(dearer / plain).to.be.closeTo(1.5, 1e-6);

    const { accountId, key } = await newCustomer({ account: '1.5' });
    const answered = await call(key);
    expect(answered.headers['x-ai-cost']).to.equal('0.00157500');
    expect(await gateway.balance(key)).to.include({ balanceUsd: '9.99842500' });
    const record = await until('the record is there', async () => {
      const { json } = await gateway.admin('GET', `/admin/v1/usage?account=${accountId}`);
      return json.items[0];
    });
    expect(record).to.include({ cost: '0.00157500', upstreamCost: VENDOR_USD, excess: null });
    const own = await gateway.record(key, String(answered.headers['request-id']));
    expect(own).to.include({ cost: '0.00157500' }).and.not.have.property('upstreamCost');
  });

  it('pay the price list of their key instead of the factor of their account, and see those prices', async () => {
    const { key } = await newCustomer({ account: '1.5', key: 'partner' });
    expect((await call(key)).headers['x-ai-cost']).to.equal('0.00260000');
    // The list has no price for this model, so the factor of the list applies.
    expect((await call(key, { model: 'other' })).headers['x-ai-cost']).to.equal('0.00210000');
    const { json } = await gateway.call('/v1/models', { method: 'GET', key });
    const prices = json.data.map((each: { id: string; price_per_million: object }) => [
      each.id,
      each.price_per_million,
    ]);
    const shown = new Map<string, Record<string, string>>(prices);
    expect(shown.get(MODEL)).to.include({ input: '6.00000000', output: '40.00000000' });
    expect(shown.get('other')).to.include({ input: '6.00000000', output: '30.00000000' });
  });

  it('pay a changed markup with each of their keys as soon as the change was answered', async () => {
    const { accountId, key } = await newCustomer({});
    const { json: second } = await gateway.admin('POST', `/admin/v1/accounts/${accountId}/keys`, { name: 'second' });
    for (const each of [key, second.key]) expect((await call(each)).headers['x-ai-cost']).to.equal(VENDOR_USD);
    const changed = await gateway.admin('PATCH', `/admin/v1/accounts/${accountId}`, { markup: 'partner', name: 'n' });
    expect([changed.status, changed.json.markup, changed.json.name]).to.deep.equal([200, 'partner', 'n']);
    const { json: third } = await gateway.admin('POST', `/admin/v1/accounts/${accountId}/keys`, { name: 'third' });
    for (const each of [key, second.key, third.key])
      expect((await call(each)).headers['x-ai-cost']).to.equal('0.00260000');
    await gateway.admin('PATCH', `/admin/v1/keys/${second.id}`, { markup: '0.5' });
    expect((await call(second.key)).headers['x-ai-cost']).to.equal('0.00052500');
    await gateway.admin('PATCH', `/admin/v1/accounts/${accountId}`, { markup: null });
    await gateway.admin('PATCH', `/admin/v1/keys/${second.id}`, { markup: null });
    for (const each of [key, second.key, third.key])
      expect((await call(each)).headers['x-ai-cost']).to.equal(VENDOR_USD);
    const { json } = await gateway.admin('GET', '/admin/v1/audit?limit=10');
    const update = json.items.find(({ action }: { action: string }) => action === 'account.update');
    const ofAccount = { name: 'n', balanceLowUsd: null };
    expect(update).to.deep.include({
      before: { ...ofAccount, markup: 'partner' },
      after: { ...ofAccount, markup: null },
    });
  });

  it('cannot get a markup that is neither a factor from 0.1 to 100 nor the name of a list', async () => {
    const { accountId, keyId } = await newCustomer({});
    for (const markup of ['cheap', 'Partner', '0.05', '101', '1e1', '-1', '', 2, '1.123456789']) {
      for (const [method, path, more] of [
        ['POST', '/admin/v1/accounts', { name: 'a' }],
        ['PATCH', `/admin/v1/accounts/${accountId}`, {}],
        ['POST', `/admin/v1/accounts/${accountId}/keys`, { name: 'a' }],
        ['PATCH', `/admin/v1/keys/${keyId}`, {}],
      ] as const) {
        const { status, json } = await gateway.admin(method, path, { ...more, markup });
        expect([status, json.error.param], `${method} ${path} ${markup}`).to.deep.equal([400, 'markup']);
      }
    }
    const { json } = await gateway.admin('POST', '/admin/v1/accounts', { name: 'a', markup: 'cheap' });
    expect(json.error.message).to.contain('(partner, passing)');
  });

  it('are refused and not charged while the configuration lacks their price list', async () => {
    const { key } = await newCustomer({ key: 'passing' });
    expect((await call(key)).headers['x-ai-cost']).to.equal(VENDOR_USD);
    await gateway.changeConfiguration((config) => {
      config['customerPrices'] = { partner: CUSTOMER_PRICES.partner };
    });
    expect((await gateway.admin('POST', '/admin/v1/config/reload')).status).to.equal(200);
    const asked = upstream.calls.length;
    const refused = await call(key);
    expect([refused.status, refused.json.error.code]).to.deep.equal([400, 'MODEL_NOT_PRICED']);
    expect(refused.json.error.message).to.contain('"passing"');
    expect(upstream.calls).to.have.length(asked);
    expect((await gateway.call('/v1/models', { method: 'GET', key })).json.data).to.deep.equal([]);
    expect((await gateway.balance(key)).heldUsd).to.equal('0.00000000');
  });
});
