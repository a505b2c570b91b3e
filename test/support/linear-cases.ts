import { execFile } from 'node:child_process';
import type { JsonObject } from '../../core/base/json-values';
import { adapterNames, findAdapter } from '../../core/catalog/adapters';
import type { AnswerEvent, AnswerReader, AnswerWriter } from '../../core/catalog/answer';
import { type Conversation, NotTranslatable } from '../../core/catalog/conversation';
import { TRANSLATED } from '../../core/catalog/protocols';
import type { SseEvent, TranslatedCall, UpstreamAdapter } from '../../core/catalog/upstream';
import { JsonScanner } from '../../core/http/json-scanner';
import { clientDialect } from '../../core/protocols/client-dialects';
import { MESSAGES_TABLE } from '../../core/protocols/messages/request';
import { Translation } from '../../core/protocols/translation';
import { planCuts } from '../../core/wire/body-edits';
import upstreams from '../../plugins/upstreams';
import { openAddressGate } from '../../policies/model-request/address-gate';
import { checkFields } from '../../policies/model-request/check-fields';
import { CallObserver, callRules } from '../../policies/model-request/observe-call';
import { namedItems } from '../../policies/model-request/pinned';
import { acceptedRoles } from '../../policies/model-request/roles';
import { requestOf } from '../fuzz/translation/client-requests';
import { sampleCandidate } from './catalog-samples';
import { cpuGrowth, type Work } from './cpu-growth';
import { eventStreamMessage } from './event-stream';
import { callOf, writtenCall } from './golden';
import { ANSWERS, SENT, type SentAnswer, type Shape, sealed, TALKS, TEXT_TOOL, UPSTREAM } from './long-talks';
import { seeded } from './random';

upstreams.register?.();

/** The adapters with a dialect of their own, by dialect. */
const OWN = new Map(
  adapterNames().flatMap((name) => {
    const adapter = findAdapter(name) as UpstreamAdapter;
    return adapter.own === undefined ? [] : [[adapter.own.dialect, adapter] as const];
  }),
);
const SETTINGS = { version: 'v1beta', region: 'eu-west-1', project: 'p', location: 'eu' };

/** One dialect of upstreams. */
interface Spoken {
  readonly name: string;
  write(call: TranslatedCall): JsonObject;
  openReader(call: TranslatedCall): AnswerReader;
  /** Returns an answer as an upstream sends it. */
  send(events: readonly AnswerEvent[]): SentAnswer;
}

const SPOKEN: readonly Spoken[] = [
  ...TRANSLATED.map((name) => ({
    name,
    write: clientDialect(name).writeRequest,
    openReader: clientDialect(name).openReader,
    send: (events: readonly AnswerEvent[]) => sentBy(() => clientDialect(name).openWriter(writtenCall({})), events),
  })),
  ...[...OWN].map(([name, { own }]) => ({
    name,
    write: (call: TranslatedCall) => own?.request(call, SETTINGS as never).body ?? {},
    openReader: (call: TranslatedCall) => own?.answer(call) as AnswerReader,
    send: (events: readonly AnswerEvent[]) => {
      const send = SENT[name];
      if (send === undefined) throw new Error(`test/support/long-talks.ts writes no answers of the dialect ${name}`);
      return send(events);
    },
  })),
];

function sentBy(open: () => AnswerWriter, events: readonly AnswerEvent[]): SentAnswer {
  const writer = open();
  const sent = events.flatMap((event) => writer.write(event)).map(({ name, data }) => ({ name, data }));
  return { events: sent, body: JSON.parse(JSON.stringify(open().body(events))) };
}

function askedOf(conversation: Conversation): TranslatedCall {
  return callOf(conversation, { upstream: UPSTREAM, reasoning: 'effort' });
}

/** Tells whether a dialect can express a shape. */
function isWritten(work: Work): boolean {
  try {
    work(16)();
    return true;
  } catch (error) {
    if (error instanceof NotTranslatable) return false;
    throw error;
  }
}

const EMPTY: Conversation = { instructions: [], turns: [], tools: [], choices: 1, stream: true, stop: [] };

/** Writes a request as a program does. What its dialect has no form for is written as for an upstream. */
function requestBy(client: (typeof TRANSLATED)[number], talk: Conversation): JsonObject {
  try {
    return requestOf(seeded(1), client, talk);
  } catch {
    return clientDialect(client).writeRequest(askedOf(talk));
  }
}

