import type { AnswerEvent, OpenPart } from '../../core/catalog/answer';
import type { Conversation, Part, ToolCallPart, Turn } from '../../core/catalog/conversation';
import type { SseEvent } from '../../core/catalog/upstream';
import { usageOf } from '../../core/catalog/usage';
import { seal } from '../../core/protocols/seal';

/** Conversations and answers in which one thing grows: the number of entries, or the length of a text. */

/** The upstream that gets the conversations, and that has signed the reasoning in them. */
export const UPSTREAM = 'up-1';

type Talk = Partial<Conversation> & Pick<Conversation, 'turns'>;

function many<T>(count: number, make: (at: number) => T): T[] {
  return Array.from({ length: count }, (_, at) => make(at));
}

function text(at: number): Part {
  return { kind: 'text', text: `word ${at}` };
}

const ASKED: Turn = { role: 'user', parts: [text(0)] };

function callOf(at: number, input = '{"city":"Oslo"}'): ToolCallPart {
  return { kind: 'tool_call', id: `call_${at}`, name: `tool_${at % 7}`, input };
}

function resultOf(at: number): Part {
  return { kind: 'tool_result', id: `call_${at}`, parts: [{ kind: 'text', text: 'rain' }] };
}

const IMAGE = { kind: 'image', source: { base64: 'aGk=', mediaType: 'image/png' } } as const;
const PAGE = { kind: 'document', source: { base64: 'aGk=', mediaType: 'application/pdf' }, name: 'a.b c' } as const;

/** The values by which each dialect gets its reasoning back. */
const SIGNED = {
  messages: 'c2ln',
  chat: 'reasoning_content',
  responses: JSON.stringify({ id: 'rs_1', summary: [], encrypted_content: 'c2ln' }),
  gemini: 'c2ln',
  converse: JSON.stringify({ signature: 'c2ln' }),
} as const;

function thoughts(at: number): Part[] {
  return Object.entries(SIGNED).map(([dialect, value]) => ({
    kind: 'reasoning',
    text: `thought ${at}`,
    signature: { upstream: UPSTREAM, dialect, value },
  }));
}

const LONG_TALKS: Readonly<Record<string, (entries: number) => Talk>> = {
  'turns of the user': (entries) => ({ turns: many(entries, (at) => ({ role: 'user', parts: [text(at)] })) }),
  'turns of the assistant': (entries) => ({
    turns: [ASKED, ...many(entries, (at): Turn => ({ role: 'assistant', parts: [text(at)] })), ASKED],
  }),
  'turns of both sides': (entries) => ({
    turns: [...many(entries, (at): Turn => ({ role: at % 2 === 0 ? 'user' : 'assistant', parts: [text(at)] })), ASKED],
  }),
  'instructions inside the conversation': (entries) => ({
    turns: [ASKED, ...many(entries, (at): Turn => ({ role: 'system', parts: [text(at)] })), ASKED],
  }),
  instructions: (entries) => ({
    instructions: many(entries, (at) => ({ kind: 'text', text: `rule ${at}` })),
    turns: [ASKED],
    cacheKey: 'cache',
  }),
  'parts of one turn': (entries) => ({ turns: [{ role: 'user', parts: many(entries, text) }], cacheKey: 'cache' }),
  'parts of one answer': (entries) => ({ turns: [ASKED, { role: 'assistant', parts: many(entries, text) }, ASKED] }),
  'images and documents': (entries) => ({
    turns: [{ role: 'user', parts: many(entries, (at) => (at % 2 === 0 ? IMAGE : PAGE)) }],
  }),
  'refusals and empty texts': (entries) => ({
    turns: [
      ASKED,
      {
        role: 'assistant',
        parts: many(entries, (at) => (at % 2 === 0 ? { kind: 'refusal', text: 'No.' } : { kind: 'text', text: '' })),
      },
      ASKED,
    ],
  }),
  'signed reasoning': (entries) => ({
    turns: [ASKED, { role: 'assistant', parts: [...many(entries, thoughts).flat(), text(0)] }, ASKED],
    reasoning: { effort: 'low' },
  }),
  tools: (entries) => ({
    tools: many(entries, (at) => ({ name: `tool_${at}`, description: 'Gets it.', schema: {}, input: 'json' })),
    toolChoice: { tool: `tool_${entries - 1}`, input: 'json' },
    turns: [ASKED],
  }),
  'calls of tools at once': (entries) => ({
    turns: [
      ASKED,
      { role: 'assistant', parts: many(entries, (at) => callOf(at)) },
      { role: 'user', parts: many(entries, resultOf) },
    ],
  }),
  'calls of tools one after the other': (entries) => ({
    turns: [
      ASKED,
      ...many(entries, (at): Turn[] => [
        { role: 'assistant', parts: [text(at), callOf(at)] },
        { role: 'user', parts: [resultOf(at)] },
      ]).flat(),
    ],
  }),
  'parts of one result': (entries) => ({
    turns: [
      ASKED,
      { role: 'assistant', parts: [callOf(1)] },
      {
        role: 'user',
        parts: [
          {
            kind: 'tool_result',
            id: 'call_1',
            parts: many(entries, (at) => (at % 2 ? IMAGE : { kind: 'text', text: 'a' })),
          },
        ],
      },
    ],
  }),
};

