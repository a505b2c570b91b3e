import { expect } from 'chai';
import { askIn, PATH } from '../support/calls';
import { MODEL } from '../support/gateway';
import { useGateway, useUpstream } from '../support/story';
import { TestSocket } from '../support/test-socket';
import { chatAnswer, messagesAnswer, responsesAnswer, responsesStream } from '../support/upstream';

const NAMES = ['prompt_cache_key', 'cache_salt', 'extra_key', 'prompt_cache_isolation_key'] as const;
const OWN_NAME = /^[0-9a-f]{32}$/;

describe('Two accounts that share the cache of one credential', () => {
  const upstream = useUpstream();
  const isolated = useUpstream();
  const models = (name: string) => ({ [name]: { context: 200_000 } });
  const gateway = useGateway(() => ({
    upstreams: {
      acme: { url: upstream.url, webSocket: true },
      'only-responses': { url: upstream.url, adapter: 'responses', models: models('from-chat') },
      isolated: { url: isolated.url, isolateCaches: true, models: models('isolated') },
      'isolated-chat': { url: isolated.url, adapter: 'chat', isolateCaches: true, models: models('isolated-chat') },
      'isolated-messages': {
        url: isolated.url,
        adapter: 'messages',
        isolateCaches: true,
        models: models('isolated-messages'),
      },
    },
  }));
  let one: string;
  let other: string;
  before(async () => {
    ({ key: one } = await gateway.newCustomer('10'));
    ({ key: other } = await gateway.newCustomer('10'));
  });
  beforeEach(() => {
    for (const each of [upstream, isolated]) each.reset();
  });

  const call = (key: string, path: string, body: unknown) => gateway.call(path, { key, body });
  /** Sends the same body for both accounts, and for the first one again. Returns the bodies that the upstream got. */
  async function sent(at: typeof upstream, path: string, body: unknown): Promise<string[]> {
    for (const key of [one, other, one]) {
      const answer = await call(key, path, body);
      expect(answer.status, answer.text).to.equal(200);
    }
    return at.calls.map((each) => String(each.body));
  }
  const nameIn = (body: string | undefined, member = 'prompt_cache_key') =>
    (JSON.parse(body ?? '{}') as Record<string, unknown>)[member];

  for (const protocol of ['chat', 'responses'] as const)
    for (const member of NAMES)
      it(`get separate cache names for \`${member}\` in ${protocol}, and no other byte changes`, async () => {
        upstream.always(protocol === 'chat' ? chatAnswer() : responsesAnswer());
        const conversation = protocol === 'chat' ? '"messages":[{"role":"user","content":"a"}]' : '"input":"a"';
        const body = (value: string) => `{ "model":"${MODEL}", "${member}" : ${value} ,${conversation}, "store":false}`;
        const bodies = await sent(upstream, PATH[protocol], body('"the secret project"'));
        const [first, second, again] = bodies.map((each) => nameIn(each, member));
        expect(first).to.match(OWN_NAME);
        expect(second).to.match(OWN_NAME);
        expect(first).not.to.equal(second);
        expect(again).to.equal(first);
        expect(bodies[0]).to.equal(body(JSON.stringify(first)));
        upstream.reset();
        upstream.always(protocol === 'chat' ? chatAnswer() : responsesAnswer());
        const [different] = await sent(upstream, PATH[protocol], body('"another project"'));
        expect(nameIn(different, member)).not.to.equal(first);
      });

  it('get separate cache names in a translated call, and over a WebSocket', async () => {
    upstream.always(responsesAnswer());
    const translated = await sent(
      upstream,
      PATH.chat,
      askIn('chat', { model: 'from-chat', prompt_cache_key: 'the secret project' }),
    );
    expect(upstream.calls.map(({ path }) => path)).to.deep.equal(Array(3).fill('/v1/responses'));
    upstream.reset();
    upstream.always(responsesStream());
    for (const key of [one, other]) {
      const socket = await TestSocket.open(gateway, key);
      await socket.call({ prompt_cache_key: 'the secret project' });
      socket.close();
      await socket.closed;
    }
    const framed = upstream.calls.map(({ body }) => nameIn(String(body)));
    expect(framed).to.deep.equal(translated.slice(0, 2).map((body) => nameIn(body)));
    expect(new Set(framed).size).to.equal(2);
  });

  it('each get the same cache name for the same name of a client, however the client spells the JSON', async () => {
    upstream.always(responsesAnswer());
    const spelt = (name: string, value: string) => `{"model":"${MODEL}","input":"a","store":false,"${name}":${value}}`;
    for (const body of [
      spelt('prompt_cache_key', '"plan"'),
      spelt('prompt_cache_k\\u0065y', '"pl\\u0061n"'),
      spelt('prompt_cache_key', '["plan"]'),
      spelt('prompt_cache_key', '7'),
      spelt('prompt_cache_key', 'null'),
    ])
      expect((await call(one, PATH.responses, body)).status).to.equal(200);
    const [plain, escaped, list, number, none] = upstream.calls.map(({ body }) => nameIn(String(body)));
    expect(plain).to.match(OWN_NAME);
    expect(escaped).to.equal(plain);
    for (const each of [list, number]) expect(each).to.match(OWN_NAME).and.not.to.equal(plain);
    expect(none).to.equal(null);
  });

  it('get 400 if a call misspells the member of the cache name, repeats it, or has a very long name', async () => {
    for (const members of [
      '"promptCacheKey":"a"',
      '"Prompt_Cache_Key":"a"',
      '"prompt-cache-key":"a"',
      '"prompt_cache_key\\u200b":"a"',
      '"cacheSalt":"a"',
      '"prompt_cache_key":"a","prompt_cache_key":"b"',
      '"prompt_cache_key":"a","prompt_cache_k\\u0065y":"b"',
      `"prompt_cache_key":"${'x'.repeat(5_000)}"`,
    ]) {
      const refused = await call(one, PATH.responses, `{"model":"${MODEL}","input":"a",${members}}`);
      expect([refused.status, refused.json.error.code], members).to.deep.equal([400, 'INVALID_FIELD']);
    }
    expect(upstream.calls).to.be.empty;
  });

  for (const [model, protocol, answer, isNamed] of [
    ['isolated', 'responses', responsesAnswer(), true],
    ['isolated', 'chat', chatAnswer(), true],
    ['isolated-chat', 'responses', chatAnswer(), true],
    ['isolated', 'messages', messagesAnswer(), false],
    ['isolated-messages', 'responses', messagesAnswer(), false],
  ] as const)
    it(`${isNamed ? 'have' : 'have no'} separate caches with \`isolateCaches\` in a ${protocol} call of ${model}`, async () => {
      isolated.always(answer);
      const body = askIn(protocol, { model });
      const [first, second, again] = (await sent(isolated, PATH[protocol], body)).map((each) => nameIn(each));
      if (!isNamed) return void expect([first, second, again]).to.deep.equal([undefined, undefined, undefined]);
      expect(first).to.match(OWN_NAME);
      expect(second).to.match(OWN_NAME).and.not.to.equal(first);
      expect(again).to.equal(first);
    });

  it('use the cache name of the call if it has one, even with `isolateCaches`; without both, they share the cache', async () => {
    isolated.always(responsesAnswer());
    upstream.always(responsesAnswer());
    const [named] = await sent(
      isolated,
      PATH.responses,
      askIn('responses', { model: 'isolated', prompt_cache_key: 'a' }),
    );
    const [own] = await sent(upstream, PATH.responses, askIn('responses', { prompt_cache_key: 'a' }));
    expect(nameIn(named)).to.equal(nameIn(own));
    upstream.reset();
    upstream.always(responsesAnswer());
    const bodies = await sent(upstream, PATH.responses, askIn('responses'));
    expect(bodies.map((body) => nameIn(body))).to.deep.equal([undefined, undefined, undefined]);
  });
});
