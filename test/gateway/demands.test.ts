import assert from 'node:assert/strict';
import { ask, askIn, PATH } from '../support/calls';
import { answerOf } from '../support/dialects';
import { MODEL, PRICE } from '../support/gateway';
import { seeded } from '../support/random';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { malformedJson, messagesAnswer, messagesStream, respond } from '../support/upstream';

const SOON = new Date(Date.now() + 20 * 86_400_000).toISOString().slice(0, 10);
const DOWN = respond({ status: 503, body: {} });
const EU = { region: 'eu', retention: 'none', trains: 'no' };
const IMAGE = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } };
const SEARCH = { type: 'web_search_20250305', name: 'web_search' };

describe('The demands of a call', function () {
  this.timeout(120_000);
  const eu = useUpstream();
  const us = useUpstream();
  const silent = useUpstream();
  const adapter = ['messages', 'chat', 'responses'];
  const gateway = useGateway(() => ({
    upstreams: {
      us: {
        url: us.url,
        adapter,
        tier: 'official',
        facts: { region: 'us', retention: 30, trains: 'no', inputs: ['text'] },
        models: { [MODEL]: { price: { ...PRICE, input: 2 } } },
      },
      eu: { url: eu.url, adapter, facts: EU },
      silent: { url: silent.url, adapter },
      wide: {
        url: us.url,
        facts: EU,
        models: { wide: { facts: { region: ['eu', 'us'], retires: SOON } } },
      },
      roaming: {
        url: us.url,
        facts: EU,
        models: { roaming: { price: { ...PRICE, geos: { us: { factor: 1.1 } } }, mayAnswerWith: { geos: ['us'] } } },
      },
    },
    env: { DIRECT_DOMAIN: 'gateway.example' },
    configure: (config) => {
      const change = { pipeline: { name: 'speed', settings: { 'strategy-routing': { upstreams: ['us'] } } } };
      config['rollouts'] = { narrower: { change, stages: [{ share: 100, hold: '24h' }] } };
    },
  }));
  let key: string;
  let keyId: string;
  let accountId: string;
  beforeEach(async () => {
    for (const upstream of [eu, us, silent]) {
      upstream.reset();
      upstream.always(messagesAnswer());
    }
    ({ key, keyId, accountId } = await gateway.newCustomer('10'));
  });

  interface Asked {
    readonly body?: object;
    readonly path?: string;
    readonly headers?: Record<string, string>;
  }
  const send = (demands: string | undefined, { body = ask(), path = PATH.messages, headers = {} }: Asked = {}) =>
    gateway.call(path, { key, body, headers: { ...headers, ...(demands && { 'x-svc-require': demands }) } });
  const servedBy = async (demands: string | undefined, asked?: Asked) => {
    const answer = await send(demands, asked);
    assert.equal(answer.status, 200, answer.text);
    return answer.headers['x-routing-provider'];
  };
  const excluded = async (demands: string | undefined, asked?: Asked) => {
    const answer = await send(demands, asked);
    assert.deepEqual([answer.status, answer.json.error.code], [400, 'NO_CANDIDATE_ALLOWED'], answer.text);
    return answer.json.error;
  };
  const change = async (path: string, body: object, status = 200) => {
    const answer = await gateway.admin('PATCH', `/admin/v1${path}`, body);
    assert.equal(answer.status, status, answer.text);
    return answer.json;
  };
  const eventsOf = (wanted: string) =>
    until(`an event ${wanted} is written`, async () => {
      const { json } = await gateway.admin('GET', '/admin/v1/events?order=newest&limit=1000');
      const events = json.items.filter(({ type }: { type: string }) => type === wanted);
      return events.length === 0 ? undefined : events;
    });
  const asked = () => [eu, us, silent].map(({ calls }) => calls.length);

  it('choose among the upstreams whose facts meet all of them, before the strategy ranks these', async () => {
    assert.equal(await servedBy(undefined), 'us');
    assert.equal(await servedBy('region=eu'), 'eu');
    assert.equal(await servedBy('region=us,eu ; retention=30;trains=no'), 'us');
    assert.equal(await servedBy('retention=29; max-input-price=3'), 'eu');
    assert.equal(await servedBy('max-input-price=2'), 'us');
    assert.equal(await servedBy('context=200000; max-output-price=15.00'), 'us');
  });

  it('stay with a call through failover: no upstream outside is asked', async () => {
    eu.always(DOWN);
    const answer = await send('trains=no; region=eu');
    assert.equal(answer.status, 502, answer.text);
    assert.deepEqual(asked().slice(1), [0, 0]);
  });

  it('stay with every call, whatever fails: no upstream outside is asked in 120 calls with random faults', async () => {
    const { pick } = seeded(43);
    const well = messagesAnswer();
    const faults = [
      well,
      well,
      DOWN,
      respond({ status: 429, body: {} }),
      messagesStream({ cut: 'reset' }),
      malformedJson(),
    ];
    const allowed = {
      'region=eu': [eu],
      'region=us': [us],
      'trains=no': [eu, us],
      'retention=none; region=eu,us': [eu],
    };
    for (let made = 0; made < 120; made += 1) {
      for (const upstream of [eu, us, silent]) {
        upstream.reset();
        upstream.always(pick(faults));
      }
      const [demands, inside] = pick(Object.entries(allowed));
      const { status } = await send(demands, { path: pick(['', '/cost', '/quality']) + PATH.messages });
      const outside = [eu, us, silent].filter((each) => !inside.includes(each) && each.calls.length > 0);
      assert.deepEqual(outside, [], `call ${made}: ${demands}, ${status}`);
      assert.ok(
        inside.some(({ calls }) => calls.length > 0),
        `call ${made} asked none: ${status}`,
      );
    }
  });

  it('keep a call out of a rollout whose change they exclude, also at the first call of an API key on a node', async () => {
    const ofUs = { path: `/speed${PATH.messages}` };
    assert.equal(await servedBy(undefined, ofUs), 'us');
    const made = await gateway.admin('POST', `/admin/v1/accounts/${accountId}/keys`, {
      name: 'eu',
      require: 'region=eu',
    });
    key = made.json.key;
    assert.deepEqual([await servedBy(undefined, ofUs), await servedBy(undefined, ofUs)], ['eu', 'eu']);
  });

  it('leave an upstream that a body needs to one that can be asked, and otherwise leave none out', async () => {
    const body = ask({ messages: [{ role: 'user', content: [IMAGE] }] });
    const turn = (name: string, verb: string) => gateway.admin('POST', `/admin/v1/upstreams/${name}/${verb}`, {});
    for (const name of ['eu', 'silent']) await turn(name, 'disable');
    const served = await servedBy(undefined, { body });
    for (const name of ['eu', 'silent']) await turn(name, 'enable');
    assert.equal(served, 'us');
  });

  it('are refused with the first fact of each upstream that excludes it, at no cost and with a record', async () => {
    const { details } = await excluded('region=eu; max-output-price=1');
    assert.deepEqual(details.excluded, [
      { upstream: 'us', fact: 'region', demanded: 'eu', has: 'us' },
      { upstream: 'eu', fact: 'max-output-price', demanded: '1', has: '15.00000000' },
      { upstream: 'silent', fact: 'region', demanded: 'eu', has: 'unknown' },
    ]);
    const one = (body: object) => excluded('region=eu', { body });
    assert.equal((await one(ask({ model: 'wide' }))).details.excluded[0].has, 'eu,us');
    assert.equal((await one(ask({ model: 'roaming' }))).details.excluded[0].has, 'eu,us');
    assert.deepEqual(asked(), [0, 0, 0]);
    const refused = await send('region=eu; max-output-price=1');
    const record = await gateway.record(key, refused.headers['x-svc-request-id'] ?? '');
    assert.deepEqual(
      [record['cost'], record['region'], record['demands']],
      ['0.00000000', null, 'region=eu; max-output-price=1'],
    );
  });

  it('hold at direct addresses, which ask no other upstream', async () => {
    const at = (name: string) => ({ headers: { host: `${name}.p.gateway.example` } });
    assert.equal((await send('region=eu', at('eu'))).status, 200);
    const { details } = await excluded('region=eu', at('us'));
    assert.deepEqual(details.excluded, [{ upstream: 'us', fact: 'region', demanded: 'eu', has: 'us' }]);
    assert.deepEqual(asked(), [1, 0, 0]);
  });

  it('are refused as INVALID_FIELD if the header has another name, value or form, and no upstream is asked', async () => {
    const wrong = ['', 'region', 'region=EU', 'region=eu,', 'region=eu;', 'trains=yes', 'speed=1', 'context=1e3'];
    for (const text of [...wrong, 'region=eu;region=eu', 'retention=-1', 'max-input-price=x', 'retention=unknown']) {
      const answer = await gateway.call(PATH.messages, { key, body: ask(), headers: { 'x-svc-require': text } });
      const { code, param } = answer.json.error;
      assert.deepEqual([answer.status, code, param], [400, 'INVALID_FIELD', 'x-svc-require'], text);
    }
    assert.deepEqual(asked(), [0, 0, 0]);
  });

  it('of a key, its team and its account are joined with those of the call, and hold for the next call', async () => {
    const made = await gateway.admin('POST', `/admin/v1/accounts/${accountId}/teams`, { name: 'research' });
    const team = made.json.id;
    assert.equal((await change(`/keys/${keyId}`, { require: 'region=eu,us', teamId: team })).require, 'region=eu,us');
    assert.equal(await servedBy(undefined), 'us');
    assert.equal((await change(`/teams/${team}`, { require: 'retention=none' })).require, 'retention=none');
    assert.equal(await servedBy(undefined), 'eu');
    assert.equal((await change(`/accounts/${accountId}`, { require: 'region=us' })).require, 'region=us');
    const { details } = await excluded(undefined);
    assert.deepEqual(details.excluded[0], { upstream: 'us', fact: 'retention', demanded: 'none', has: '30' });
    await change(`/teams/${team}`, { require: null });
    assert.equal(await servedBy(undefined), 'us');
    await excluded('region=eu');
    await change(`/keys/${keyId}`, { require: 'region=Europe' }, 400);
    await change(`/accounts/${accountId}`, { require: null });
    assert.equal(await servedBy('region=eu'), 'eu');
  });

  it('of a key hold from its first call on, at the prices that the key pays', async () => {
    const created = await gateway.admin('POST', `/admin/v1/accounts/${accountId}/keys`, {
      name: 'strict',
      require: 'region=eu; max-input-price=3',
      markup: '1.1',
    });
    assert.equal(created.json.require, 'region=eu; max-input-price=3');
    const answer = await gateway.call(PATH.messages, { key: created.json.key, body: ask() });
    assert.deepEqual(answer.json.error.details.excluded[1], {
      upstream: 'eu',
      fact: 'max-input-price',
      demanded: '3',
      has: '3.30000000',
    });
    assert.deepEqual(asked(), [0, 0, 0]);
  });

  it('write `store: false` where a call says nothing, and refuse a body that makes the vendor keep, fetch or pass on', async () => {
    eu.always(answerOf.responses());
    const { store: _, ...body } = askIn('responses') as { store?: boolean };
    for (const more of [{}, { store: null }, { instructions: 'x'.repeat(1_500_000) }])
      assert.equal(
        (await send('trains=no; region=eu', { path: PATH.responses, body: { ...body, ...more } })).status,
        200,
      );
    assert.deepEqual(
      eu.calls.map(({ json }) => (json as { store?: boolean }).store),
      [false, false, false],
    );
    assert.equal(eu.calls[0]?.headers['x-svc-require'], undefined);
    const param = async (path: string, more: object) =>
      (await excluded('retention=none', { path, body: { ...body, ...more } })).param;
    assert.equal(await param(PATH.responses, { store: true }), 'store');
    assert.equal(await param(PATH.responses, { tools: [{ type: 'web_search' }] }), 'tools[0].type');
    assert.equal(await param(PATH.responses, { somewhere: 1 }), 'somewhere');
    const image = { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } };
    const far = { path: PATH.messages, body: ask({ messages: [{ role: 'user', content: [image] }] }) };
    assert.equal((await excluded('region=eu', far)).param, 'messages[0].content');
    const file = (data: string) => ({ type: 'file', file: { filename: 'a.pdf', file_data: data } });
    const sound = { type: 'input_audio', input_audio: { format: 'wav', data: 'https://example.com/a.wav' } };
    for (const part of [file('https://example.com/a.pdf'), sound]) {
      const chat = askIn('chat', { messages: [{ role: 'user', content: [part] }] });
      assert.equal((await excluded('region=eu', { path: PATH.chat, body: chat })).param, 'messages[0].content');
    }
    const input = [{ role: 'user', content: [{ type: 'input_file', file_data: 'https://example.com/a.pdf' }] }];
    assert.equal(await param(PATH.responses, { input }), 'input[0]');
    const geo = { body: ask({ inference_geo: 'us' }) };
    assert.equal((await excluded('region=eu', geo)).param, 'inference_geo');
    assert.equal((await send('max-input-price=3', { body: ask({ tools: [SEARCH] }) })).status, 200);
    assert.deepEqual(asked().slice(0, 1), [3]);
  });

  it('come from the body, too: an upstream whose facts deny images is left out where another is not', async () => {
    const body = ask({ messages: [{ role: 'user', content: [IMAGE] }] });
    assert.notEqual(await servedBy(undefined, { body }), 'us');
    eu.always(DOWN);
    silent.always(DOWN);
    assert.equal((await send(undefined, { body })).status, 502);
    assert.equal(us.calls.length, 0);
    assert.equal(await servedBy('region=us', { body }), 'us');
  });

  it('are in the record with the region of the upstream that answered, a filter and a group of totals', async () => {
    const answer = await send(' trains=no;region=eu,us ');
    const record = await gateway.record(key, answer.headers['x-svc-request-id'] ?? '');
    assert.deepEqual([record['region'], record['demands']], ['us', 'region=eu,us; trains=no']);
    const get = async (path: string) => (await gateway.call(path, { method: 'GET', key })).json;
    assert.equal((await get('/v1/usage?region=us')).items.length, 1);
    assert.equal((await get('/v1/usage?region=eu')).items.length, 0);
    assert.equal((await get('/v1/usage/totals?by=region')).groups[0].id, 'us');
  });

  it('flag a record and tell operators if the upstream reports another region than is demanded', async () => {
    const reported = messagesAnswer({ rawUsage: { input_tokens: 10, output_tokens: 5, inference_geo: 'us' } });
    eu.always(reported);
    const answer = await send('region=eu');
    const record = await gateway.record(key, answer.headers['x-svc-request-id'] ?? '');
    assert.deepEqual(record['flags'], ['unpriced', 'region']);
    const [event] = await eventsOf('region.differs');
    assert.deepEqual(event.data, {
      requestId: answer.headers['x-svc-request-id'],
      accountId,
      upstream: 'eu',
      region: 'us',
      demands: 'region=eu',
    });
  });

  it('can be met by a model that retires soon, of which operators are told once', async () => {
    const [event, ...others] = await eventsOf('model.retires');
    assert.deepEqual([event.data, others.length], [{ upstream: 'wide', model: 'wide', retires: SOON }, 0]);
  });
});
