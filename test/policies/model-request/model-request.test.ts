import assert from 'node:assert/strict';
import { ask, refusal, type Sent } from './support';

const HELLO = [{ role: 'user', content: 'hello' }];
const MESSAGES = { model: 'large', max_tokens: 10, messages: HELLO };
const CHAT = { model: 'large', messages: HELLO };
const CHAT_PATH: Sent = { url: '/cost/v1/chat/completions' };

const messages = (more: object): Promise<string> => refusal(ask({ ...MESSAGES, ...more }));
const chat = (more: object): Promise<string> => refusal(ask({ ...CHAT, ...more }, CHAT_PATH));

describe('a model request', () => {
  it('is read from a Messages call, and its body is not changed', async () => {
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
});

describe('a refused body', () => {
  const BROKEN = ['', '{', '[]', '"x"', '{"model":"a",}', '{"model":"a"}}', '\ufeff{}', '[[[['];
  for (const text of BROKEN) {
    it(`is ${JSON.stringify(text)}, because it is not a JSON object`, async () =>
      assert.equal(await refusal(ask(text)), 'INVALID_JSON'));
  }

  for (const name of ['model', 'stream', 'max_tokens', 'service_tier', 'messages', 'tools']) {
    it(`has "${name}" twice, once with an escape`, async () => {
      const escaped = `\\u${name.charCodeAt(0).toString(16).padStart(4, '0')}${name.slice(1)}`;
      assert.equal(await refusal(ask(`{"${name}":1,"x":1,"x":2,"${escaped}":1}`)), `INVALID_FIELD ${name}`);
    });
  }

  it('has an output limit in a spelling that only some upstreams accept', async () => {
    assert.equal(await messages({ Max_Tokens: 9_999 }), 'INVALID_FIELD Max_Tokens');
    assert.equal(await messages({ meſſages: 1 }), 'INVALID_FIELD meſſages');
  });
});

describe('a Messages call with one changed field', () => {
  const TABLE: readonly [object, string][] = [
    [{ model: '' }, 'INVALID_FIELD model'],
    [{ model: 'x'.repeat(257) }, 'INVALID_FIELD model'],
    [{ max_tokens: undefined }, 'INVALID_FIELD max_tokens'],
    [{ max_tokens: 0 }, 'accepted'],
    [{ max_tokens: 1.5 }, 'INVALID_FIELD max_tokens'],
    [{ messages: undefined }, 'INVALID_FIELD messages'],
    [{ messages: {} }, 'INVALID_FIELD messages'],
    [{ messages: ['x'] }, 'INVALID_FIELD messages[0]'],
    [{ messages: [...HELLO, { content: 'x' }] }, 'INVALID_FIELD messages[1].role'],
    [{ messages: [{ role: 'tool', content: 'x' }] }, 'INVALID_FIELD messages[0].role'],
    [{ messages: [{ role: { a: 'user' } }] }, 'INVALID_FIELD messages[0].role'],
    [{ messages: [{ content: { role: 'user' } }] }, 'INVALID_FIELD messages[0].role'],
    [{ stream: 'true' }, 'INVALID_FIELD stream'],
    [{ stream: null }, 'INVALID_FIELD stream'],
    [{ temperature: 1.1 }, 'INVALID_FIELD temperature'],
    [{ tools: {} }, 'INVALID_FIELD tools'],
    [{ system: 5 }, 'INVALID_FIELD system'],
    [{ system: [{ type: 'text', text: 'x' }] }, 'accepted'],
  ];
  for (const [more, expected] of TABLE) {
    it(`gets ${expected} for ${JSON.stringify(more).slice(0, 60)}`, async () =>
      assert.equal(await messages(more), expected));
  }
});

describe('a Chat call with one changed field', () => {
  const TABLE: readonly [object, string][] = [
    [
      { messages: ['developer', 'system', 'user', 'assistant', 'tool', 'function'].map((role) => ({ role })) },
      'accepted',
    ],
    [{ messages: [{ role: 'robot' }] }, 'INVALID_FIELD messages[0].role'],
    [{ messages: null }, 'INVALID_FIELD messages'],
    [{ temperature: 2.1 }, 'INVALID_FIELD temperature'],
    [{ n: 129 }, 'INVALID_FIELD n'],
    [{ stream_options: [] }, 'INVALID_FIELD stream_options'],
    [{ stream_options: null }, 'accepted'],
    [{ stream_options: { a: 'x'.repeat(5_000) } }, 'INVALID_FIELD stream_options'],
    [{ temperature: ' '.repeat(5_000) }, 'INVALID_FIELD temperature'],
  ];
  for (const [more, expected] of TABLE) {
    it(`gets ${expected} for ${JSON.stringify(more).slice(0, 60)}`, async () =>
      assert.equal(await chat(more), expected));
  }
});

describe('a call with a member that may have no price', () => {
  const REFUSED = 'MODEL_NOT_PRICED';
  const IN_MESSAGES: readonly [object, string][] = [
    // A model may have a price for these values, which routing checks when it knows the candidates.
    [{ service_tier: 'priority' }, 'accepted'],
    [{ service_tier: 7 }, `${REFUSED} service_tier`],
    [{ service_tier: 'standard_only' }, 'accepted'],
    [{ speed: 'standard' }, 'accepted'],
    [{ inference_geo: 'x'.repeat(5_000) }, `${REFUSED} inference_geo`],
    [{ tools: [{ name: 'a' }, { type: 'web_search_20250305' }] }, 'accepted'],
    [{ tools: [{ type: 'code_execution_20250825' }] }, 'accepted'],
    [{ tools: [{ name: 'a' }, { type: 'advisor_20260301' }] }, 'extra tools[1].type'],
    [{ tools: [{ type: 'x'.repeat(5_000) }] }, 'extra tools[0].type'],
    [{ tools: [{ type: 'custom', type_: 'web_search', input_schema: { type: 'web_search' } }] }, 'accepted'],
    [{ tools: [{ type: 'bash_20250124' }, { type: 'text_editor_20250728' }, { type: null }] }, 'accepted'],
    [{ tools: [{ type: 'bash_1 web_search' }] }, 'extra tools[0].type'],
    [{ tools: [{ type: 5 }] }, 'INVALID_FIELD tools[0].type'],
  ];
  for (const [more, expected] of IN_MESSAGES) {
    it(`gets ${expected} in Messages for ${JSON.stringify(more).slice(0, 60)}`, async () =>
      assert.equal(await messages(more), expected));
  }
  const IN_CHAT: readonly [object, string][] = [
    [{ service_tier: ['flex'] }, `${REFUSED} service_tier`],
    [{ web_search_options: {} }, 'accepted'],
    [{ modalities: ['text', 'audio'] }, 'extra modalities'],
    [{ tools: [{ type: 'function' }, { type: 'web_search' }] }, 'extra tools[1].type'],
  ];
  for (const [more, expected] of IN_CHAT) {
    it(`gets ${expected} in Chat for ${JSON.stringify(more).slice(0, 60)}`, async () =>
      assert.equal(await chat(more), expected));
  }
});

describe('the estimate of the input', () => {
  const data = 'QUJD'.repeat(3_000);
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data } };
  const reversed = { source: { data, type: 'base64' }, type: 'image' };
  const url = { image_url: { url: `data:image/png;base64,${data}` }, type: 'image_url' };
  const pdf = { type: 'document', source: { type: 'base64', data } };

  const COUNTED: readonly [string, unknown, number, number, Sent?][] = [
    ['an image', [image], 1, 1],
    ['an image whose type comes last', [reversed], 1, 1],
    [
      'an image in the result of a tool',
      [{ type: 'tool_result', content: [{ type: 'text', text: 'x' }, image] }],
      1,
      1,
    ],
    ['a data URL', [url, url], 2, 2, CHAT_PATH],
    ['an image by address', [{ type: 'image_url', image_url: { url: `https://x.example/${data}` } }], 1, 0, CHAT_PATH],
    ['an image whose source is text', [{ type: 'image', source: { type: 'text', data } }], 0, 0],
    ['a document', [pdf], 0, 1],
    ['text of a document', [{ type: 'document', source: { type: 'text', data } }], 0, 0],
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
  for (const [name, content, images, withBytes, sent] of COUNTED) {
    it(`counts ${name} as ${images} images, and omits its bytes from the text ${withBytes} times`, async () => {
      for (const pieceBytes of [1, 4_096, 1_000_000]) {
        const { inputTokensEstimate, body } = await ask(
          { ...MESSAGES, messages: [{ role: 'user', content }] },
          { ...sent, pieceBytes },
        );
        const textBytes = body.byteLength - withBytes * data.length;
        assert.equal(inputTokensEstimate, Math.ceil(textBytes / 3) + images * 1_600);
      }
    });
  }
});

describe('the detail of an image', () => {
  const url = 'data:image/png;base64,QUJD';
  const part = (more: string, image = `"${url}"`) => `{"type":"input_image","image_url":${image}${more}}`;
  const ROWS: readonly [string, string][] = [
    ['', 'auto'],
    [',"detail":"low"', 'low'],
    [',"\\u0064etail":"original"', 'original'],
    [',"detail":"ultra"', 'most'],
    [',"detail":null', 'most'],
    [',"detail":"low","detail":"high"', 'most'],
    [',"detail":"low","DETAIL":"high"', 'most'],
  ];
  for (const [more, detail] of ROWS)
    it(`is ${detail} in a Responses call whose image has the further members: ${more || 'none'}`, async () => {
      const body = `{"model":"large","store":false,"input":[{"role":"user","content":[${part(more)}]}]}`;
      const { reading } = await ask(body, { url: '/v1/responses' });
      assert.deepEqual([...reading.images], [[detail, 1]]);
    });

  it('is read only from `image_url` in Chat', async () => {
    const images = [`{"url":"${url}","detail":"high"}`, `{"url":"${url}"}`].map(
      (image) => `{"type":"image_url","image_url":${image},"detail":"low"}`,
    );
    const body = `{"model":"large","messages":[{"role":"user","content":[${images}]}]}`;
    assert.deepEqual(
      [...(await ask(body, CHAT_PATH)).reading.images],
      [
        ['high', 1],
        ['auto', 1],
      ],
    );
  });
});

describe('the content that the vendor reads in addition to the body', () => {
  const byUrl = { type: 'url', url: 'https://x.example/a' };
  const text = { type: 'text', text: 'x' };
  const plain = { images: 0, imagesByUrl: 0, documents: 0, isUnbounded: false };
  const image = { type: 'image', source: byUrl };
  const pdf = { type: 'document', source: byUrl };
  const raw = (part: string) => `{"model":"large","max_tokens":1,"messages":[{"role":"user","content":[${part}]}]}`;

  const noImage = (url: string): [string, unknown, object, Sent][] => [
    ['an image that is none', [{ type: 'image_url', image_url: { url } }], { ...plain, isUnbounded: true }, CHAT_PATH],
    [
      'an image that is none, as a bare address',
      [{ type: 'image_url', image_url: url }],
      { ...plain, isUnbounded: true },
      CHAT_PATH,
    ],
  ];
  const PARTS: readonly [string, unknown, object, Sent?][] = [
    ['text', [text], plain],
    ['an image by URL', [image], { ...plain, imagesByUrl: 1 }],
    ['a document by URL', [pdf, text], { ...plain, documents: 1 }],
    [
      'one in the result of a tool',
      [{ type: 'tool_result', content: [pdf, image] }],
      { ...plain, documents: 1, imagesByUrl: 1 },
    ],
    [
      'one in what the vendor fetched before',
      [{ type: 'web_fetch_tool_result', content: { type: 'web_fetch_result', content: pdf } }],
      { ...plain, documents: 1 },
    ],
    [
      'an image in a document of parts',
      [{ type: 'document', source: { type: 'content', content: [image, text] } }],
      { ...plain, imagesByUrl: 1 },
    ],
    ['the arguments of a tool', [{ type: 'tool_use', input: { a: pdf, type: 'document' } }], plain],
    ['a part of an unknown type', [{ type: 'hologram' }], { ...plain, isUnbounded: true }],
    ['a part without a type', [{ text: 'x' }], { ...plain, isUnbounded: true }],
    [
      'an unknown source',
      [{ type: 'document', source: { type: 's3', uri: 'https://x.example/x' } }],
      { ...plain, isUnbounded: true },
    ],
    [
      'a reference to a tool',
      [{ type: 'tool_result', content: [{ type: 'tool_reference', tool_name: 'x' }] }],
      { ...plain, isUnbounded: true },
    ],
    [
      'a file in the body',
      [{ type: 'file', file: { file_data: 'data:application/pdf;base64,QUJD' } }],
      { ...plain, documents: 1 },
      CHAT_PATH,
    ],
    ...['data:text/plain;base64,QUJD', 'data:application/pdf;base64,QUJD', 'data:image/png,QUJD'].flatMap(noImage),
    [
      'an image as a bare address',
      [{ type: 'image_url', image_url: 'https://x.example/a' }],
      { ...plain, imagesByUrl: 1 },
      CHAT_PATH,
    ],
  ];
  for (const [name, content, expected, sent] of PARTS) {
    it(`is counted for ${name}`, async () => {
      for (const pieceBytes of [1, 1_000]) {
        const body = { ...MESSAGES, messages: [{ role: 'user', content }, ...HELLO] };
        const { reading } = await ask(body, { ...sent, pieceBytes });
        const { imagesByUrl, documents, isUnbounded } = reading;
        const images = reading.images.size;
        assert.deepEqual({ images, imagesByUrl, documents, isUnbounded }, expected);
      }
    });
  }

  for (const part of [
    '{"type":"text","type":"document","source":{"type":"url","url":"https://x"}}',
    '{"type":"document","type":"text","source":{"type":"url","url":"https://x"}}',
    '{"type":"image","source":{"type":"base64","data":"QUJD"},"source":{"type":"url","url":"https://x"}}',
    '{"type":"image","source":{"type":"base64","type":"url","url":"https://x"}}',
    '{"type":["document"],"source":{"type":"url"}}',
    '{"type":null,"source":{"type":"url"}}',
  ]) {
    it(`counts as a whole context window if JSON parsers may read it differently: ${part}`, async () =>
      assert.equal((await ask(raw(part))).reading.isUnbounded, true));
  }

  /** Makes messages that add a tool to those of the request. */
  const adding = (definition: object) => [
    { role: 'system', content: [{ type: 'tool_addition', tool: { type: 'tool_definition', definition } }] },
  ];

  const REFUSED: readonly [object, string, Sent?][] = [
    [
      {
        messages: [...HELLO, { role: 'user', content: [{ type: 'document', source: { type: 'file', file_id: 'f' } }] }],
      },
      'NOT_SUPPORTED messages[1].content',
    ],
    [
      { messages: [{ role: 'user', content: [{ type: 'container_upload', file_id: 'f' }] }] },
      'NOT_SUPPORTED messages[0].content',
    ],
    [
      { messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: 'f' } }] }] },
      'NOT_SUPPORTED messages[0].content',
      CHAT_PATH,
    ],
    [
      {
        messages: [{ role: 'user', content: [{ type: 'input_audio', input_audio: { data: 'QUJD', format: 'wav' } }] }],
      },
      'extra messages[0].content',
      CHAT_PATH,
    ],
    [{ messages: [{ role: 'assistant', audio: { id: 'a' } }] }, 'NOT_SUPPORTED messages[0].audio', CHAT_PATH],
    [{ messages: adding({ type: 'web_search_20250305', name: 'web_search' }) }, 'accepted'],
    [{ messages: adding({ type: 'code_execution_20260521' }) }, 'accepted'],
    [{ messages: adding({ type: 'advisor_20260301' }) }, 'MODEL_NOT_PRICED messages[0].content'],
    [{ messages: adding({ type: 'something_new' }) }, 'MODEL_NOT_PRICED messages[0].content'],
    [{ messages: adding({ name: 'a', input_schema: { type: 'object' } }) }, 'accepted'],
    [{ messages: adding({ type: 'bash_20250124' }) }, 'accepted'],
    [{ audio: { voice: 'ash', format: 'wav' } }, 'extra audio', CHAT_PATH],
    [{ fallbacks: 'default' }, 'extra fallbacks'],
    [{ billing_policy: { type: 'billing_policy' } }, 'extra billing_policy'],
    [{ background: true }, 'NOT_SUPPORTED background'],
    [{ thread: { type: 'create' } }, 'accepted'],
    [{ thread: { type: 'create', previous_message_id: 'm' } }, 'NOT_SUPPORTED thread'],
    [{ thread: { type: 'continue', previous_message_id: 'm' } }, 'KEPT_OBJECT_NOT_FOUND thread'],
    [{ thread: { type: 'resume' } }, 'NOT_SUPPORTED thread'],
    [{ container: { id: 'c' } }, 'KEPT_OBJECT_NOT_FOUND container'],
    [{ container: { skills: [{ type: 'anthropic', skill_id: 'pdf' }] } }, 'accepted'],
    [{ container: { skills: [{ type: 'custom', skill_id: 's' }] } }, 'NOT_SUPPORTED container'],
    [{ container: { id: 'c', files: ['f'] } }, 'NOT_SUPPORTED container'],
    [{ container: { id: 'c' } }, 'accepted', { settings: { sharedObjects: ['container'] } }],
    [{ container: 'c' }, 'NOT_SUPPORTED container', CHAT_PATH],
    [{ previous_response_id: 'resp_1' }, 'KEPT_OBJECT_NOT_FOUND previous_response_id'],
    [{ previous_response_id: 'resp_1' }, 'KEPT_OBJECT_NOT_FOUND previous_response_id', CHAT_PATH],
    [{ previous_response_id: 5 }, 'NOT_SUPPORTED previous_response_id', CHAT_PATH],
    [{ prompt: { id: 'p' } }, 'NOT_SUPPORTED prompt', CHAT_PATH],
    [{ Thread: { type: 'continue' } }, 'INVALID_FIELD Thread'],
  ];
  for (const [more, expected, sent] of REFUSED) {
    it(`leads to ${expected} for ${JSON.stringify(more).slice(0, 80)}`, async () =>
      assert.equal(await refusal(ask({ ...MESSAGES, ...more }, sent)), expected));
  }

  it('includes further runs of the model for compaction, MCP servers and tools that search', async () => {
    const passes = async (more: object) => (await ask({ ...MESSAGES, ...more })).reading;
    const clearing = { context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] } };
    const { textTokens, normalizing, ...cleared } = await passes(clearing);
    assert.deepEqual({ ...(await passes({})), textTokens, normalizing }, { ...cleared, textTokens, normalizing });
    const compacting = await passes({ context_management: { edits: [{ type: 'compact_20260112' }] } });
    assert.deepEqual([compacting.isUnbounded, compacting.furtherPasses, compacting.furtherAnswers], [true, 1, 1]);
    assert.equal((await passes({ mcp_servers: [] })).furtherPasses, 0);
    assert.equal((await passes({ mcp_servers: [{ name: 'a' }] })).furtherPasses, 9);
    const searching = await passes({ tools: [{ name: 'a' }, { type: 'tool_search_tool_bm25_20251119' }] });
    assert.deepEqual([searching.isUnbounded, searching.furtherPasses, searching.toolOverheads], [true, 9, 2]);
    const added = await passes({ messages: adding({ type: 'tool_search_tool_regex_20251119' }) });
    assert.deepEqual([added.isUnbounded, added.furtherPasses], [true, 9]);
  });

  it('counts with the longest time for which the vendor may cache it', async () => {
    const writes = async (more: object, url = '/v1/messages', escaped = (text: string) => text) => {
      const body = { model: 'm', max_tokens: 1, messages: [{ role: 'user', content: 'x' }], ...more };
      return (await ask(escaped(JSON.stringify(body)), { url })).reading.cacheWrites;
    };
    const part = (cache_control: object) => ({
      messages: [{ role: 'user', content: [{ type: 'text', text: 'x', cache_control }] }],
    });
    const system = [{ type: 'text', text: 'x', cache_control: { type: 'ephemeral', ttl: '1h' } }];
    assert.equal(await writes({}), 'none');
    for (const more of [part({ type: 'ephemeral' }), part({ type: 'ephemeral', ttl: '5m' }), { cache_control: {} }])
      assert.equal(await writes(more), 'minutes');
    for (const more of [part({ ttl: '1h' }), { system }, { cache_control: { ttl: '1h' } }, { unheard_of: { of: 1 } }])
      assert.equal(await writes(more), 'hour');
    const written = (text: string) => text.replace('"1h"', '"\\u0031\\u0068"').replace('cache_', '\\u0063ache_');
    assert.equal(await writes({ system }, undefined, written), 'hour');
    assert.equal(await writes(part({ type: 'ephemeral' }), undefined, written), 'minutes');
    assert.equal(await writes({}, '/v1/chat/completions'), 'minutes');
    assert.equal(await writes({ prompt_cache_retention: '24h' }, '/v1/chat/completions'), 'hour');
  });
});

