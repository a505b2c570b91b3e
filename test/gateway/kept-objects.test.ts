import { expect } from 'chai';
import { ask, PATH } from '../support/calls';
import { MODEL, PRICE, startGateway, type TestGateway } from '../support/gateway';
import { setPolicy } from '../support/policy-settings';
import { showFigures } from '../support/show-figures';
import { until } from '../support/until';
import {
  after as later,
  messagesAnswer,
  messagesFailure,
  messagesStream,
  respond,
  type Script,
  startUpstream,
  type TestUpstream,
} from '../support/upstream';

const CREATE = { thread: { type: 'create' } };
const continuing = (id: string) => ({ thread: { type: 'continue', previous_message_id: id } });
const SKILLS = { container: { skills: [{ type: 'anthropic', skill_id: 'xlsx', version: 'latest' }] } };

/** An answer whose container the vendor keeps. */
function withContainer(id: string): Script {
  const container = { id, expires_at: '2027-01-01T00:00:00Z', skills: null };
  const usage = { input_tokens: 10, output_tokens: 5 };
  return respond({
    body: { id: 'msg_c', type: 'message', model: MODEL, role: 'assistant', content: [], container, usage },
  });
}

/** A stream that names its container in its last event but one. */
function streamWithContainer(id: string): Script {
  const edit = (events: readonly string[]) =>
    events.map((event) => event.replace('"delta":{"stop_reason"', `"delta":{"container":{"id":"${id}"},"stop_reason"`));
  return messagesStream({ edit });
}