/** Conversations in which the length of a text grows. Translation bounds ids and names, but its readers and writers are linear without. */
const LONG_TEXTS: Readonly<Record<string, (length: number) => Talk>> = {
  'an id': (length) => idTalk('.'.repeat(length)),
  'a name': (length) => ({
    tools: [{ name: 'n'.repeat(length), input: 'json' }],
    turns: [{ role: 'user', parts: [{ ...PAGE, name: '. '.repeat(length / 2) }] }],
  }),
  'a text': (length) => ({ turns: [{ role: 'user', parts: [{ kind: 'text', text: '\n "'.repeat(length / 3) }] }] }),
  'an input': (length) => ({
    turns: [
      ASKED,
      { role: 'assistant', parts: [callOf(1, JSON.stringify({ a: '"'.repeat(length) }))] },
      { role: 'user', parts: [resultOf(1)] },
    ],
  }),
};

function idTalk(id: string): Talk {
  return {
    turns: [
      ASKED,
      { role: 'assistant', parts: [{ ...callOf(1), id }] },
      { role: 'user', parts: [{ kind: 'tool_result', id, parts: [] }] },
    ],
  };
}

export interface Shape<T> {
  readonly name: string;
  /** The most entries, or characters, for which it is made. */
  readonly most: number;
  /** Whether it grows by what most requests have. */
  readonly isUsual?: boolean;
  make(size: number): T;
}

function wholeTalk(talk: Talk): Conversation {
  return { instructions: [], tools: [], choices: 1, stream: true, stop: [], ...talk };
}

const USUAL: readonly string[] = [
  'turns of both sides',
  'parts of one turn',
  'tools',
  'calls of tools one after the other',
];

export const TALKS: readonly Shape<Conversation>[] = [
  ...Object.entries(LONG_TALKS).map(([name, make]) => ({
    name: `many ${name}`,
    most: 200_000,
    isUsual: USUAL.includes(name),
    make: (size: number) => wholeTalk(make(size)),
  })),
  ...Object.entries(LONG_TEXTS).map(([name, make]) => ({
    name: `${name} of great length`,
    most: 16_000_000,
    make: (size: number) => wholeTalk(make(size)),
  })),
];

function opened(at: number, part: OpenPart): AnswerEvent {
  return { kind: 'open', at, choice: 0, part };
}

function toolCall(at: number, isText?: true): OpenPart {
  return {
    kind: 'tool_call',
    id: `call_${at}`,
    name: isText ? TEXT_TOOL : `tool_${at % 7}`,
    ...(isText && { isText }),
  };
}

/** A tool whose input is text. */
export const TEXT_TOOL = 'sql';

function added(at: number, words: string): AnswerEvent {
  return { kind: 'add', at, text: words };
}

function closed(at: number): AnswerEvent {
  return { kind: 'close', at };
}

function cited(at: number, of: number): AnswerEvent {
  const citation = { url: `https://a.example/${of}`, title: 'A', quote: 'words', from: 0, to: 1 };
  return { kind: 'cite', at, citation };
}

const INPUT = '{"a":1}';

const LONG_ANSWERS: Readonly<Record<string, (entries: number) => readonly AnswerEvent[]>> = {
  'pieces of one text': (entries) => [
    opened(0, { kind: 'text' }),
    ...many(entries, (at) => added(0, `word ${at} `)),
    closed(0),
  ],
  'texts and refusals in turns': (entries) =>
    many(entries, (at) => [opened(at, { kind: at % 2 ? 'refusal' : 'text' }), added(at, 'word'), closed(at)]).flat(),
  'pieces of reasoning': (entries) =>
    many(entries, (at) => [
      opened(at, { kind: 'reasoning' }),
      added(at, 'thought'),
      { kind: 'sign', at, value: 'c2ln' } as const,
      closed(at),
    ]).flat(),
  'citations of one text': (entries) => [
    opened(0, { kind: 'text' }),
    added(0, 'word'),
    ...many(entries, (at) => cited(0, at)),
    closed(0),
  ],
  'calls one after the other': (entries) =>
    many(entries, (at) => [opened(at, toolCall(at)), added(at, INPUT), closed(at)]).flat(),
  'calls at once': (entries) => [
    ...many(entries, (at) => opened(at, toolCall(at))),
    ...many(entries, (at) => added(at, '{"a":')),
    ...many(entries, (at) => added(at, '1}')),
    ...many(entries, closed),
  ],
  'calls at once that end in reverse': (entries) => [
    ...many(entries, (at) => [opened(at, toolCall(at)), added(at, INPUT)]).flat(),
    ...many(entries, (at) => closed(entries - 1 - at)),
  ],
  'calls without an end': (entries) => many(entries, (at) => [opened(at, toolCall(at)), added(at, '{"a":')]).flat(),
  'pieces of one input': (entries) => [
    opened(0, toolCall(0)),
    added(0, '{"a":['),
    ...many(entries, () => added(0, '1,')),
    added(0, '1]}'),
    closed(0),
  ],
  'pieces of one input as text': (entries) => [
    opened(0, toolCall(0, true)),
    ...many(entries, () => added(0, 'select ')),
    closed(0),
  ],
  'reports of usage': (entries) => [
    opened(0, { kind: 'text' }),
    added(0, 'word'),
    closed(0),
    ...many(entries, (at) => ({ kind: 'usage', usage: usageOf({ input: 1, output: at }) }) as const),
  ],
};

