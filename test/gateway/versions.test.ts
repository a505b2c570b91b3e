import { expect } from 'chai';
import { ask } from '../support/calls';
import { MODEL } from '../support/gateway';
import { useGateway } from '../support/story';
import { chatAnswer, messagesAnswer, startUpstream, type TestUpstream } from '../support/upstream';

const [OLD, NEW] = ['2023-06-01', '2026-10-21'];
const BETA = 'claude-code-20250219, a-beta-of-tomorrow-2027-01-01';

describe('The version of a Messages call', () => {
  let [older, newer, any]: TestUpstream[] = [];
  let key: string;

  const gateway = useGateway(async () => {
    [older, newer, any] = await Promise.all([startUpstream(), startUpstream(), startUpstream()]);
    const only = (name: string) => ({ [name]: {} });
    return {
      upstreams: {
        older: { url: older?.url ?? '', versions: [OLD], models: { [MODEL]: {}, ...only('old') } },
        newer: { url: newer?.url ?? '', versions: [NEW, '2026-11-11'], models: { [MODEL]: {} } },
        any: { url: any?.url ?? '', models: only('any') },
      },
    };
  });

  before(async () => {
    ({ key } = await gateway.newCustomer('10'));
  });
  after(async () => {
    await Promise.all([older?.stop(), newer?.stop(), any?.stop()]);
  });
  beforeEach(() => {
    for (const each of [older, newer, any]) {
      each?.reset();
      each?.always(messagesAnswer());
    }
  });

  const call = (headers: Record<string, string>, more: object = {}, path = '/v1/messages') =>
    gateway.call(path, { key, headers, body: ask({ ...more }) });

  for (const header of ['anthropic-version', 'protoa-version']) {
    for (const [version, expected] of [
      [OLD, 'older'],
      [NEW, 'newer'],
      ['2026-11-11', 'newer'],
    ] as const) {
      it(`leads to the upstream "${expected}" only, and is forwarded unchanged with any beta (${header}: ${version})`, async () => {
        for (let calls = 0; calls < 6; calls += 1) {
          const { status, headers, text } = await call({ [header]: version, 'anthropic-beta': BETA });
          expect(status, text).to.equal(200);
          expect(headers['x-routing-provider']).to.equal(expected);
        }
        const [first] = (expected === 'older' ? older : newer)?.calls ?? [];
        expect(first?.headers).to.include({ [header]: version, 'anthropic-beta': BETA });
      });
    }
  }

  it('is the default one if the client names none', async () => {
    const { headers } = await call({});
    expect(headers['x-routing-provider']).to.equal('older');
    expect(older?.calls[0]?.headers).to.include({ 'anthropic-version': OLD });
  });

  it('may be any version at an upstream that declares none', async () => {
    for (const version of [OLD, NEW, 'of-tomorrow']) {
      const { status } = await call({ 'anthropic-version': version }, { model: 'any' });
      expect(status).to.equal(200);
    }
    expect(any?.calls.map(({ headers }) => headers['anthropic-version'])).to.deep.equal([OLD, NEW, 'of-tomorrow']);
  });

  it('gets 400 without a charge if no upstream accepts it, and the error names the accepted ones', async () => {
    const before = await gateway.balance(key);
    for (const version of ['2024-01-01', '', 'x'.repeat(500)]) {
      const { status, json } = await call({ 'anthropic-version': version });
      expect(status).to.equal(400);
      expect(json.error).to.include({
        type: 'invalid_request_error',
        code: 'INVALID_FIELD',
        param: 'anthropic-version',
        message: `anthropic-version: expected ${OLD} or ${NEW} or 2026-11-11, which the upstreams of this model take`,
      });
    }
    expect([...(older?.calls ?? []), ...(newer?.calls ?? [])]).to.have.length(0);
    expect(await gateway.balance(key)).to.include({ balanceUsd: before.balanceUsd, heldUsd: '0.00000000' });
  });

  it('is checked on direct routes', async () => {
    const direct = { host: `older.p.localhost` };
    const refused = await call({ ...direct, 'anthropic-version': NEW }, { model: 'old' });
    expect(refused.json.error).to.include({ code: 'INVALID_FIELD', param: 'anthropic-version' });
    expect((await call({ ...direct, 'anthropic-version': OLD }, { model: 'old' })).status).to.equal(200);
  });

  it('is ignored in Chat calls', async () => {
    for (const each of [older, newer]) each?.always(chatAnswer());
    const { status, text } = await call({ 'anthropic-version': '2024-01-01' }, {}, '/v1/chat/completions');
    expect(status, text).to.equal(200);
  });
});