describe('tools that run at the vendor', () => {
  const toolUses = async (tools: readonly object[]) => (await ask({ ...MESSAGES, tools })).reading.toolUses;

  it('are listed with their limit, at any position in the tool', async () => {
    for (const tool of [
      { type: 'web_search_20250305', max_uses: 3 },
      { max_uses: 3, type: 'web_search_20250305' },
    ]) {
      const at = JSON.stringify({ ...MESSAGES, tools: [{ name: 'a' }, tool] }).indexOf(':3') + 1;
      assert.deepEqual(await toolUses([{ name: 'a' }, tool]), [
        {
          meter: 'webSearch',
          pieces: 3,
          limit: {
            runsModel: true,
            insert: undefined,
            own: { from: at, to: at + 1, name: undefined },
          },
          isReported: true,
          param: 'tools[1].type',
        },
      ]);
    }
  });

  it('are listed with the position at which a missing limit can be inserted', async () => {
    const body =
      '{"model":"m","max_tokens":1,"messages":[],"tools":[{"type":"web_fetch_20250910"}, {"max_uses":null,"type":"web_fetch_20260318"}]}';
    const [first, second] = (await ask(body)).reading.toolUses ?? [];
    const after = body.indexOf('{"type"') + 1;
    assert.deepEqual(first?.limit?.insert, { from: after, to: after, name: 'max_uses' });
    const nothing = body.indexOf('null');
    assert.deepEqual(second?.limit, {
      runsModel: false,
      insert: { from: nothing, to: nothing + 4, name: undefined },
    });
    assert.deepEqual((await ask(body, { pieceBytes: 3 })).reading.toolUses, [first, second]);
  });

  it('are marked if they run code in a container', async () => {
    const makes = async (type: string) => (await ask({ ...MESSAGES, tools: [{ type }] })).makes;
    assert.deepEqual(await makes('code_execution_20260521'), ['container']);
    assert.deepEqual(await makes('web_search_20260318'), ['container']);
    assert.equal(await makes('web_search_20250305'), undefined);
  });
});

