import assert from 'node:assert/strict';
import { ask, refusal, type Sent } from './support';

const HELLO = [{ role: 'user', content: 'hello' }];
const MESSAGES = { model: 'large', max_tokens: 10, messages: HELLO };
const CHAT = { model: 'large', messages: HELLO };
const CHAT_PATH: Sent = { url: '/cost/v1/chat/completions' };

const messages = (more: object): Promise<string> => refusal(ask({ ...MESSAGES, ...more }));
const chat = (more: object): Promise<string> => refusal(ask({ ...CHAT, ...more }, CHAT_PATH));

describe('what is asked', () => {
  it('is read from a Messages call, its body kept as it came', async () => {
    const text =
      '{"model":"large" , "max_tokens":1e2,"stream":true,"messages":[{"role":"user","content":"é"}],"seed":12345678901234567890}';
    for (const pieceBytes of [1, 7, 1_000]) {
      const request = await ask(text, { url: '/v1/messages?beta=true', pieceBytes });
      assert.equal(request.protocol, 'messages');
      assert.equal(request.modelRequested, 'large');
      assert.equal(request.stream, true);
      assert.equal(request.query, '?beta=true');
      assert.equal(request.maxOutputTokens, 100);
      assert.equal(request.choices, 1);
      assert.equal(request.inputTokensEstimate, Math.ceil(Buffer.byteLength(text) / 3));
      assert.equal(request.members.get('seed'), '12345678901234567890');
      assert.equal(request.body.byteLength, Buffer.byteLength(text));
      assert.equal(Buffer.concat([...request.body.chunks]).toString(), text);
    }
  });

  it('is read from a Chat call, where null is as good as absent', async () => {
    const request = await ask(
      { ...CHAT, max_tokens: 5, max_completion_tokens: 7, n: 3, temperature: 2, stream: null, tools: null },
      CHAT_PATH,
    );
    assert.deepEqual(
      [request.protocol, request.stream, request.maxOutputTokens, request.choices],
      ['chat', false, 7, 3],
    );
    const bare = await ask({ ...CHAT, max_completion_tokens: null, max_tokens: null, n: null }, CHAT_PATH);
    assert.deepEqual([bare.maxOutputTokens, bare.choices], [undefined, 1]);
  });

  it('may come with anything unknown, and as JSON with parameters', async () => {
    const request = await ask(
      { ...MESSAGES, unknown: { deep: [1] } },
      { headers: { 'content-type': 'Application/JSON; charset=utf-8' } },
    );
    assert.equal(request.members.get('unknown'), '{"deep":[1]}');
  });

  it('lets only vendor headers, content-type and accept through', async () => {
    const headers = {
      accept: 'text/event-stream',
      'anthropic-beta': 'a,b',
      'protoa-version': '1',
      'anthropic-hop': 'x',
      connection: 'keep-alive, Anthropic-Hop',
      'x-api-key': 'secret',
      authorization: 'Bearer secret',
      cookie: 'c=1',
      'x-forwarded-for': '10.0.0.1',
    };
    const request = await ask(MESSAGES, { headers });
    assert.deepEqual(request.headers, {
      'content-type': 'application/json',
      accept: 'text/event-stream',
      'anthropic-beta': 'a,b',
      'protoa-version': '1',
    });
    const all = await ask(MESSAGES, { headers, settings: { forwardHeaderPrefixes: ['x-', 'author'] } });
    assert.deepEqual(Object.keys(all.headers).sort(), ['accept', 'content-type']);
  });
});

describe('a body that is refused', () => {
  const BROKEN = ['', '{', '[]', '"x"', '{"model":"a",}', '{"model":"a"}}', '\ufeff{}', '[[[['];
  for (const text of BROKEN) {
    it(`is no JSON object: ${JSON.stringify(text)}`, async () =>
      assert.equal(await refusal(ask(text)), 'INVALID_JSON'));
  }

  it('is 20 MB of brackets', async () => {
    assert.equal(await refusal(ask(Buffer.alloc(20_000_000, '['), { pieceBytes: 65_536 })), 'INVALID_JSON');
  });

  for (const name of [
    'model',
    'stream',
    'stream_options',
    'max_tokens',
    'max_completion_tokens',
    'n',
    'priority',
    'service_tier',
    'messages',
    'tools',
  ]) {
    it(`says "${name}" twice, once with an escape`, async () => {
      const escaped = `\\u${name.charCodeAt(0).toString(16).padStart(4, '0')}${name.slice(1)}`;
      assert.equal(await refusal(ask(`{"${name}":1,"x":1,"x":2,"${escaped}":1}`)), `INVALID_FIELD ${name}`);
    });
  }

  it('spells a limit so that only some upstreams would see it', async () => {
    assert.equal(await messages({ Max_Tokens: 9_999 }), 'INVALID_FIELD Max_Tokens');
    assert.equal(await messages({ meſſages: 1 }), 'INVALID_FIELD meſſages');
  });

  it('has a wrong content type or is compressed', async () => {
    for (const headers of [
      { 'content-type': 'text/plain' },
      { 'content-type': 'application/jsonp' },
      { 'content-encoding': 'gzip' },
    ]) {
      assert.equal(await refusal(ask(MESSAGES, { headers })), 'UNSUPPORTED_MEDIA_TYPE');
    }
    assert.equal(await refusal(ask(MESSAGES, { headers: { 'content-encoding': 'Identity' } })), 'accepted');
  });
});

