import { expect } from 'chai';
import { type DialectSubject, dialectConformance, type RecordedAnswer } from '../../conformance/dialect';
import type { Conversation } from '../../core/catalog/conversation';
import { GeminiReader } from '../../core/protocols/gemini/answer';
import gemini from '../../plugins/upstreams/gemini';
import { callOf } from '../support/golden';

const USAGE = { promptTokenCount: 200, cachedContentTokenCount: 80, candidatesTokenCount: 20, thoughtsTokenCount: 10 };
const COUNTED = { input: 120, cacheRead: 80, output: 30 };

function chunk(parts: readonly object[], more: object = {}, finishReason?: string): object {
  const content = { role: 'model', parts };
  return {
    candidates: [{ content, index: 0, ...(finishReason && { finishReason }) }],
    modelVersion: 'gemini-9',
    ...more,
  };
}

const LAST = { usageMetadata: { ...USAGE, totalTokenCount: 230 }, responseId: 'answer-1' };

function streamed(...chunks: readonly object[]): Buffer {
  return Buffer.from(chunks.map((each) => `data: ${JSON.stringify(each)}\r\n\r\n`).join(''));
}

const CALL = { functionCall: { name: 'weather', args: { city: 'Łódź' } }, thoughtSignature: 'c2ln' };

const STREAMS: readonly RecordedAnswer[] = [
  {
    name: 'text',
    bytes: streamed(chunk([{ text: 'Grüß ' }]), chunk([{ text: 'Gott' }]), chunk([{ text: '' }], LAST, 'STOP')),
    text: 'Grüß Gott',
    usage: COUNTED,
    ends: 'end',
  },
  {
    name: 'thoughts, then two calls at once',
    bytes: streamed(
      chunk([{ text: 'I should look.', thought: true }]),
      chunk([CALL, { functionCall: { id: 'mine', name: 'weather', args: {} } }], LAST, 'STOP'),
    ),
    text: '',
    calls: [
      ['weather', { city: 'Łódź' }],
      ['weather', {}],
    ],
    usage: COUNTED,
    ends: 'tool_calls',
  },
  {
    name: 'a limit',
    bytes: streamed(chunk([{ text: 'Hi' }], LAST, 'MAX_TOKENS')),
    text: 'Hi',
    usage: COUNTED,
    ends: 'length',
  },
  {
    name: 'a filter',
    bytes: streamed(chunk([{ text: 'Hi' }]), { candidates: [{ index: 0, finishReason: 'SAFETY' }], ...LAST }),
    text: 'Hi',
    usage: COUNTED,
    ends: 'filter',
  },
  {
    name: 'a prompt that is blocked',
    bytes: streamed({ promptFeedback: { blockReason: 'PROHIBITED_CONTENT' }, usageMetadata: { promptTokenCount: 9 } }),
    text: '',
    usage: { input: 9, output: 0 },
    ends: 'filter',
  },
  {
    name: 'an error in the middle',
    bytes: streamed(chunk([{ text: 'Hi' }]), { error: { code: 503, message: 'Overloaded.', status: 'UNAVAILABLE' } }),
    text: 'Hi',
    usage: {},
    ends: 'error',
  },
  {
    name: 'sound in and an image out',
    bytes: streamed(
      chunk(
        [{ text: 'Hi' }],
        {
          usageMetadata: {
            ...USAGE,
            promptTokensDetails: [
              { modality: 'TEXT', tokenCount: 150 },
              { modality: 'AUDIO', tokenCount: 50 },
            ],
            cacheTokensDetails: [{ modality: 'AUDIO', tokenCount: 20 }],
            candidatesTokensDetails: [{ modality: 'IMAGE', tokenCount: 5 }],
          },
        },
        'STOP',
      ),
    ),
    text: 'Hi',
    usage: { input: 90, audioInput: 30, cacheRead: 60, audioCacheRead: 20, output: 25, imageOutput: 5 },
    ends: 'end',
  },
];

const SUBJECT = {
  adapter: gemini,
  settings: { version: 'v1beta' },
  streams: STREAMS,
  bodies: [
    {
      name: 'text',
      bytes: Buffer.from(JSON.stringify(chunk([{ text: 'Hi' }], LAST, 'STOP'))),
      text: 'Hi',
      usage: COUNTED,
      ends: 'end',
    },
  ],
  failures: [
    {
      status: 400,
      body: [{ error: { code: 400, message: 'No such field.', status: 'INVALID_ARGUMENT' } }],
      verdict: 'relay',
      message: 'No such field.',
    },
    {
      status: 429,
      body: { error: { code: 429, message: 'Quota.', status: 'RESOURCE_EXHAUSTED' } },
      verdict: 'next',
      message: 'Quota.',
    },
  ],
} as const satisfies DialectSubject<(typeof gemini)['schema']>;

const TALK: Conversation = {
  instructions: [{ kind: 'text', text: 'Be brief.' }],
  turns: [{ role: 'user', parts: [{ kind: 'text', text: 'Hello' }] }],
  tools: [{ name: 'weather', input: 'json', schema: { type: 'object' } }],
  choices: 1,
  stream: true,
  stop: [],
};

function bodyOf(more: Partial<Conversation> = {}, call: Record<string, unknown> = {}) {
  const { body } = gemini.request(callOf({ ...TALK, ...more }, call), { version: 'v1beta' });
  return JSON.parse(JSON.stringify(body)) as Record<string, unknown>;
}