/** Reads a body of a client as the policy `model-request` does, and cuts the sealed parts as for a native upstream. */
function native(client: (typeof TRANSLATED)[number], body: JsonObject): () => void {
  const bytes = Buffer.from(JSON.stringify({ max_tokens: 1, ...body, model: 'model-1', stream: true }));
  const chunks: Buffer[] = [];
  for (let from = 0; from < bytes.length; from += 16_384) chunks.push(bytes.subarray(from, from + 16_384));
  const roles = acceptedRoles(MESSAGES_TABLE.roles)[client];
  const rules = callRules(client, roles, new Set(), openAddressGate([]));
  return () => {
    const observer = new CallObserver(rules);
    const scanner = new JsonScanner(observer);
    for (const chunk of chunks) scanner.feed(chunk);
    scanner.finish();
    planCuts(chunks, observer.parts.sealed ?? []);
    try {
      checkFields(client, observer, chunks, { shared: new Set(), unknownMembers: 'byValue', freeMembers: new Set() });
      namedItems(client, observer, chunks);
    } catch {
      // A body may be refused, but not slowly.
    }
  };
}

function readStream(open: (call: TranslatedCall) => AnswerReader, events: readonly SseEvent[]): () => void {
  return () => {
    const reader = open(askedOf(EMPTY));
    for (const event of events) reader.event(event);
    reader.end();
  };
}

function translationOf(dialect: string, protocol: (typeof TRANSLATED)[number]): Translation {
  const isOwn = OWN.has(dialect);
  const adapter = findAdapter(isOwn ? (OWN.get(dialect)?.name ?? '') : dialect) as UpstreamAdapter;
  const tools = [{ name: TEXT_TOOL, input: 'text' as const }];
  return new Translation(
    {
      ...sampleCandidate(UPSTREAM, { model: { name: 'model-1' } }),
      adapter,
      dialect: isOwn ? 'own' : (dialect as 'chat'),
    },
    { requestId: 'req-1', protocol, asked: askedOf({ ...EMPTY, tools }), request: {} },
  );
}

function many<T>(count: number, make: (at: number) => T): T[] {
  return Array.from({ length: count }, (_, at) => make(at));
}

function shape<T>(name: string, make: (entries: number) => T): Shape<T> {
  return { name, most: 200_000, make };
}

const USER = { role: 'user', content: 'Hello' };

/** Requests that no conversation is written as. */
const REQUESTS: Readonly<Partial<Record<string, readonly Shape<JsonObject>[]>>> = {
  messages: [
    shape('many instructions for one turn', (entries) => ({
      messages: many(entries, () => [{ role: 'system', content: 'a', clear_at: 'next_user_message' }, USER]).flat(),
    })),
    shape('many signatures of calls', (entries) => ({
      messages: [
        USER,
        {
          role: 'assistant',
          content: many(entries, (at) => [
            { type: 'redacted_thinking', data: sealed('c2ln') },
            { type: 'tool_use', id: `call_${at}`, name: 'a', input: {} },
          ]).flat(),
        },
      ],
    })),
  ],
  chat: [
    shape('many parts of the instructions', (entries) => ({
      messages: [{ role: 'system', content: many(entries, () => ({ type: 'text', text: 'a' })) }, USER],
    })),
    shape('many stop sequences', (entries) => ({ messages: [USER], stop: many(entries, String) })),
  ],
  responses: [
    shape('many parts of one answer in one item', (entries) => ({
      input: many(2, () => ({
        role: 'assistant',
        content: many(entries / 2, () => ({ type: 'output_text', text: 'a' })),
      })),
    })),
    shape('many parts of one instruction', (entries) => ({
      input: [{ role: 'developer', content: many(entries, () => ({ type: 'input_text', text: 'a' })) }],
    })),
    shape('many found tools', (entries) => ({
      input: many(entries, (at) => ({
        type: 'tool_search_output',
        call_id: `call_${at}`,
        execution: 'client',
        tools: [{ type: 'function', name: `tool_${at % 100}`, parameters: {} }],
      })),
    })),
    shape('many tools of one namespace', (entries) => ({
      input: 'Hello',
      tools: [
        { type: 'namespace', name: 'space', tools: many(entries, (at) => ({ type: 'function', name: `tool_${at}` })) },
      ],
    })),
  ],
};

