import { expect } from 'chai';
import { ask, PATH } from '../support/calls';
import { MODEL, startGateway, type TestGateway } from '../support/gateway';
import { setPolicy } from '../support/policy-settings';
import { until } from '../support/until';
import {
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

/** Returns an answer with a container that the vendor keeps. */
function withContainer(id: string): Script {
  const container = { id, expires_at: '2027-01-01T00:00:00Z', skills: null };
  const usage = { input_tokens: 10, output_tokens: 5 };
  return respond({
    body: { id: 'msg_c', type: 'message', model: MODEL, role: 'assistant', content: [], container, usage },
  });
}

/** Returns a stream that names its container in the last event but one. */
function streamWithContainer(id: string): Script {
  const edit = (events: readonly string[]) =>
    events.map((event) => event.replace('"delta":{"stop_reason"', `"delta":{"container":{"id":"${id}"},"stop_reason"`));
  return messagesStream({ edit });
}

describe('Ids of objects that a vendor keeps', () => {
  let acme: TestUpstream;
  let other: TestUpstream;
  let gateway: TestGateway;

  before(async () => {
    [acme, other] = [await startUpstream(), await startUpstream()];
    gateway = await startGateway({
      upstreams: {
        acme: { url: acme.url, models: { [MODEL]: { context: 200_000, tokenizerFactor: 1 } } },
        other: {
          url: other.url,
          tier: 'standard',
          models: { [MODEL]: { context: 200_000, tokenizerFactor: 1 }, 'other-only': {} },
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
  /** Makes a container for a new customer and returns key and id. */
  const newContainer = async (usd = '10') => {
    const customer = await gateway.newCustomer(usd);
    made += 1;
    const id = `container_${made}`;
    acme.next(withContainer(id));
    expect((await call(customer.key, SKILLS)).status).to.equal(200);
    return { ...customer, id };
  };

  it('get 404 for another account, no upstream is called and nothing is charged', async () => {
    const { id } = await newContainer();
    const { key } = await gateway.newCustomer('10');
    acme.reset();
    expect(await refusal(key, { container: id })).to.deep.equal([404, 'KEPT_OBJECT_NOT_FOUND', 'container']);
    expect(await refusal(key, { container: { id } })).to.deep.equal([404, 'KEPT_OBJECT_NOT_FOUND', 'container']);
    expect(asked()).to.equal(0);
    expect((await gateway.balance(key)).availableUsd).to.equal('10.00000000');
  });

  it('may be used by all accounts with `sharedObjects`, and still belong to the account that received them first', async () => {
    const { key: owner, id } = await newContainer();
    const { key } = await gateway.newCustomer('10');
    acme.always(withContainer(id));
    expect((await call(key, { container: id }, '/speed/v1/messages')).status).to.equal(200);
    expect(await refusal(key, { container: id })).to.deep.equal([404, 'KEPT_OBJECT_NOT_FOUND', 'container']);
    expect((await call(owner, { container: id })).status).to.equal(200);
  });

  it('are recorded from streams, whichever event contains them', async () => {
    const { key } = await gateway.newCustomer('10');
    acme.next(streamWithContainer('container_streamed'));
    expect((await call(key, { ...SKILLS, stream: true })).text).to.contain('container_streamed');
    expect((await call(key, { container: 'container_streamed' })).status).to.equal(200);
    acme.next(messagesStream({ id: 'msg_streamed' }));
    expect((await call(key, { ...CREATE, stream: true })).status).to.equal(200);
    expect((await call(key, continuing('msg_streamed'))).status).to.equal(200);
  });

  it('are recorded from a stream that broke off, because the client has received them', async () => {
    const { key } = await gateway.newCustomer('10');
    acme.next(messagesStream({ id: 'msg_broken', cutAfter: 5, cut: 'reset' }));
    await call(key, { ...CREATE, stream: true });
    await until('the hold is released', async () => (await gateway.balance(key)).heldUsd === '0.00000000');
    expect((await call(key, continuing('msg_broken'))).status).to.equal(200);
  });

  it('are recorded from every answer of a thread, not only from the first', async () => {
    const { key } = await gateway.newCustomer('10');
    acme.next(messagesAnswer({ id: 'msg_1st' }), messagesAnswer({ id: 'msg_2nd' }), messagesAnswer({ id: 'msg_3rd' }));
    expect((await call(key, CREATE)).status).to.equal(200);
    expect((await call(key, continuing('msg_1st'))).status).to.equal(200);
    expect((await call(key, continuing('msg_2nd'))).status).to.equal(200);
    expect(await refusal(key, continuing('msg_4th'))).to.deep.equal([404, 'KEPT_OBJECT_NOT_FOUND', 'thread']);
  });

  it('make the hold cover the tokens reported for their objects and the body, instead of a context window', async () => {
    const { key } = await gateway.newCustomer('1.2');
    acme.next(messagesAnswer({ id: 'msg_long', usage: { input: 50_000, output: 10_000 } }));
    expect((await call(key, CREATE)).status).to.equal(200);
    const { key: poor } = await gateway.newCustomer('0.2');
    acme.next(messagesAnswer({ id: 'msg_poor', usage: { input: 50_000, output: 0 } }));
    expect((await call(poor, CREATE)).status).to.equal(200);
    // The hold is 50,000 tokens at 6 USD per million, the highest input price, and the body.
    const { status, json } = await call(poor, continuing('msg_poor'));
    expect([status, json.error.code]).to.deep.equal([402, 'INSUFFICIENT_BALANCE']);
    expect(Number(json.error.details.requiredUsd)).to.be.within(0.303, 0.3055);
    expect((await call(key, continuing('msg_long'))).status).to.equal(200);
  });

  it('are sent only to the upstream that has them', async () => {
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

  it('get 429 with Retry-After while their upstream is rate limited, and the gateway does not call the upstream', async () => {
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

  it('get 400 with a model that their upstream does not have', async () => {
    const { key, id } = await newContainer();
    acme.reset();
    expect(await refusal(key, { container: id, model: 'other-only' })).to.deep.equal([
      400,
      'MODEL_NOT_SUPPORTED',
      'model',
    ]);
    expect(asked()).to.equal(0);
  });

  it('are accepted only on the direct route of their upstream', async () => {
    const { key, id } = await newContainer();
    const at = (upstream: string) =>
      gateway.call(PATH.messages, { key, body: ask({ container: id }), headers: { host: `${upstream}.p.localhost` } });
    expect((await at('acme')).status).to.equal(200);
    const { status, json } = await at('other');
    expect([status, json.error.code]).to.deep.equal([400, 'MODEL_NOT_SUPPORTED']);
    expect(other.calls).to.have.length(0);
  });

  it('are not sent to an upstream that an operator disabled', async () => {
    const { key, id } = await newContainer();
    await gateway.admin('POST', '/admin/v1/upstreams/acme/disable', { reason: 'test' });
    acme.reset();
    const { status, json } = await call(key, { container: id });
    expect([status, json.error.code]).to.deep.equal([502, 'ALL_PROVIDERS_FAILED']);
    expect(asked()).to.equal(0);
    await gateway.admin('POST', '/admin/v1/upstreams/acme/enable', {});
    acme.always(messagesAnswer());
    expect((await call(key, { container: id })).status).to.equal(200);
  });

  it('are not sent with another credential than the one that made them', async () => {
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

  it('get 400 if they have a form that different upstreams could read differently', async () => {
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

  it('are known after a restart of the gateway', async () => {
    const { key, id } = await newContainer();
    const options = { upstreams: { acme: { url: acme.url } }, stores: gateway.stores, dataFolder: gateway.dataFolder };
    await gateway.stop();
    gateway = await startGateway(options);
    expect((await call(key, { container: id })).status).to.equal(200);
    const { key: stranger } = await gateway.newCustomer('10');
    expect(await refusal(stranger, { container: id })).to.deep.equal([404, 'KEPT_OBJECT_NOT_FOUND', 'container']);
  });
});