describe('the adapter gemini', () => {
  for (const { name, run } of dialectConformance(SUBJECT)) it(name, run);

  it('uses one path for streamed answers and another for unstreamed answers', () => {
    const path = (stream: boolean) =>
      gemini.request(callOf({ ...TALK, stream }, { model: 'gemini-9' }), { version: 'v1' }).path;
    expect(path(true)).to.equal('/v1/models/gemini-9:streamGenerateContent?alt=sse');
    expect(path(false)).to.equal('/v1/models/gemini-9:generateContent');
  });

  it('translates everything for which the Gemini dialect has a member', () => {
    expect(
      bodyOf(
        {
          temperature: 1.5,
          topP: 0.9,
          topK: 40,
          seed: 7,
          maxTokens: 300,
          stop: ['END'],
          choices: 2,
          toolChoice: { tool: 'weather' },
          outputFormat: { kind: 'schema', schema: { type: 'object' } },
          reasoning: { effort: 'xhigh' },
        },
        { reasoning: 'effort' },
      ),
    ).to.deep.equal({
      systemInstruction: { parts: [{ text: 'Be brief.' }] },
      contents: [{ role: 'user', parts: [{ text: 'Hello' }] }],
      tools: [
        { functionDeclarations: [{ name: 'weather', parametersJsonSchema: { properties: {}, type: 'object' } }] },
      ],
      toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['weather'] } },
      generationConfig: {
        temperature: 1.5,
        topP: 0.9,
        topK: 40,
        seed: 7,
        maxOutputTokens: 300,
        candidateCount: 2,
        stopSequences: ['END'],
        responseMimeType: 'application/json',
        responseJsonSchema: { type: 'object' },
        thinkingConfig: { includeThoughts: true, thinkingLevel: 'high' },
      },
    });
  });

  it('passes on content that arrives after the stop reason', () => {
    const reader = new GeminiReader();
    reader.event({ name: undefined, data: JSON.stringify(chunk([{ text: 'Hi' }], {}, 'STOP')) });
    const more = { name: undefined, data: JSON.stringify(chunk([{ text: 'there' }])) };
    expect(reader.event(more).flatMap((event) => (event.kind === 'add' ? event.text : []))).to.deep.equal(['there']);
  });

  it('waits for the end of all requested choices, even though token counts arrive with each event', () => {
    const reader = new GeminiReader(2);
    const of = (index: number) => {
      const data = JSON.stringify(chunk([{ text: 'Hi' }], LAST, 'STOP')).replace('"index":0', `"index":${index}`);
      return { name: undefined, data };
    };
    expect(reader.event(of(0)).at(-1)?.kind).to.equal('usage');
    expect(reader.event(of(1)).at(-1)?.kind).to.equal('end');
  });

  it('sends a signature back in the part that follows it, and only to the upstream that made the signature', () => {
    const events = [...new GeminiReader().body(chunk([CALL], LAST, 'STOP'))];
    const signed = events.flatMap((event) => (event.kind === 'sign' ? [event.value] : []));
    expect(signed).to.deep.equal(['c2ln']);
    const turnsWith = (upstream: string): Conversation['turns'] => [
      ...TALK.turns,
      {
        role: 'assistant',
        parts: [
          { kind: 'reasoning', text: '', signature: { upstream, dialect: 'gemini', value: 'c2ln' } },
          { kind: 'tool_call', id: 'call_1', name: 'weather', input: '{"city":"Łódź"}' },
        ],
      },
      { role: 'user', parts: [{ kind: 'tool_result', id: 'call_1', parts: [{ kind: 'text', text: 'Rain.' }] }] },
    ];
    const functionCall = { id: 'call_1', name: 'weather', args: { city: 'Łódź' } };
    const contents = (upstream: string, call = {}) => bodyOf({ turns: turnsWith(upstream) }, call)['contents'];
    expect(contents('up-1')).to.deep.include({ role: 'model', parts: [{ functionCall, thoughtSignature: 'c2ln' }] });
    expect(contents('up-2')).to.deep.include({ role: 'model', parts: [{ functionCall }] });
    expect(contents('up-2', { reasoning: 'effort' })).to.deep.include({
      role: 'model',
      parts: [{ functionCall, thoughtSignature: 'skip_thought_signature_validator' }],
    });
    expect(contents('up-1')).to.deep.include({
      role: 'user',
      parts: [{ functionResponse: { id: 'call_1', name: 'weather', response: { output: 'Rain.' } } }],
    });
  });

  const REFUSED: readonly (readonly [what: string, more: Partial<Conversation>])[] = [
    ['parallelTools', { parallelTools: false }],
    ['stop', { stop: ['a', 'b', 'c', 'd', 'e', 'f'] }],
    [
      'image',
      {
        turns: [{ role: 'user', parts: [{ kind: 'image', source: { url: 'https://a.example/picture.constructor' } }] }],
      },
    ],
    ['tool_result', { turns: [{ role: 'user', parts: [{ kind: 'tool_result', id: 'unknown', parts: [] }] }] }],
  ];
  for (const [what, more] of REFUSED)
    it(`refuses a request whose ${what} the Gemini dialect cannot express`, () => {
      expect(() => bodyOf(more))
        .to.throw()
        .with.property('what', what);
    });
});
