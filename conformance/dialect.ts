import assert from 'node:assert/strict';
import { asObject, type JsonObject } from '../core/base/json-values';
import type { Schema, Settings } from '../core/base/settings';
import { withOwnDialect } from '../core/catalog/adapters';
import type { AnswerError, AnswerEvent, AnswerReader } from '../core/catalog/answer';
import { type Conversation, NotTranslatable, type Turn } from '../core/catalog/conversation';
import type { TranslatedCall, TranslatingAdapter, Verdict } from '../core/catalog/upstream';
import { countsIn, type Meter, mergeUsage, UNKNOWN_USAGE, type Usage } from '../core/catalog/usage';
import { Translation } from '../core/protocols/translation';
import { type SseFrame, splitWhole } from '../core/wire/sse';

/** A recorded answer of the upstream, and what the adapter must read from it. */
export interface RecordedAnswer {
  readonly name: string;
  /** The bytes of a stream of server-sent events, or of one JSON body. */
  readonly bytes: Buffer;
  /** All text of the answer's first choice, without reasoning. */
  readonly text: string;
  /** The tool calls of the answer's first choice: name and parsed input. */
  readonly calls?: readonly (readonly [name: string, input: unknown])[];
  /** The expected token counts by meter, over all passes (runs of the model in one answer). A meter that is absent here must stay unknown. */
  readonly usage: Readonly<Partial<Record<Meter, number>>>;
  readonly ends: 'end' | 'length' | 'tool_calls' | 'stop' | 'filter' | 'pause' | 'context' | 'error';
}

export interface DialectSubject<S extends Schema = Schema> {
  readonly adapter: TranslatingAdapter<S>;
  /** The adapter's own settings, after validation by its schema. */
  readonly settings: Settings<S>;
  readonly streams: readonly RecordedAnswer[];
  readonly bodies: readonly RecordedAnswer[];
  readonly failures: readonly {
    readonly status: number;
    readonly body: unknown;
    readonly verdict: Verdict;
    readonly message: string;
  }[];
}

export interface DialectCheck {
  readonly name: string;
  /** Runs the check. @throws AssertionError if the adapter fails it */
  readonly run: () => void;
}

/**
 * Returns the checks that an adapter with its own dialect must pass, for any test runner: `for (const { name, run } of
 * dialectConformance(subject)) it(name, run);`
 */
export function dialectConformance<S extends Schema>(subject: DialectSubject<S>): DialectCheck[] {
  return [
    ...requestChecks(subject),
    ...subject.streams.flatMap((stream) => streamChecks(subject, stream)),
    ...errorChecks(subject),
    ...subject.bodies.map((body) => bodyCheck(subject, body)),
    ...subject.failures.map((failure) => failureCheck(subject, failure)),
  ];
}

const TALK: Conversation = {
  instructions: [{ kind: 'text', text: 'Be brief.' }],
  turns: [
    { role: 'user', parts: [{ kind: 'text', text: 'What is the weather in Łódź?' }] },
    {
      role: 'assistant',
      parts: [
        { kind: 'text', text: 'Let me see.' },
        { kind: 'tool_call', id: 'call_1', name: 'weather', input: '{"city":"Łódź"}' },
      ],
    },
    { role: 'user', parts: [{ kind: 'tool_result', id: 'call_1', parts: [{ kind: 'text', text: 'Rain.' }] }] },
  ],
  tools: [
    {
      name: 'weather',
      description: 'Tells the weather.',
      input: 'json',
      schema: { type: 'object', properties: { city: { type: 'string' } } },
    },
  ],
  choices: 1,
  stream: true,
  stop: [],
  maxTokens: 300,
};

function callOf(conversation: Conversation): TranslatedCall {
  return { conversation, model: 'model-1', maxOutput: 4_000, upstream: 'upstream-1' };
}

const SAID: Turn = { role: 'assistant', parts: [{ kind: 'text', text: 'The weather is' }] };

function orRefusal(write: () => unknown): unknown {
  try {
    return write();
  } catch (error) {
    if (error instanceof NotTranslatable) return error.message;
    throw error;
  }
}

