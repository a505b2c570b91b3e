import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { temporaryFolder } from '../support/configuration-folder';
import { type Answered, failToStart, MODEL } from '../support/gateway';
import { builtServer } from '../support/shared';
import { textOf } from '../support/sources';
import { useGateway, useUpstream } from '../support/story';
import { chatAnswer, chatFailure, chatStream, respond } from '../support/upstream';

/** The faults of an adapter before any content: a function that throws, no result, or a usage of another form. */
const BEFORE_CONTENT = ['request', 'authorize', 'judge', 'answer', 'event', 'body', 'nothing', 'shapeless'] as const;
type Place = (typeof BEFORE_CONTENT)[number] | 'laterEvent' | 'absurd' | 'telling';
const PLACES: readonly Place[] = [...BEFORE_CONTENT, 'laterEvent', 'absurd', 'telling'];

/** Returns the source of a package of adapters for a dialect like Chat, each with one faulty function. */
const PACKAGE = (dist: string) => `
const chat = require('${dist}/plugins/upstreams/chat.js').default;
const { CHAT } = require('${dist}/core/protocols/chat/index.js');
const { registerAdapter } = require('${dist}/exports/upstream.js');
const { definePlugin } = require('${dist}/exports/plugin.js');
const { pluginManifest } = require('${dist}/exports/manifest.js');
const fault = () => { throw new TypeError('a mistake of its author'); };
const unusable = { passes: [{ counts: new Map([['input', Number.NaN], ['output', -3], ['cacheRead', 1e308], ['audioOutput', 9], ['webSearch', 0.5]]) }] };
const shapeless = { inputTokens: 1, outputTokens: 1 };
const sound = {
  contract: 'upstream/1', dialect: 'like-chat', schema: chat.schema, authorize: chat.authorize, judge: chat.judge,
  request: (call) => ({ path: '/v1/chat/completions', body: { ...CHAT.writeRequest(call), ...(call.conversation.stream && { stream_options: { include_usage: true } }) } }),
  answer: () => CHAT.openReader(),
};
const reading = (change) => ({ answer: () => {
  const reader = CHAT.openReader();
  return { event: (event) => reader.event(event), body: (body) => reader.body(body), end: () => reader.end(), ...change(reader) };
} });
const counted = (usage) => (said) => said.map((each) => (each.kind === 'usage' ? { kind: 'usage', usage } : each));
const reporting = (usage) => reading((reader) => ({
  event: (event) => counted(usage)(reader.event(event)),
  body: (body) => counted(usage)(reader.body(body)),
}));
const faults = {
  nowhere: {},
  request: { request: fault },
  authorize: { authorize: fault },
  judge: { judge: fault },
  answer: { answer: fault },
  event: reading(() => ({ event: fault })),
  body: reading(() => ({ body: fault })),
  nothing: reading(() => ({ event: () => undefined, body: () => undefined })),
  shapeless: reading(() => ({ event: () => [{ kind: 'usage', usage: shapeless }], body: () => [{ kind: 'usage', usage: shapeless }] })),
  laterEvent: reading((reader) => ({ event: (event) => ((event.data ?? '').includes('second') ? fault() : reader.event(event)) })),
  absurd: reporting(unusable),
  telling: reading((reader) => ({ body: (body) => (body.ok === false ? [{ kind: 'error', error: { message: 'no' } }] : reader.body(body)) })),
};
module.exports = pluginManifest(definePlugin({
  contract: 'plugin/1',
  name: 'faulty',
  summary: 'Adapters that throw.',
  schema: { type: 'object', properties: {} },
  register: () => {
    for (const [name, own] of Object.entries(faults)) registerAdapter({ ...sound, ...own, name: 'faulty-' + name.toLowerCase() });
  },
}));
`;

const DEBUG = { 'x-tollgate-debug': 'routing' };
const MESSAGES = [{ role: 'user', content: 'hello' }];

