import { expect } from 'chai';
import { request } from 'undici';
import { ask, askAsSent, askIn, PATH, PROTOCOLS } from '../support/calls';
import { answerOf, streamOf } from '../support/dialects';
import { MODEL, startGateway, UPSTREAM_CREDENTIAL } from '../support/gateway';
import { useGateway, useUpstream } from '../support/story';
import { chatStream, messagesAnswer, messagesStream, startUpstream } from '../support/upstream';

describe('The gateway, between client and upstream,', () => {
  const upstream = useUpstream();
  let key: string;

  const gateway = useGateway(() => {
    const models = { 'Acme.Large-Native': { aliases: [MODEL] } };
    return { upstreams: { acme: { url: `${upstream.url}/base`, models } } };
  });

  before(async () => {
    ({ key } = await gateway.newCustomer('10'));
  });
  beforeEach(() => upstream.reset());

  it("forwards a body unchanged, except for the model's name and the removed member `priority`", async () => {
    upstream.next(messagesAnswer());
    const body =
      '{ "big":123456789012345678901234567890 ,"model" : "acme-large","max_tokens":9,\n"esc":"\\u00e9\\/\\ud83d\\ude00é😀","priority":{"a":[1,2]},"messages":[{"role":"user","content":"Hi"}],"z":1.0e+2,"A":{"model":"acme-large"} }';
    const answer = await gateway.call('/v1/messages', { key, body });
    expect(answer.status, answer.text).to.equal(200);
    expect(upstream.calls[0]?.body.toString()).to.equal(
      body.replace('"acme-large","max', '"Acme.Large-Native","max').replace('"priority":{"a":[1,2]},', ''),
    );
  });

  it('adds the option that requests usage to a streamed Chat call, and keeps its other stream options', async () => {
    upstream.next(chatStream({ withUsage: true }));
    const body = `{"model":"${MODEL}","stream":true,"stream_options":{"include_obfuscation":false},"messages":[{"role":"user","content":"Hi"}]}`;
    await gateway.call('/v1/chat/completions', { key, body });
    expect(upstream.calls[0]?.json).to.have.deep.property('stream_options', {
      include_obfuscation: false,
      include_usage: true,
    });
  });

  for (const protocol of PROTOCOLS) {
    it(`forwards query, vendor headers and the platform's credential, but not the client's credential (${protocol})`, async () => {
      upstream.next(
        answerOf[protocol]({}, { headers: { 'anthropic-ratelimit': '7', 'set-cookie': 'a=b', 'x-other': '1' } }),
      );
      const answer = await gateway.call(`${PATH[protocol]}?beta=true`, {
        key,
        body: askIn(protocol),
        headers: {
          'anthropic-version': '2099-01-01',
          'anthropic-beta': 'one,two',
          'protoa-beta': 'three',
          cookie: 'secret=1',
          'x-forwarded-for': '10.0.0.1',
          'svc-key': key,
          'x-custom': 'no',
        },
      });
      expect(answer.status, answer.text).to.equal(200);
      const seen = upstream.calls[0];
      expect(seen?.path).to.equal(`/base${PATH[protocol]}?beta=true`);
      expect(seen?.headers).to.include({
        'anthropic-version': '2099-01-01',
        'anthropic-beta': 'one,two',
        'protoa-beta': 'three',
        'content-type': 'application/json',
        'accept-encoding': 'identity',
      });
      if (protocol === 'messages') expect(seen?.headers['x-api-key']).to.equal(UPSTREAM_CREDENTIAL);
      else expect(seen?.headers.authorization).to.equal(`Bearer ${UPSTREAM_CREDENTIAL}`);
      expect(JSON.stringify(seen?.headers)).not.to.include(key);
      for (const name of ['cookie', 'x-forwarded-for', 'svc-key', 'x-custom'])
        expect(seen?.headers).not.to.have.property(name);
      expect(answer.headers).to.include({ 'anthropic-ratelimit': '7' });
      for (const name of ['set-cookie', 'x-other']) expect(answer.headers).not.to.have.property(name);
    });

    it(`relays every byte of a stream, except for the added cost (${protocol})`, async () => {
      const script = streamOf(protocol, { texts: ['é', '😀', ' x'] });
      upstream.next(script);
      const direct = await request(`${upstream.url}${PATH[protocol]}`, { method: 'POST', body: '{}' });
      const wanted = await direct.body.text();
      upstream.next(script);
      const answer = await gateway.call(PATH[protocol], { key, body: askAsSent(protocol) });
      expect(answer.headers['content-type']).to.equal(direct.headers['content-type']);
      expect(answer.text.replace(/,"cost":\d+\.\d{8}/, '')).to.equal(wanted);
      expect(answer.text).not.to.equal(wanted);
    });
  }

  it('relays each event when it arrives, before the stream ends', async () => {
    upstream.next(messagesStream({ texts: ['one', 'two', 'three'], delayMs: 150 }));
    const answer = await request(`${gateway.url}/v1/messages`, {
      method: 'POST',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      body: JSON.stringify(ask({ stream: true })),
    });
    const seen: string[] = [];
    let whenOne: string | undefined;
    for await (const chunk of answer.body) {
      seen.push(String(chunk));
      if (whenOne === undefined && seen.join('').includes('one')) whenOne = seen.join('');
    }
    expect(whenOne).not.to.include('three');
    expect(seen.join('')).to.include('three');
  });
});

describe('Two upstreams', () => {
  it('are chosen by strategy: the cheapest one for `cost`, the official one for `quality`', async () => {
    const [upstream, cheap] = await Promise.all([startUpstream(), startUpstream()]);
    const cheapModel = { [MODEL]: { price: { input: 1, output: 2 } } };
    const gateway = await startGateway({
      upstreams: { official: { url: upstream.url, tier: 'official' }, cheap: { url: cheap.url, models: cheapModel } },
    });
    try {
      const customer = await gateway.newCustomer('10');
      upstream.always(messagesAnswer());
      cheap.always(messagesAnswer());
      const provider = async (path: string) =>
        (await gateway.call(path, { key: customer.key, body: ask() })).headers['x-routing-provider'];
      expect(await provider('/v1/messages')).to.equal('official');
      expect(await provider('/default/v1/messages')).to.equal('official');
      expect(await provider('/quality/v1/messages')).to.equal('official');
      expect(await provider('/cost/v1/messages')).to.equal('cheap');
      expect(await provider('/speed/v1/messages')).to.be.oneOf(['official', 'cheap']);
    } finally {
      await gateway.stop();
      await Promise.all([upstream.stop(), cheap.stop()]);
    }
  });
});