function requestChecks<S extends Schema>({ adapter, settings }: DialectSubject<S>): DialectCheck[] {
  const request = (conversation: Conversation) => adapter.request(callOf(conversation), settings);
  return [
    {
      name: 'request: a tool loop becomes JSON, streamed and unstreamed, at a path below the base address',
      run: () => {
        for (const stream of [true, false]) {
          const { path, body, headers = {} } = request({ ...TALK, stream });
          assert.match(path, /^\//);
          const text = JSON.stringify(body);
          for (const word of ['Be brief.', 'Łódź', 'Rain.', 'weather'])
            assert(text.includes(word), `${word} is missing`);
          for (const name of Object.keys(headers)) assert.equal(name, name.toLowerCase());
        }
      },
    },
    {
      name: 'request: writing it does not change the conversation, and gives the same result twice',
      run: () => {
        const before = structuredClone(TALK);
        assert.deepEqual(request(TALK), request(TALK));
        assert.deepEqual(TALK, before);
      },
    },
    {
      name: 'request: a prefilled answer differs from a complete one, or each is refused with its own reason',
      run: () => {
        const answered: Conversation = { ...TALK, turns: TALK.turns.slice(0, 1).concat(SAID) };
        const [begun, whole] = [{ ...answered, isBegun: true }, answered].map((each) => orRefusal(() => request(each)));
        assert.notDeepEqual(begun, whole);
      },
    },
    {
      name: 'authorize: the credential is in headers only',
      run: () => {
        const given = adapter.authorize('the-credential', settings);
        assert(JSON.stringify(given).includes('the-credential'));
        assert(!JSON.stringify(request(TALK)).includes('the-credential'));
      },
    },
  ];
}

function streamChecks<S extends Schema>({ adapter }: DialectSubject<S>, stream: RecordedAnswer): DialectCheck[] {
  const check = (name: string, run: () => void): DialectCheck => ({ name: `stream ${stream.name}: ${name}`, run });
  const open = () => adapter.answer(callOf(TALK));
  const whole = read(open(), [stream.bytes]);
  return [
    check('the adapter reads the recorded text, tool calls and usage', () => says(whole, stream)),
    check('the events are in a valid order', () => isInOrder(whole)),
    check('the result is the same at every byte split', () => {
      for (let at = 1; at < stream.bytes.length; at += 1) {
        const pieces = [stream.bytes.subarray(0, at), stream.bytes.subarray(at)];
        assert.deepEqual(withoutIds(read(open(), pieces)), withoutIds(whole), `cut at byte ${at}`);
      }
    }),
    check('every open part is closed wherever the stream is cut off', () => {
      const frames = splitWhole([stream.bytes]);
      for (let count = 0; count <= frames.length; count += 1) {
        const reader = open();
        const events = frames.slice(0, count).flatMap((frame) => [...reader.event(frame)]);
        isInOrder([...events, ...reader.end()]);
      }
    }),
    check('unknown events are ignored, and malformed ones do not hang', () => {
      for (const data of ['{"something":"new"}', '{"half', '[]', '7', '']) {
        const reader = open();
        try {
          assert(Array.isArray(reader.event({ name: undefined, data })));
        } catch (error) {
          assert(error instanceof Error);
        }
      }
    }),
  ];
}

/** The readers of the event member in which each client protocol reports an error within a stream. */
const ERRORS = {
  messages: (event: JsonObject) => event['error'],
  chat: (event: JsonObject) => event['error'],
  responses: (event: JsonObject) => asObject(event['response'])?.['error'],
} as const;

const PROTOCOLS = ['messages', 'chat', 'responses'] as const;

/** Checks that clients of each protocol receive errors within a stream: each stream is cut after its first content and continues with an error. */
function errorChecks<S extends Schema>({ adapter, streams }: DialectSubject<S>): DialectCheck[] {
  const errors = streams.flatMap(({ ends, bytes }) => {
    const reader = adapter.answer(callOf(TALK));
    const frame =
      ends === 'error' ? splitWhole([bytes]).find((each) => errorIn(reader, each) !== undefined) : undefined;
    return frame === undefined ? [] : [frame];
  });
  return streams.flatMap(({ name, ends, bytes }) => {
    const before = ends === 'error' ? [] : untilContent(adapter.answer(callOf(TALK)), splitWhole([bytes]));
    if (before.length === 0 || errors.length === 0) return [];
    return PROTOCOLS.map((protocol) => ({
      name: `stream ${name}: an error after content reaches clients of ${protocol}`,
      run: () => {
        for (const error of errors) assertErrorReported(adapter, protocol, before, error);
      },
    }));
  });
}

function errorIn(reader: AnswerReader, frame: SseFrame): AnswerError | undefined {
  for (const event of reader.event(frame)) if (event.kind === 'error') return event.error;
  return undefined;
}

/** Returns the frames up to and including the first with content; none if the answer finishes in that frame or has no content. */
function untilContent(reader: AnswerReader, frames: readonly SseFrame[]): readonly SseFrame[] {
  for (const [at, frame] of frames.entries()) {
    const events = reader.event(frame);
    if (events.some(({ kind }) => kind === 'finish')) return [];
    if (events.some(({ kind }) => kind === 'add')) return frames.slice(0, at + 1);
  }
  return [];
}

function assertErrorReported<S extends Schema>(
  adapter: TranslatingAdapter<S>,
  protocol: keyof typeof ERRORS,
  before: readonly SseFrame[],
  frame: SseFrame,
): void {
  const [asked, model] = [callOf(TALK), { name: 'model-1' }];
  const candidate = {
    adapter: withOwnDialect(adapter),
    dialect: 'own',
    model,
    upstream: { name: 'upstream-1' },
  } as const;
  const translation = new Translation(candidate, { requestId: 'request-1', protocol, asked, request: {} });
  const given = before.flatMap((each) => translation.event(each).written);
  const { note, written } = translation.event(frame);
  assert(note.error !== undefined, 'the event is no error behind content');
  const errors = [...given, ...written].map(({ data }) => asObject(ERRORS[protocol](asObject(JSON.parse(data)) ?? {})));
  const reader = adapter.answer(asked);
  for (const each of before) reader.event(each);
  assert.equal(errors.at(-1)?.['message'], errorIn(reader, frame)?.message);
  assert.equal(errors.filter((each) => each !== undefined).length, 1, 'the error is reported once, and last');
}

function bodyCheck<S extends Schema>({ adapter }: DialectSubject<S>, body: RecordedAnswer): DialectCheck {
  return {
    name: `body ${body.name}: the adapter reads the recorded text, tool calls and usage, in order`,
    run: () => {
      const events = [...adapter.answer(callOf({ ...TALK, stream: false })).body(JSON.parse(body.bytes.toString()))];
      says(events, body);
      isInOrder(events);
      if (body.ends !== 'error') assert.equal(events.at(-1)?.kind, 'end');
    },
  };
}

function failureCheck<S extends Schema>(
  { adapter }: DialectSubject<S>,
  { status, body, verdict, message }: DialectSubject['failures'][number],
): DialectCheck {
  return {
    name: `failure ${status}: the verdict is ${verdict}`,
    run: () => {
      assert.equal(adapter.judge({ protocol: 'chat', status, headers: {}, body }), verdict);
      if (adapter.readError !== undefined) assert.equal(adapter.readError(body).message, message);
    },
  };
}

function read(reader: AnswerReader, pieces: readonly Buffer[]): AnswerEvent[] {
  const events = splitWhole(pieces).flatMap((frame) => [...reader.event(frame)]);
  return [...events, ...reader.end()];
}

/** Removes ids from events before a comparison, because an adapter may generate ids that its upstream does not send. */
function withoutIds(events: readonly AnswerEvent[]): unknown {
  return events.map((event) => (event.kind === 'open' ? { ...event, part: { ...event.part, id: undefined } } : event));
}

function says(events: readonly AnswerEvent[], { text, calls = [], usage, ends }: RecordedAnswer): void {
  const parts = new Map<number, { kind: string; name: string; text: string }>();
  let counted: Usage = UNKNOWN_USAGE;
  for (const event of events) {
    if (event.kind === 'open' && event.choice === 0)
      parts.set(event.at, {
        kind: event.part.kind,
        name: event.part.kind === 'tool_call' ? event.part.name : '',
        text: '',
      });
    const part = event.kind === 'add' ? parts.get(event.at) : undefined;
    if (event.kind === 'add' && part !== undefined) part.text += event.text;
    if (event.kind === 'usage') counted = mergeUsage(counted, event.usage);
  }
  const all = [...parts.values()];
  assert.equal(all.flatMap((part) => (part.kind === 'text' ? [part.text] : [])).join(''), text);
  const called = all.flatMap((part) =>
    part.kind === 'tool_call' ? [[part.name, JSON.parse(part.text) as unknown]] : [],
  );
  assert.deepEqual(called, calls);
  assert.deepEqual(countsIn(counted), usage);
  const reasons = events.flatMap((event) => (event.kind === 'finish' && event.choice === 0 ? [event.reason] : []));
  if (ends === 'error') assert(events.some(({ kind }) => kind === 'error'));
  else assert.deepEqual(reasons, [ends]);
}

/**
 * Asserts the order of events: parts are numbered from 0, open once, have content only while open, and are closed. A choice ends once, and
 * nothing follows the end.
 */
function isInOrder(events: readonly AnswerEvent[]): void {
  const open = new Set<number>();
  const finished = new Set<number>();
  let next = 0;
  let isOver = false;
  for (const event of events) {
    assert(!isOver, `${event.kind} after the end`);
    if (event.kind === 'open') {
      assert.equal(event.at, next, 'parts are numbered in the order in which they open');
      assert(!finished.has(event.choice), 'a part after the stop reason of its choice');
      next += 1;
      open.add(event.at);
    } else if (event.kind === 'add' || event.kind === 'sign' || event.kind === 'cite') {
      assert(open.has(event.at), `${event.kind} of a part that is not open`);
    } else if (event.kind === 'close') {
      assert(open.delete(event.at), 'a part is closed that is not open');
    } else if (event.kind === 'finish') {
      assert(!finished.has(event.choice), 'a choice ends twice');
      finished.add(event.choice);
    } else if (event.kind === 'end') {
      isOver = true;
    }
  }
  assert.equal(open.size, 0, 'parts stay open');
}
