import { expect } from 'chai';
import { ask, PATH } from '../support/calls';
import { MODEL } from '../support/gateway';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { messagesAnswer } from '../support/upstream';

const PLAIN = {
  context: 100_000,
  maxOutput: 1_000,
  estimatedMaxTokens: 100,
  tokenizerFactor: 1,
  price: { input: 10, output: 100 },
};

/** Calls for which the vendor reports more tokens than the gateway could expect. */
describe('An upstream that reports more usage than the hold covers', () => {
  const upstream = useUpstream();

  const gateway = useGateway(() => ({
    upstreams: {
      acme: {
        url: upstream.url,
        // Elsewhere the hold covers what the unknown member may read.
        tier: 'official',
        models: { [MODEL]: PLAIN, dear: { ...PLAIN, price: { input: 100, output: 100 } } },
      },
      other: { url: upstream.url, models: { other: PLAIN } },
    },
    system: { excess: { stopKeyAboveUsd: 1 } },
  }));
  beforeEach(() => upstream.reset());

  const call = (key: string, more: Record<string, unknown> = {}) =>
    gateway.call(PATH.messages, { key, body: ask(more) });
  const accountOf = async (id: string) => (await gateway.admin('GET', `/admin/v1/accounts/${id}`)).json;
  const operatorsRecord = async (accountId: string) =>
    until('the record is there', async () => {
      const { json } = await gateway.admin('GET', `/admin/v1/usage?account=${accountId}`);
      return json.items[0];
    });

  it('costs the customer at most the hold, and the record is flagged if the request cannot have caused the usage', async () => {
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

  it("does not get the key revoked for output above the call's limit, whatever URLs or unknown members the body has", async () => {
    upstream.always(messagesAnswer({ usage: { input: 50_000, output: 4_000_000 } }));
    const image = { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } };
    const pointing = { max_tokens: 1, messages: [{ role: 'user', content: [image] }] };
    for (const more of [pointing, { ...pointing, strange_switch: true }, { max_tokens: 1, strange_switch: true }]) {
      const { accountId, key } = await gateway.newCustomer('10');
      expect((await call(key, more)).status).to.equal(200);
      const record = await operatorsRecord(accountId);
      expect(record.flags).to.include('suspect');
      expect(Number(record.excess)).to.be.above(390);
      expect(await accountOf(accountId)).to.include({ status: 'active', excessUsd: '0.00000000' });
      expect((await call(key, { max_tokens: 1 })).status).to.equal(200);
    }
  });

  it('does not get the key revoked for input above the context window', async () => {
    upstream.always(messagesAnswer({ usage: { input: 4_000_000, output: 1 } }));
    const { accountId, key } = await gateway.newCustomer('10');
    expect((await call(key, { strange_switch: true })).status).to.equal(200);
    expect((await operatorsRecord(accountId)).flags).to.include('suspect');
    expect(await accountOf(accountId)).to.include({ status: 'active', excessUsd: '0.00000000' });
  });

  it('gets the key revoked if its requests caused an excess above the bound, and the account frozen at ten times that', async () => {
    // Nobody knows this member, whose value looks free. It makes the vendor read up to the context window.
    const strange = { strange_switch: true };
    upstream.always(messagesAnswer({ usage: { input: 90_000, output: 1 } }));
    const { accountId, key } = await gateway.newCustomer('100');
    const excessOf = async () => Number((await accountOf(accountId)).excessUsd);
    const newKey = async () => {
      const { json } = await gateway.admin('POST', `/admin/v1/accounts/${accountId}/keys`, { name: 'another' });
      return String(json.key);
    };
    const refusal = (of: string, status: number) =>
      until(`calls are ${status}`, async () => {
        const answered = await call(of);
        return answered.status === status ? (answered.json.error.code as string) : undefined;
      });
    const audited = async (action: string) => {
      const { json } = await gateway.admin('GET', '/admin/v1/audit?limit=10');
      return json.items.find(
        (each: { action: string; actor: string }) => each.action === action && each.actor === 'excess',
      );
    };
    expect((await call(key, strange)).status).to.equal(200);
    await until('the excess is known', async () => (await excessOf()) > 0.5);
    expect((await call(key, strange)).status).to.equal(200);
    expect(await refusal(key, 401)).to.equal('INVALID_API_KEY');
    expect((await audited('key.revoke')).subject).to.match(/^key:/);
    expect(await accountOf(accountId)).to.include({ status: 'active' });

    const second = await newKey();
    expect((await call(second)).status).to.equal(200);
    expect((await call(second, { model: 'dear', ...strange })).status).to.equal(200);
    await until('the account is frozen', async () => (await accountOf(accountId)).status === 'frozen', 30_000);
    expect((await audited('account.freeze')).subject).to.equal(`account:${accountId}`);
    const { json: feed } = await gateway.admin('GET', '/admin/v1/events?limit=1000');
    const excess = feed.items.find(({ type }: { type: string }) => type === 'excess.account');
    expect(excess.data).to.include({ accountId });
    expect(Number(excess.data.excessUsd)).to.be.above(10);
    const own = feed.items.find((each: { accountId: string | null }) => each.accountId === accountId);
    expect([own.type, own.data.reason]).to.deep.equal(['account.frozen', 'excess']);
    const { text } = await gateway.admin('GET', '/metrics');
    expect(text).to.contain('tollgate_excess_stops_total{of="key"} 2');
    expect(text).to.contain('tollgate_excess_stops_total{of="account"} 1');

    await gateway.admin('POST', `/admin/v1/accounts/${accountId}/unfreeze`);
    expect(await accountOf(accountId)).to.include({ status: 'active', excessUsd: '0.00000000' });
    expect((await call(await newKey())).status).to.equal(200);
  });

  it("reduces a key's remaining tokens per minute only by the tokens that were held", async () => {
    upstream.always(messagesAnswer({ usage: { input: 10, output: 900_000 } }));
    const { key } = await gateway.newCustomer('10', { tokensPerMinute: 1_000 });
    for (let each = 1; each <= 2; each += 1) expect((await call(key, { max_tokens: 16 })).status).to.equal(200);
  });

  it('is not ejected for suspect answers, however many it sends', async () => {
    const { key } = await gateway.newCustomer('10');
    upstream.always(messagesAnswer({ usage: { input: 10, output: 2_000 } }));
    for (let each = 1; each <= 20; each += 1) await call(key, { model: 'other', max_tokens: 16 });
    const { json } = await gateway.admin('GET', '/admin/v1/upstreams');
    expect(json.items.find(({ name }: { name: string }) => name === 'other').state).to.equal('available');
  });
});