describe('a field of a Messages call', () => {
  const TABLE: readonly [object, string][] = [
    [{ model: '' }, 'INVALID_FIELD model'],
    [{ model: 5 }, 'INVALID_FIELD model'],
    [{ model: null }, 'INVALID_FIELD model'],
    [{ model: 'x'.repeat(257) }, 'INVALID_FIELD model'],
    [{ model: 'x'.repeat(5_000) }, 'INVALID_FIELD model'],
    [{ max_tokens: undefined }, 'INVALID_FIELD max_tokens'],
    [{ max_tokens: null }, 'INVALID_FIELD max_tokens'],
    [{ max_tokens: -1 }, 'INVALID_FIELD max_tokens'],
    [{ max_tokens: 0 }, 'accepted'],
    [{ max_tokens: 1.5 }, 'INVALID_FIELD max_tokens'],
    [{ max_tokens: '10' }, 'INVALID_FIELD max_tokens'],
    [{ max_tokens: 1e300 }, 'INVALID_FIELD max_tokens'],
    [{ messages: undefined }, 'INVALID_FIELD messages'],
    [{ messages: {} }, 'INVALID_FIELD messages'],
    [{ messages: ['x'] }, 'INVALID_FIELD messages[0]'],
    [{ messages: [[]] }, 'INVALID_FIELD messages[0]'],
    [{ messages: [...HELLO, { content: 'x' }] }, 'INVALID_FIELD messages[1].role'],
    [{ messages: [{ role: 'tool', content: 'x' }] }, 'INVALID_FIELD messages[0].role'],
    [{ messages: [{ role: { a: 'user' } }] }, 'INVALID_FIELD messages[0].role'],
    [{ messages: [{ content: { role: 'user' } }] }, 'INVALID_FIELD messages[0].role'],
    [{ stream: 'true' }, 'INVALID_FIELD stream'],
    [{ stream: null }, 'INVALID_FIELD stream'],
    [{ temperature: 1.1 }, 'INVALID_FIELD temperature'],
    [{ temperature: -0.1 }, 'INVALID_FIELD temperature'],
    [{ temperature: 1 }, 'accepted'],
    [{ tools: {} }, 'INVALID_FIELD tools'],
    [{ system: 5 }, 'INVALID_FIELD system'],
    [{ system: 'x' }, 'accepted'],
    [{ system: [{ type: 'text', text: 'x' }] }, 'accepted'],
    [{ n: 'whatever' }, 'accepted'],
  ];
  for (const [more, expected] of TABLE) {
    it(`${JSON.stringify(more).slice(0, 60)}: ${expected}`, async () => assert.equal(await messages(more), expected));
  }
});

describe('a field of a Chat call', () => {
  const TABLE: readonly [object, string][] = [
    [
      { messages: ['developer', 'system', 'user', 'assistant', 'tool', 'function'].map((role) => ({ role })) },
      'accepted',
    ],
    [{ messages: [{ role: 'robot' }] }, 'INVALID_FIELD messages[0].role'],
    [{ messages: null }, 'INVALID_FIELD messages'],
    [{ temperature: 2.1 }, 'INVALID_FIELD temperature'],
    [{ temperature: null }, 'accepted'],
    [{ n: 0 }, 'INVALID_FIELD n'],
    [{ n: 129 }, 'INVALID_FIELD n'],
    [{ n: 128 }, 'accepted'],
    [{ max_completion_tokens: -1 }, 'INVALID_FIELD max_completion_tokens'],
    [{ stream_options: [] }, 'INVALID_FIELD stream_options'],
    [{ stream_options: null }, 'accepted'],
    [{ stream_options: { a: 'x'.repeat(5_000) } }, 'INVALID_FIELD stream_options'],
    [{ temperature: ' '.repeat(5_000) }, 'INVALID_FIELD temperature'],
  ];
  for (const [more, expected] of TABLE) {
    it(`${JSON.stringify(more).slice(0, 60)}: ${expected}`, async () => assert.equal(await chat(more), expected));
  }
});