/** Requests that are never translated. */
const NATIVE: Readonly<Partial<Record<string, readonly Shape<JsonObject>[]>>> = {
  messages: [
    shape('many tools that make a container', (entries) => ({
      messages: [USER],
      tools: many(entries, () => ({ type: 'code_execution_20250825', name: 'code_execution' })),
    })),
    shape('many tools of unknown types', (entries) => ({
      messages: [USER],
      tools: many(entries, (at) => ({ type: `new_${at}`, name: 'new' })),
    })),
    shape('many sealed parts', (entries) => ({
      messages: [
        USER,
        {
          role: 'assistant',
          content: many(entries, () => ({ type: 'thinking', thinking: '', signature: sealed('a') })),
        },
      ],
    })),
    shape('many sealed messages', (entries) => ({
      messages: many(entries, () => ({
        role: 'assistant',
        content: [{ type: 'thinking', thinking: '', signature: sealed('a') }],
      })),
    })),
    shape('many escaped keys', (entries) => ({
      messages: [USER, { role: 'user', content: [{ [`"${'k'.repeat(entries)}`]: 1 }] }],
    })),
  ],
  responses: [
    shape('many tools that make a container', (entries) => ({
      input: 'Hello',
      tools: many(entries, () => ({ type: 'code_interpreter', container: { type: 'auto' } })),
    })),
    shape('many items that name an item', (entries) => ({
      input: many(entries, (at) => ({ type: 'item_reference', id: `rs_${at}` })),
    })),
  ],
};

function chatStream(entries: number, delta: (at: number) => object, id = 'chatcmpl-1'): SseEvent[] {
  return many(entries, (at) => ({
    name: undefined,
    data: JSON.stringify({ id, choices: [{ index: 0, delta: delta(at), finish_reason: null }] }),
  }));
}

/** Streams that no writer of the gateway writes. */
const STREAMS: Readonly<Partial<Record<string, readonly Shape<readonly SseEvent[]>[]>>> = {
  chat: [
    shape('many calls without numbers', (entries) =>
      chatStream(entries, (at) => ({ tool_calls: [{ id: `call_${at}`, function: { name: 'a', arguments: '{}' } }] })),
    ),
    shape('many calls without ids', (entries) =>
      chatStream(
        entries,
        (index) => ({ tool_calls: [{ index, function: { name: 'a', arguments: '{}' } }] }),
        'c'.repeat(2_000),
      ),
    ),
    shape('many pieces of a call without a number', (entries) => [
      ...chatStream(entries, (at) => ({ tool_calls: [{ id: `call_${at}`, function: { name: 'a', arguments: '{' } }] })),
      ...chatStream(entries, (at) => ({ tool_calls: [{ id: `call_${at}`, function: { arguments: '}' } }] })),
    ]),
    shape('many pieces that repeat the name', (entries) =>
      chatStream(entries, () => ({ tool_calls: [{ index: 0, function: { name: 'a', arguments: '{"a":' } }] })),
    ),
    shape('many pieces that repeat the name after a whole input', (entries) =>
      chatStream(entries, (at) => ({
        tool_calls: [{ index: 0, function: { ...(at === 0 && { name: 'a' }), arguments: at === 0 ? '{}' : ' ' } }],
      })),
    ),
    shape('many choices', (entries) =>
      many(2, () => ({
        name: undefined,
        data: JSON.stringify({ choices: many(entries, (index) => ({ index, delta: { content: 'a' } })) }),
      })),
    ),
  ],
};

/** The work of one kind, by the name of the shape that grows. */
interface LinearCase {
  readonly name: string;
  readonly most: number;
  readonly work: Work;
}

type Client = (typeof TRANSLATED)[number];

function casesOf<T>(shapes: readonly Shape<T>[] = [], work: (made: T) => () => void, suffix = ''): LinearCase[] {
  return shapes.map(({ name, most, make }) => ({
    name: name + suffix,
    most,
    work: (entries) => work(make(entries)),
  }));
}

/** The work that must be linear, by what it does. */
export const LINEAR: ReadonlyMap<string, readonly LinearCase[]> = new Map([
  ...SPOKEN.map(({ name, write }) => [`a request of ${name} is written`, casesOf(TALKS, writing(write))] as const),
  ...TRANSLATED.map((client) => [`a request of ${client} is read`, readCases(client)] as const),
  ...TRANSLATED.map((client) => [`a body of ${client} is read for its cost`, nativeCases(client)] as const),
  ...TRANSLATED.map((client) => [`an answer of ${client} is written`, writtenCases(client)] as const),
  ...SPOKEN.map(
    ({ name, openReader }) =>
      [`an answer of ${name} is read`, casesOf(STREAMS[name], (events) => readStream(openReader, events))] as const,
  ),
  ...SPOKEN.map((spoken, at) => {
    const client = TRANSLATED[(at + 1) % TRANSLATED.length] as Client;
    return [`an answer of ${spoken.name} is translated to ${client}`, translatedCases(spoken, client)] as const;
  }),
  ['an answer is unframed', unframedCases()] as const,
]);