describe('Ids of things that a vendor keeps', function () {
  this.timeout(60_000);
  let acme: TestUpstream;
  let other: TestUpstream;
  let gateway: TestGateway;

  before(async () => {
    [acme, other] = [await startUpstream(), await startUpstream()];
    gateway = await startGateway({
      upstreams: {
        acme: { url: acme.url, models: { [MODEL]: { context: 200_000, tokenizerFactor: 1.35 } } },
        other: {
          url: other.url,
          tier: 'standard',
          models: { [MODEL]: { context: 200_000, tokenizerFactor: 1.35 }, 'other-only': {} },
        },
      },
      env: { OTHER_CREDENTIAL: 'another-credential' },
      configure: (config) => {
        setPolicy(config, 'model-request', { sharedObjects: ['container'] }, 'speed');
        config['serviceEndpoints'].acme.tier = 'official';
      },
    });
  });
  after(async () => {
    await gateway?.stop();
    await acme?.stop();
    await other?.stop();
  });
  beforeEach(() => {
    acme.reset();
    other.reset();
    acme.always(messagesAnswer({ id: 'msg_next' }));
    other.always(messagesAnswer({ id: 'msg_next' }));
  });

  const call = (key: string, more: Record<string, unknown>, path: string = PATH.messages) =>
    gateway.call(path, { key, body: ask(more) });
  const asked = () => acme.calls.length + other.calls.length;
  const refusal = async (key: string, more: Record<string, unknown>, path?: string) => {
    const { status, json } = await call(key, more, path);
    return [status, json.error?.code, json.error?.param];
  };
  let made = 0;
  /** The container that a new customer has got. */
  const newContainer = async (usd = '10') => {
    const customer = await gateway.newCustomer(usd);
    made += 1;
    const id = `container_${made}`;
    acme.next(withContainer(id));
    expect((await call(customer.key, SKILLS)).status).to.equal(200);
    return { ...customer, id };
  };

  it('are 404 for another account: no upstream is asked and nothing is charged', async () => {
    const { id } = await newContainer();
    const { key } = await gateway.newCustomer('10');
    acme.reset();
    expect(await refusal(key, { container: id })).to.deep.equal([404, 'KEPT_OBJECT_NOT_FOUND', 'container']);
    expect(await refusal(key, { container: { id } })).to.deep.equal([404, 'KEPT_OBJECT_NOT_FOUND', 'container']);
    expect(asked()).to.equal(0);
    expect((await gateway.balance(key)).availableUsd).to.equal('10.00000000');
  });

  it('are used by the account whose call made them', async () => {
    const { key, id } = await newContainer();
    for (const container of [id, { id }, { id, skills: null }])
      expect((await call(key, { container })).status, JSON.stringify(container)).to.equal(200);
    expect(acme.calls.at(-1)?.json).to.have.property('container').that.deep.equals({ id, skills: null });
  });

  it('are shared by all accounts where the operator says `sharedObjects`, and belong to the first one still', async () => {
    const { key: owner, id } = await newContainer();
    const { key } = await gateway.newCustomer('10');
    acme.always(withContainer(id));
    expect((await call(key, { container: id }, '/speed/v1/messages')).status).to.equal(200);
    expect(await refusal(key, { container: id })).to.deep.equal([404, 'KEPT_OBJECT_NOT_FOUND', 'container']);
    expect((await call(owner, { container: id })).status).to.equal(200);
  });

  it("become nobody's when everybody may name them", async () => {
    const { key } = await gateway.newCustomer('10');
    acme.always(withContainer('container_of_the_operator'));
    const body = { container: 'container_of_the_operator' };
    expect((await call(key, body, '/speed/v1/messages')).status).to.equal(200);
    expect(await refusal(key, body)).to.deep.equal([404, 'KEPT_OBJECT_NOT_FOUND', 'container']);
  });

  it('are found in streams, whichever event names them', async () => {
    const { key } = await gateway.newCustomer('10');
    acme.next(streamWithContainer('container_streamed'));
    expect((await call(key, { ...SKILLS, stream: true })).text).to.contain('container_streamed');
    expect((await call(key, { container: 'container_streamed' })).status).to.equal(200);
    acme.next(messagesStream({ id: 'msg_streamed' }));
    expect((await call(key, { ...CREATE, stream: true })).status).to.equal(200);
    expect((await call(key, continuing('msg_streamed'))).status).to.equal(200);
  });

  it('are found in a stream that broke off, because the client knows them', async () => {
    const { key } = await gateway.newCustomer('10');
    acme.next(messagesStream({ id: 'msg_broken', cutAfter: 5, cut: 'reset' }));
    await call(key, { ...CREATE, stream: true });
    await until('the hold is released', async () => (await gateway.balance(key)).heldUsd === '0.00000000');
    expect((await call(key, continuing('msg_broken'))).status).to.equal(200);
  });

  it('name a thread by each of its answers', async () => {
    const { key } = await gateway.newCustomer('10');
    acme.next(messagesAnswer({ id: 'msg_1st' }), messagesAnswer({ id: 'msg_2nd' }), messagesAnswer({ id: 'msg_3rd' }));
    expect((await call(key, CREATE)).status).to.equal(200);
    expect((await call(key, continuing('msg_1st'))).status).to.equal(200);
    expect((await call(key, continuing('msg_2nd'))).status).to.equal(200);
    expect(await refusal(key, continuing('msg_4th'))).to.deep.equal([404, 'KEPT_OBJECT_NOT_FOUND', 'thread']);
  });

  it('are not made by calls that keep nothing', async () => {
    const { key } = await gateway.newCustomer('10');
    acme.next(messagesAnswer({ id: 'msg_plain' }));
    expect((await call(key, {})).status).to.equal(200);
    expect(await refusal(key, continuing('msg_plain'))).to.deep.equal([404, 'KEPT_OBJECT_NOT_FOUND', 'thread']);
  });

  it('hold what was reported for them and the body, not a context window', async () => {
    const { key } = await gateway.newCustomer('1.2');
    acme.next(messagesAnswer({ id: 'msg_long', usage: { input: 50_000, output: 10_000 } }));
    expect((await call(key, CREATE)).status).to.equal(200);
    const { key: poor } = await gateway.newCustomer('0.2');
    acme.next(messagesAnswer({ id: 'msg_poor', usage: { input: 50_000, output: 0 } }));
    expect((await call(poor, CREATE)).status).to.equal(200);
    // 50,000 tokens at 6 USD per million, the dearest input price, and the body.
    const { status, json } = await call(poor, continuing('msg_poor'));
    expect([status, json.error.code]).to.deep.equal([402, 'INSUFFICIENT_BALANCE']);
    expect(Number(json.error.details.requiredUsd)).to.be.within(0.303, 0.3055);
    expect((await call(key, continuing('msg_long'))).status).to.equal(200);
  });

  it('cost what the vendor charges for ten calls at once on a limited key', async () => {
    const { key } = await gateway.newCustomer('100', { balanceLimit: '1.6' });
    acme.next(messagesAnswer({ id: 'msg_many', usage: { input: 50_000, output: 10 } }));
    expect((await call(key, CREATE)).status).to.equal(200);
    const before = Number((await gateway.balance(key)).balanceUsd);
    acme.reset();
    const usage = { input: 50_010, output: 200 };
    // The calls meet in the ledger: none is settled before the others are asked for.
    acme.always(later(1_000, messagesAnswer({ usage })));
    const answers = await Promise.all(Array.from({ length: 10 }, () => call(key, continuing('msg_many'))));
    const refused = answers.find(({ json }) => json.error?.code === 'KEY_LIMIT_EXCEEDED');
    expect(refused, 'a call that the limit refuses').not.to.equal(undefined);
    await until('the calls are settled', async () => (await gateway.balance(key)).heldUsd === '0.00000000');
    const vendorUsd = (asked() * (usage.input * PRICE.input + usage.output * PRICE.output)) / 1e6;
    const holdUsd = Number(refused?.json.error.details.requiredUsd);
    const chargedUsd = before - Number((await gateway.balance(key)).balanceUsd);
    const lossUsd = Math.max(0, vendorUsd - chargedUsd);
    showFigures('ten calls at once, thread: continue', { asked: asked(), vendorUsd, holdUsd, chargedUsd, lossUsd });
    expect(chargedUsd).to.be.closeTo(vendorUsd, 1e-9);
    expect(chargedUsd).to.be.within(0.15, 1.6);
    expect(chargedUsd).to.be.at.most(holdUsd * asked());
  });

  it('hold a context window where the upstream did not report what it read', async () => {
    const { key } = await gateway.newCustomer('1');
    acme.next(messagesAnswer({ id: 'msg_unknown', rawUsage: null }));
    expect((await call(key, CREATE)).status).to.equal(200);
    const { status, json } = await call(key, continuing('msg_unknown'));
    expect([status, Number(json.error.details.requiredUsd)]).to.deep.equal([402, 1.203]);
  });

  it('are asked of the upstream that has them, and of no other', async () => {
    const { key } = await gateway.newCustomer('10');
    acme.always(messagesFailure(500));
    other.always(messagesAnswer({ id: 'msg_of_other' }));
    expect((await call(key, CREATE)).headers['x-routing-provider']).to.equal('other');
    acme.reset();
    acme.always(messagesAnswer());
    other.always(messagesFailure(500));
    const { status } = await call(key, continuing('msg_of_other'));
    expect(status).to.equal(502);
    expect(acme.calls).to.have.length(0);
    other.always(messagesAnswer());
    expect((await call(key, continuing('msg_of_other'))).headers['x-routing-provider']).to.equal('other');
  });

  it('are 429 with Retry-After while their upstream rests, and it is not asked', async () => {
    const { key } = await gateway.newCustomer('10');
    acme.always(messagesFailure(500));
    other.always(messagesAnswer({ id: 'msg_resting' }));
    expect((await call(key, CREATE)).status).to.equal(200);
    acme.always(messagesAnswer());
    other.always(messagesFailure(429, {}, { 'retry-after': '3' }));
    expect((await call(key, continuing('msg_resting'))).status).to.equal(429);
    other.reset();
    const { status, json, headers } = await call(key, continuing('msg_resting'));
    expect([status, json.error.code]).to.deep.equal([429, 'UPSTREAM_RATE_LIMITED']);
    expect(Number(headers['retry-after'])).to.be.within(1, 3);
    expect(other.calls).to.have.length(0);
    expect((await call(key, {})).status, 'other calls go on').to.equal(200);
  });

  it('are 400 for a model that their upstream does not have', async () => {
    const { key, id } = await newContainer();
    acme.reset();
    expect(await refusal(key, { container: id, model: 'other-only' })).to.deep.equal([
      400,
      'MODEL_NOT_SUPPORTED',
      'model',
    ]);
    expect(asked()).to.equal(0);
  });

  it('are asked at the direct address of their upstream alone', async () => {
    const { key, id } = await newContainer();
    const at = (upstream: string) =>
      gateway.call(PATH.messages, { key, body: ask({ container: id }), headers: { host: `${upstream}.p.localhost` } });
    expect((await at('acme')).status).to.equal(200);
    const { status, json } = await at('other');
    expect([status, json.error.code]).to.deep.equal([400, 'MODEL_NOT_SUPPORTED']);
    expect(other.calls).to.have.length(0);
  });

  it('are not asked of an upstream that an operator disabled', async () => {
    const { key, id } = await newContainer();
    await gateway.admin('POST', '/admin/v1/upstreams/acme/eject', { reason: 'test' });
    acme.reset();
    const { status, json } = await call(key, { container: id });
    expect([status, json.error.code]).to.deep.equal([502, 'ALL_PROVIDERS_FAILED']);
    expect(asked()).to.equal(0);
    await gateway.admin('POST', '/admin/v1/upstreams/acme/restore', {});
    acme.always(messagesAnswer());
    expect((await call(key, { container: id })).status).to.equal(200);
  });

  it('are not asked with another credential than the one that made them', async () => {
    const { key, id } = await newContainer();
    const use = async (env: string) => {
      await gateway.changeConfiguration((config) => {
        config['serviceEndpoints'].acme.credential = { env };
      });
      const { status, text } = await gateway.admin('POST', '/admin/v1/config/reload');
      expect(status, text).to.equal(200);
    };
    await use('OTHER_CREDENTIAL');
    acme.reset();
    expect(await refusal(key, { container: id })).to.deep.equal([400, 'MODEL_NOT_SUPPORTED', 'model']);
    expect(asked()).to.equal(0);
    await use('UPSTREAM_CREDENTIAL');
    acme.always(messagesAnswer());
    expect((await call(key, { container: id })).status).to.equal(200);
  });

  it('are 400 in a form that upstreams could read otherwise', async () => {
    const { key, id } = await newContainer();
    const raw = (text: string) =>
      gateway.call(PATH.messages, { key, body: JSON.stringify(ask()).replace(/}$/, `,"container":${text}}`) });
    for (const text of [
      `{"id":"container_foreign","id":"${id}"}`,
      `{"id":"${id}","ID":"container_foreign"}`,
      '{"Id":"container_foreign"}',
      `{"id":"${id}","container_id":"container_foreign"}`,
      `{"id":["${id}"]}`,
      '7',
    ]) {
      const { status, json } = await raw(text);
      expect([status, json.error?.code, json.error?.param], text).to.deep.equal([400, 'NOT_SUPPORTED', 'container']);
    }
    expect((await raw(`{"\\u0069d":"${id}"}`)).status, 'an escaped key').to.equal(200);
  });

  it('are 400 for kinds that no call makes', async () => {
    const { key } = await gateway.newCustomer('10');
    const custom = { container: { skills: [{ type: 'custom', skill_id: 'skill_01' }] } };
    expect(await refusal(key, custom)).to.deep.equal([400, 'NOT_SUPPORTED', 'container']);
    expect(await refusal(key, { prompt: { id: 'pmpt_1' } })).to.deep.equal([400, 'NOT_SUPPORTED', 'prompt']);
  });

  it('are known after a restart, and at another node', async () => {
    const { key, id } = await newContainer();
    const options = { upstreams: { acme: { url: acme.url } }, stores: gateway.stores, dataFolder: gateway.dataFolder };
    await gateway.stop();
    gateway = await startGateway(options);
    expect((await call(key, { container: id })).status).to.equal(200);
    const { key: stranger } = await gateway.newCustomer('10');
    expect(await refusal(stranger, { container: id })).to.deep.equal([404, 'KEPT_OBJECT_NOT_FOUND', 'container']);
  });
});