describe('A faulty adapter', () => {
  const faulty = useUpstream();
  const sound = useUpstream();
  let key: string;

  const gateway = useGateway(async () => {
    const folder = temporaryFolder({ 'index.js': PACKAGE(dirname(await builtServer())) });
    const { plugins } = parse(textOf('system.config.yml'));
    const upstreams = PLACES.flatMap((place) => {
      const models = { [`${MODEL}-${place}`]: {} };
      return [
        [
          `faulty-${place.toLowerCase()}`,
          { url: faulty.url, adapter: `faulty-${place.toLowerCase()}`, tier: 'official', models },
        ],
        // An upstream that speaks the client's protocol would come first.
        [`sound-${place.toLowerCase()}`, { url: sound.url, adapter: 'faulty-nowhere', models }],
      ];
    });
    return {
      upstreams: Object.fromEntries(upstreams),
      system: { plugins: { ...plugins, faulty: { package: join(folder, 'index.js') } } },
    };
  });

  before(async () => {
    key = (await gateway.newCustomer('1', { debug: true })).key;
  });

  beforeEach(() => {
    faulty.reset();
    sound.reset();
  });

  const call = (place: Place, stream: boolean): Promise<Answered> =>
    gateway.call('/v1/chat/completions', {
      key,
      headers: DEBUG,
      body: { model: `${MODEL}-${place}`, messages: MESSAGES, stream },
    });

  for (const place of BEFORE_CONTENT) {
    for (const stream of place === 'event' ? [true] : place === 'body' ? [false] : [false, true]) {
      it(`with a fault in "${place}" causes a failed attempt, and the next candidate answers (${stream ? 'streamed' : 'unstreamed'})`, async () => {
        faulty.always(place === 'judge' ? chatFailure(500) : stream ? chatStream() : chatAnswer());
        sound.always(stream ? chatStream() : chatAnswer());
        const before = await gateway.balance(key);
        const answer = await call(place, stream);
        expect(answer.status, answer.text).to.equal(200);
        expect(answer.headers['x-routing-provider']).to.equal(`sound-${place.toLowerCase()}`);
        expect(answer.headers['x-routing-attempts']).to.equal('2');
        const record = await gateway.record(key, String(answer.headers['x-svc-request-id']));
        expect(record).to.include({ billing: 'actual', status: 200 });
        const { attempts } = JSON.parse(String(answer.headers['x-tollgate-routing'])) as {
          attempts: { outcome: string }[];
        };
        expect(attempts.map(({ outcome }) => outcome)).to.deep.equal(['adapter_fault', 'answered']);
        const after = await gateway.balance(key);
        expect(after.heldUsd).to.equal('0.00000000');
        expect(Number(before.balanceUsd) - Number(after.balanceUsd)).to.be.closeTo(Number(record['cost']), 1e-9);
      });
    }
  }

  it('has the same effect as a sound adapter that reports an error answer: the next candidate answers', async () => {
    faulty.always(respond({ body: { ok: false, why: 'no' } }));
    sound.always(chatAnswer());
    const before = await gateway.balance(key);
    const answer = await call('telling', false);
    expect(answer.headers['x-routing-provider']).to.equal('sound-telling');
    const record = await gateway.record(key, String(answer.headers['x-svc-request-id']));
    expect(record).to.include({ billing: 'actual', attempts: 2, upstream: 'sound-telling' });
    const { balanceUsd } = await gateway.balance(key);
    expect(Number(before.balanceUsd) - Number(balanceUsd)).to.be.closeTo(Number(record['cost']), 1e-9);
  });

  it('that throws after content ends the stream with the error event, and the call costs nothing', async () => {
    faulty.always(chatStream({ texts: ['first', 'second', 'third'] }));
    const before = await gateway.balance(key);
    const answer = await call('laterEvent', true);
    expect(answer.status).to.equal(200);
    expect(answer.text).to.include('first').and.include('"code":"ALL_PROVIDERS_FAILED"').and.not.include('[DONE]');
    expect(await gateway.record(key, String(answer.headers['x-svc-request-id']))).to.include({ billing: 'released' });
    expect(await gateway.balance(key)).to.deep.equal(before);
  });

  for (const stream of [false, true]) {
    it(`that reports impossible token counts causes an estimated charge, and the hold ends (${stream ? 'streamed' : 'unstreamed'})`, async () => {
      faulty.always(stream ? chatStream() : chatAnswer());
      const answer = await call('absurd', stream);
      expect(answer.status, answer.text).to.equal(200);
      const record = await gateway.record(key, String(answer.headers['x-svc-request-id']));
      expect(record).to.include({ billing: 'estimated', outputTokens: 2 });
      expect((await gateway.balance(key)).heldUsd).to.equal('0.00000000');
    });
  }

  it('that reports impossible token counts raises the metric of estimated usages for its upstream', async () => {
    const { text } = await gateway.admin('GET', '/metrics');
    expect(text).to.include('tollgate_usage_estimated_total{upstream="faulty-absurd"} 2');
  });

  it('that throws is logged with the function, the exception and the stack, at most once a minute', () => {
    const lines = gateway
      .output()
      .split('\n')
      .filter((line) => line.includes('because the adapter threw'));
    const ofRequest = lines.filter((line) => line.includes('"place":"request"'));
    expect(ofRequest).to.have.length(1);
    expect(JSON.parse(ofRequest[0] ?? '')).to.nested.include({
      adapter: 'faulty-request',
      level: 50,
      'error.message': 'a mistake of its author',
    });
    expect(ofRequest[0]).to.include('index.js');
  });
});

describe('An adapter or driver of a package', () => {
  const REGISTERING = (dist: string, register: string, name = 'outside') => `
const chat = require('${dist}/plugins/upstreams/chat.js').default;
const { registerAdapter } = require('${dist}/exports/upstream.js');
const { registerSupplier } = require('${dist}/exports/supplier.js');
const { definePlugin } = require('${dist}/exports/plugin.js');
const { pluginManifest } = require('${dist}/exports/manifest.js');
module.exports = pluginManifest(definePlugin({
  contract: 'plugin/1',
  name: '${name}',
  summary: 'An adapter.',
  schema: { type: 'object', properties: {} },
  register: () => ${register},
}));
`;

  for (const [kind, register] of [
    ['adapter', "registerAdapter({ ...chat, name: 'twin' })"],
    ['driver', "registerSupplier({ contract: 'supplier/1', name: 'twin', schema: {}, open: () => undefined })"],
  ] as const)
    it(`prevents the start if two packages register ${kind}s with one name, and the error names both packages`, async () => {
      const dist = dirname(await builtServer());
      const [first, second] = ['first', 'second'].map((name) =>
        temporaryFolder({ 'index.js': REGISTERING(dist, register, name) }),
      );
      const { plugins } = parse(textOf('system.config.yml'));
      const packages = { first: { package: `${first}/index.js` }, second: { package: `${second}/index.js` } };
      const { code, output } = await failToStart({ upstreams: {}, system: { plugins: { ...plugins, ...packages } } });
      expect(code, output).to.equal(78);
      expect(output).to.include(`another ${kind} is already named "twin"`).and.include(first).and.include(second);
    });
});