function writing(write: Spoken['write']) {
  return (talk: Conversation) => {
    const call = askedOf(talk);
    return () => void write(call);
  };
}

function readCases(client: Client): LinearCase[] {
  const { readRequest } = clientDialect(client);
  const reading = (request: JsonObject) => {
    const body = JSON.parse(JSON.stringify(request)) as JsonObject;
    return () => void readRequest(body);
  };
  return [...casesOf(TALKS, (talk) => reading(requestBy(client, talk))), ...casesOf(REQUESTS[client], reading)];
}

function nativeCases(client: Client): LinearCase[] {
  const usual = TALKS.filter(({ isUsual }) => isUsual);
  return [
    ...casesOf(usual, (talk) => native(client, requestBy(client, talk))),
    ...casesOf([...(REQUESTS[client] ?? []), ...(NATIVE[client] ?? [])], (body) => native(client, body)),
  ];
}

function writtenCases(client: Client): LinearCase[] {
  const open = () => clientDialect(client).openWriter(writtenCall({}));
  const stream = (events: readonly AnswerEvent[]) => () => {
    const writer = open();
    for (const event of events) writer.write(event);
  };
  return [
    ...casesOf(ANSWERS, stream, ', as a stream'),
    ...casesOf(ANSWERS, (events) => () => void open().body(events), ', as a body'),
  ];
}

function translatedCases({ name, send }: Spoken, client: Client): LinearCase[] {
  const stream = (answerEvents: readonly AnswerEvent[]) => {
    const { events } = send(answerEvents);
    return () => {
      const translation = translationOf(name, client);
      for (const event of events) translation.event(event);
      translation.end();
    };
  };
  const body = (answerEvents: readonly AnswerEvent[]) => {
    const sent = send(answerEvents);
    return () => void translationOf(name, client).body(sent.body);
  };
  return [...casesOf(ANSWERS, stream, ', as a stream'), ...casesOf(ANSWERS, body, ', as a body')];
}

function unframedCases(): LinearCase[] {
  const message = eventStreamMessage({ ':message-type': 'event', ':event-type': 'x' }, '{}');
  const framings = adapterNames().flatMap((name) => {
    const { framing } = findAdapter(name) as UpstreamAdapter;
    return framing === undefined ? [] : [{ name, framing }];
  });
  return framings.flatMap(({ name, framing }) => [
    ...casesOf(
      [shape(`many messages of ${name} in one piece`, (entries) => many(entries, () => message))],
      (messages) => {
        const bytes = Buffer.concat(messages);
        return () => void framing.open().push(bytes);
      },
    ),
    ...casesOf([shape(`one message of ${name} in many pieces`, (entries) => 'x'.repeat(8 * entries))], (text) => {
      const bytes = eventStreamMessage({ ':message-type': 'event' }, text);
      return () => {
        const decoder = framing.open();
        for (let from = 0; from < bytes.length; from += 8) decoder.push(bytes.subarray(from, from + 8));
      };
    }),
  ]);
}

/** What a process finds out about a case. `growth` is absent for work that is never dear enough to be measured. */
export interface Measured {
  readonly name: string;
  readonly growth?: number;
  /** What it threw. */
  readonly error?: string;
}

/** From n to 8 n entries. */
export const MAX_GROWTH = 12;

function measured({ name, most, work }: LinearCase): Measured {
  try {
    if (!isWritten(work)) return { name };
    const growth = cpuGrowth(work, most, MAX_GROWTH);
    return growth === undefined ? { name } : { name, growth };
  } catch (error) {
    return { name, error: String(error instanceof Error && error.cause !== undefined ? error.cause : error) };
  }
}

/** Measures one kind in a process of its own. Its heap has room for a whole run, because what a collection costs is not in proportion. */
export function measureApart(kind: string): Promise<readonly Measured[]> {
  const heap = ['--expose-gc', '--single-threaded-gc', '--min-semi-space-size=512', '--max-semi-space-size=512'];
  const flags = [...heap, '--require', 'tsx/cjs'];
  return new Promise((resolve, reject) => {
    const child = execFile(process.execPath, [...flags, __filename, kind], { maxBuffer: 1e8 }, (error, stdout) => {
      if (error === null)
        resolve(
          stdout
            .trim()
            .split('\n')
            .map((line) => JSON.parse(line) as Measured),
        );
      else reject(error);
    });
    process.once('exit', () => child.kill());
  });
}

if (require.main === module)
  for (const each of LINEAR.get(process.argv[2] ?? '') ?? [])
    process.stdout.write(`${JSON.stringify(measured(each))}\n`);