describe('what has no price', () => {
  const REFUSED = 'MODEL_NOT_PRICED';
  const IN_MESSAGES: readonly [object, string][] = [
    [{ service_tier: 'priority' }, `${REFUSED} service_tier`],
    [{ service_tier: 'auto' }, 'accepted'],
    [{ service_tier: 'standard_only' }, 'accepted'],
    [{ speed: 'fast' }, `${REFUSED} speed`],
    [{ speed: 'standard' }, 'accepted'],
    [{ inference_geo: 'us' }, `${REFUSED} inference_geo`],
    [{ tools: [{ name: 'a' }, { type: 'web_search_20250305' }] }, `${REFUSED} tools[1].type`],
    [{ tools: [{ type: 'code_execution_20250825' }] }, `${REFUSED} tools[0].type`],
    [{ tools: [{ type: 'x'.repeat(5_000) }] }, `${REFUSED} tools[0].type`],
    [{ tools: [{ type: 'custom', type_: 'web_search', input_schema: { type: 'web_search' } }] }, 'accepted'],
    [{ tools: [{ type: 'bash_20250124' }, { type: 'text_editor_20250728' }, { type: null }] }, 'accepted'],
    [{ tools: [{ type: 'bash_1 web_search' }] }, `${REFUSED} tools[0].type`],
    [{ tools: [{ type: 5 }] }, 'INVALID_FIELD tools[0].type'],
  ];
  for (const [more, expected] of IN_MESSAGES) {
    it(`Messages ${JSON.stringify(more).slice(0, 60)}: ${expected}`, async () =>
      assert.equal(await messages(more), expected));
  }
  const IN_CHAT: readonly [object, string][] = [
    [{ service_tier: 'flex' }, `${REFUSED} service_tier`],
    [{ service_tier: null }, 'accepted'],
    [{ web_search_options: {} }, `${REFUSED} web_search_options`],
    [{ modalities: ['text', 'audio'] }, `${REFUSED} modalities`],
    [{ modalities: ['text'] }, 'accepted'],
    [{ tools: [{ type: 'function' }, { type: 'web_search' }] }, `${REFUSED} tools[1].type`],
  ];
  for (const [more, expected] of IN_CHAT) {
    it(`Chat ${JSON.stringify(more).slice(0, 60)}: ${expected}`, async () => assert.equal(await chat(more), expected));
  }
});

describe('the estimate of the input', () => {
  const data = 'QUJD'.repeat(3_000);
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data } };
  const reversed = { source: { data, type: 'base64' }, type: 'image' };
  const url = { image_url: { url: `data:image/png;base64,${data}` }, type: 'image_url' };

  async function estimate(content: unknown, sent: Sent = {}): Promise<{ tokens: number; bytes: number }> {
    const request = await ask({ ...MESSAGES, messages: [{ role: 'user', content }] }, sent);
    return { tokens: request.inputTokensEstimate, bytes: request.body.byteLength };
  }

  const COUNTED: readonly [string, unknown, number, number][] = [
    ['an image', [image], 1, 1],
    ['an image whose type comes last', [reversed], 1, 1],
    [
      'an image in the result of a tool',
      [{ type: 'tool_result', content: [{ type: 'text', text: 'x' }, image] }],
      1,
      1,
    ],
    ['a data URL', [url, url], 2, 2],
    ['an image by address', [{ type: 'image_url', image_url: { url: `https://x.example/${data}` } }], 1, 0],
    ['an image whose source is text', [{ type: 'image', source: { type: 'text', data } }], 1, 0],
    ['base64 under another type', [{ type: 'document', source: { type: 'base64', data } }], 0, 0],
    [
      'the arguments of a tool',
      [
        { type: 'tool_use', input: image },
        { type: 'tool_use', input: { content: [image] } },
      ],
      0,
      0,
    ],
    ['text that looks like one', JSON.stringify(image), 0, 0],
  ];
  for (const [name, content, images, withBytes] of COUNTED) {
    it(`counts ${name} as ${images} with ${withBytes} × base64 left out`, async () => {
      for (const pieceBytes of [1, 4_096, 1_000_000]) {
        const { tokens, bytes } = await estimate(content, { pieceBytes });
        assert.equal(tokens, Math.ceil((bytes - withBytes * data.length) / 3) + images * 1_600);
      }
    });
  }
});