describe('members of a request that the gateway does not know', () => {
  const SMALL: readonly unknown[] = [true, null, 0, 1, -2, 0.5, 'a_short-word', ''];
  const LARGE: readonly unknown[] = [
    2,
    1e9,
    'Upper',
    'https://x.example',
    'x'.repeat(33),
    [],
    {},
    ['a'],
    'x'.repeat(5_000),
  ];
  const held = async (value: unknown, settings = {}) =>
    (await ask({ ...MESSAGES, brand_new: value }, { settings })).reading.heldMembers.length === 1;

  it('hold money for a whole context window, or none at an official upstream if the value is small', async () => {
    for (const value of SMALL) {
      const { reading } = await ask({ ...MESSAGES, brand_new: value });
      assert.deepEqual([reading.heldMembers, reading.smallMembers], [[], ['brand_new']], JSON.stringify(value));
    }
    for (const value of LARGE) assert.equal(await held(value), true, JSON.stringify(value));
  });

  it('hold money for a whole context window if they occur twice in a request', async () => {
    const body = '{"model":"large","max_tokens":1,"messages":[],"x":{"id":1},"x":true}';
    assert.deepEqual((await ask(body)).reading.heldMembers, ['x']);
  });

  it('are forwarded, forwarded with a hold, or refused, as the operator configures', async () => {
    for (const value of [{ id: 1 }, true]) {
      const { reading } = await ask({ ...MESSAGES, brand_new: value }, { settings: { unknownMembers: 'forward' } });
      assert.deepEqual([reading.heldMembers, reading.smallMembers], [[], []]);
    }
    assert.equal(await held(true, { unknownMembers: 'hold' }), true);
    const refused = ask({ ...MESSAGES, brand_new: true }, { settings: { unknownMembers: 'refuse' } });
    assert.equal(await refusal(refused), 'NOT_SUPPORTED brand_new');
  });
});