/** Answers, each as the events of a dialect's reader. */
export const ANSWERS: readonly Shape<readonly AnswerEvent[]>[] = Object.entries(LONG_ANSWERS).map(([name, make]) => ({
  name: `many ${name}`,
  most: 200_000,
  make: (size) => [
    { kind: 'begin', id: 'answer-1', model: 'model-1' },
    ...make(size),
    { kind: 'finish', choice: 0, reason: name.includes('without an end') ? 'length' : 'end' },
    { kind: 'usage', usage: usageOf({ input: 9, output: 9 }) },
    { kind: 'end' },
  ],
}));

/** An answer as an upstream sends it. */
export interface SentAnswer {
  readonly events: readonly SseEvent[];
  readonly body: unknown;
}

/** Writes answers in the dialects that no client speaks, and for which the gateway has no writer. */
export const SENT: Readonly<Record<string, (events: readonly AnswerEvent[]) => SentAnswer>> = {
  gemini: (events) => {
    const parts = events.flatMap(geminiPart);
    const ended = { finishReason: 'STOP', index: 0 };
    const usageMetadata = { promptTokenCount: 9, candidatesTokenCount: 9, totalTokenCount: 18 };
    const chunk = (candidate: object, more = {}) => ({
      name: undefined,
      data: JSON.stringify({ candidates: [candidate], ...more }),
    });
    return {
      events: [
        ...parts.map((part) => chunk({ index: 0, content: { role: 'model', parts: [part] } })),
        chunk(ended, { usageMetadata }),
      ],
      body: { candidates: [{ ...ended, content: { role: 'model', parts } }], usageMetadata },
    };
  },
  converse: (events) => {
    const kinds = new Map<number, OpenPart>();
    const streamed = events.flatMap((event): SseEvent[] => {
      if (event.kind === 'open') kinds.set(event.at, event.part);
      return converseEvents(event, kinds);
    });
    const content = events.flatMap((event) => (event.kind === 'add' ? [converseBlock(event, kinds)] : []));
    const usage = { inputTokens: 9, outputTokens: 9 };
    return {
      events: [...streamed, named('messageStop', { stopReason: 'end_turn' }), named('metadata', { usage })],
      body: { output: { message: { role: 'assistant', content } }, stopReason: 'end_turn', usage },
    };
  },
};

function named(name: string, data: object): SseEvent {
  return { name, data: JSON.stringify(data) };
}

function geminiPart(event: AnswerEvent): object[] {
  if (event.kind === 'add') return [{ text: event.text }];
  if (event.kind === 'sign') return [{ thoughtSignature: event.value }];
  if (event.kind !== 'open' || event.part.kind !== 'tool_call') return [];
  return [{ functionCall: { name: event.part.name, args: { a: 1 } } }];
}

function converseEvents(event: AnswerEvent, kinds: ReadonlyMap<number, OpenPart>): SseEvent[] {
  if (!('at' in event)) return [];
  const contentBlockIndex = event.at;
  const kind = kinds.get(event.at)?.kind;
  if (event.kind === 'open' && event.part.kind === 'tool_call') {
    const { id, name } = event.part;
    return [named('contentBlockStart', { contentBlockIndex, start: { toolUse: { toolUseId: id, name } } })];
  }
  if (event.kind === 'add') {
    const { text: words } = event;
    const delta =
      kind === 'tool_call'
        ? { toolUse: { input: words } }
        : kind === 'reasoning'
          ? { reasoningContent: { text: words } }
          : { text: words };
    return [named('contentBlockDelta', { contentBlockIndex, delta })];
  }
  if (event.kind === 'sign')
    return [named('contentBlockDelta', { contentBlockIndex, delta: { reasoningContent: { signature: event.value } } })];
  return event.kind === 'close' ? [named('contentBlockStop', { contentBlockIndex })] : [];
}

function converseBlock(
  { at, text: words }: Extract<AnswerEvent, { kind: 'add' }>,
  kinds: ReadonlyMap<number, OpenPart>,
) {
  const part = kinds.get(at);
  if (part?.kind === 'tool_call') return { toolUse: { toolUseId: part.id, name: part.name, input: { a: 1 } } };
  if (part?.kind === 'reasoning') return { reasoningContent: { reasoningText: { text: words, signature: 'c2ln' } } };
  return { text: words };
}

/** Returns reasoning as the gateway gives it to a client of another dialect. */
export function sealed(value: string): string {
  return seal({ upstream: UPSTREAM, dialect: 'other', value });
}
