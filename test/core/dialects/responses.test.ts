import { expect } from 'chai';
import fc from 'fast-check';
import { ResponseStream } from 'openai/lib/responses/ResponseStream';
import type { AnswerEvent, OpenPart } from '../../../core/catalog/answer';
import { type Conversation, NotTranslatable, type Part, type Turn } from '../../../core/catalog/conversation';
import { UNKNOWN_USAGE, usageOf } from '../../../core/catalog/usage';
import { MESSAGES } from '../../../core/dialects/messages';
import { RESPONSES } from '../../../core/dialects/responses';
import { RESPONSES_DIALECT } from '../../../core/dialects/responses/members';
import { seal, unseal } from '../../../core/dialects/seal';
import { asObject, asText, type JsonObject } from '../../../core/json-values';
import { callOf, writtenCall } from '../../support/golden';

const word = fc.stringMatching(/^[a-z]{1,8}$/);
const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 });
const textPart = fc.record({ is: fc.constant('text' as const), text });
const detail = fc.constantFrom('low' as const, 'high' as const, 'auto' as const);
const source = fc.oneof(
  fc.record({ base64: fc.constant('iVBORw0KGgo='), mediaType: fc.constant('image/png') }),
  fc.record({ url: fc.webUrl() }),
);
const image = fc.record({ is: fc.constant('image' as const), source, detail });
const pdf = fc.record({
  is: fc.constant('document' as const),
  source: fc.record({ base64: fc.constant('JVBERi0='), mediaType: fc.constant('application/pdf') }),
  name: word,
});
const audio = fc.record({
  is: fc.constant('audio' as const),
  base64: fc.constant('UklGRg=='),
  format: fc.constantFrom('wav', 'mp3'),
});
const call = fc
  .record({ id: word, name: word, isText: fc.boolean(), said: text })
  .map(
    ({ id, name, isText, said }): Part =>
      isText
        ? { is: 'tool_call', id, name, input: said, isText }
        : { is: 'tool_call', id, name, input: JSON.stringify({ said }) },
  );
const result = fc
  .record({ id: word, parts: fc.array(fc.oneof(textPart, image, pdf), { maxLength: 2 }), isText: fc.boolean() })
  .map(({ isText, ...rest }): Part => ({ is: 'tool_result', ...rest, ...(isText && { isText }) }));
const refusal = fc.record({ is: fc.constant('refusal' as const), text });

const turnOf = (role: Turn['role'], part: fc.Arbitrary<Part>) =>
  fc.array(part, { minLength: 1, maxLength: 4 }).map((parts): Turn => ({ role, parts }));
const user = turnOf('user', fc.oneof(textPart, image, pdf, audio));
const system = turnOf('system', textPart);
const exchange = fc.tuple(
  turnOf('assistant', fc.oneof(textPart, call, refusal)),
  fc.oneof(turnOf('user', result), user, system),
);

const schema = fc.constant({ type: 'object', properties: { said: { type: 'string' } } });
const description = text;
const tool = fc.oneof(
  fc.record({ name: word, description, input: fc.constant('json' as const), schema, strict: fc.boolean() }),
  fc.record({ name: word, description, input: fc.constant('text' as const), format: fc.constant({ type: 'text' }) }),
);
const settings = fc.record(
  {
    parallelTools: fc.boolean(),
    outputFormat: fc.oneof(
      fc.constant({ is: 'json' as const }),
      fc.record({ is: fc.constant('schema' as const), name: word, schema, strict: fc.boolean() }),
    ),
    maxTokens: fc.integer({ min: 1, max: 100_000 }),
    temperature: fc.double({ min: 0, max: 2, noNaN: true }),
    topP: fc.double({ min: 0, max: 1, noNaN: true }),
    reasoning: fc.record({ effort: fc.constantFrom('none', 'low', 'high', 'max'), isShown: fc.boolean() }),
    verbosity: fc.constantFrom('low', 'medium', 'high'),
    cacheKey: word,
    user: word,
  },
  { requiredKeys: [] },
);

const conversation = fc
  .record({
    instructions: fc.array(textPart, { maxLength: 1 }),
    first: user,
    exchanges: fc.array(exchange, { maxLength: 3 }),
    tools: fc.uniqueArray(tool, { maxLength: 3, selector: ({ name }) => name }),
    stream: fc.boolean(),
    settings,
  })
  .map(({ first, exchanges, settings: said, tools, ...rest }) => {
    const [chosen] = tools;
    const toolChoice = chosen === undefined ? 'auto' : { tool: chosen.name, input: chosen.input };
    const common = { choices: 1, stop: [], tools, toolChoice };
    return { ...rest, ...said, ...common, turns: [first, ...exchanges.flat()] } as unknown as Conversation;
  });

/** Drops undefined members. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value)) as unknown;
}

describe('the dialect responses', () => {
  it('reads every conversation that it writes without a change', () => {
    fc.assert(
      fc.property(conversation, (given) => {
        const body = RESPONSES.writeRequest(callOf(given, { reasoning: 'effort' }));
        expect(plain(RESPONSES.readRequest(body))).to.deep.equal(plain(given));
      }),
      { numRuns: 500 },
    );
  });

  it('reads every stream that it writes without a change', () => {
    fc.assert(
      fc.property(answer, (events) => {
        const reader = RESPONSES.openReader();
        const read = written(events).flatMap(({ name, data }) => reader.event({ name, data }));
        expect(summaryOf(read)).to.deep.equal(summaryOf(events));
        expect(reader.end()).to.deep.equal([]);
      }),
      { numRuns: 500 },
    );
  });

  it('writes the same answer as a stream and in one piece', () => {
    fc.assert(
      fc.property(answer, (events) => {
        const body = RESPONSES.openWriter(writtenCall({})).body(events);
        const last = JSON.parse(written(events).at(-1)?.data ?? '{}') as JsonObject;
        expect(body).to.deep.equal(last['response']);
        expect(summaryOf(RESPONSES.openReader().body(body))).to.deep.equal(summaryOf(events));
      }),
      { numRuns: 300 },
    );
  });

  it("writes streams that the official SDK's helper assembles", async () => {
    await fc.assert(
      fc.asyncProperty(answer, async (events) => {
        const lines = written(events).map(({ data }) => `${data}\n`);
        const response = await ResponseStream.fromReadableStream(new Blob(lines).stream()).finalResponse();
        const body = RESPONSES.openWriter(writtenCall({})).body(events);
        const { output_text: _, output_parsed: _parsed, ...rest } = plain(response) as Record<string, unknown>;
        expect({ ...rest, output: undefined }).to.deep.equal({ ...body, output: undefined });
        expect(withoutParsed(rest['output'])).to.deep.equal(body['output']);
      }),
      { numRuns: 100 },
    );
  });

  it('keeps parts apart in streams that are cut, repeated or reordered', () => {
    const step = fc.record({
      at: fc.nat(),
      to: fc.nat(),
      do: fc.constantFrom('drop', 'repeat', 'swap', 'nest', 'strip'),
    });
    fc.assert(
      fc.property(answer, fc.array(step, { maxLength: 6 }), (events, steps) => {
        const stream = written(events).map(({ data }) => JSON.parse(data) as Record<string, unknown>);
        for (const each of steps) disturb(stream, each);
        expectBalanced(readAll(stream));
      }),
      { numRuns: 1_000 },
    );
  });

  it('returns the thinking of a Messages model in the next call, with its signature', () => {
    const content = [
      { type: 'thinking', thinking: 'Look first.', signature: 'sig-1' },
      { type: 'redacted_thinking', data: 'hidden' },
      { type: 'text', text: 'I look.' },
      { type: 'tool_use', id: 'toolu_1', name: 'crm__get', input: { id: 7 } },
    ];
    const tools = [{ type: 'namespace', name: 'crm', description: '', tools: [{ type: 'function', name: 'get' }] }];
    const read = MESSAGES.openReader().body({ type: 'message', role: 'assistant', content, stop_reason: 'tool_use' });
    const sealed = {
      ...writtenCall({ tools }),
      seal: (value: string) => seal({ upstream: 'up-1', dialect: 'messages', value }),
    };
    const output = RESPONSES.openWriter(sealed).body(read)['output'] as readonly JsonObject[];
    expect(output.at(-1)).to.include({ type: 'function_call', call_id: 'toolu_1', namespace: 'crm', name: 'get' });
    const input = [
      { role: 'user', content: 'Hi' },
      ...output,
      { type: 'function_call_output', call_id: 'toolu_1', output: 'Ann' },
    ];
    const next = RESPONSES.readRequest({ input, tools, reasoning: { effort: 'high' } });
    const said = (upstream: string) => {
      const { messages } = MESSAGES.writeRequest(callOf(next, { upstream, reasoning: 'effort' }));
      return (messages as readonly JsonObject[])[1];
    };
    expect(said('up-1')).to.deep.equal({ role: 'assistant', content });
    expect(said('up-2')).to.deep.equal({ role: 'assistant', content: content.slice(2) });
  });

  it('refuses requests whose members have a wrong shape, and never throws another error', () => {
    const names = ['input', 'tools', 'tool_choice', 'text', 'reasoning', 'instructions', 'stream', 'max_output_tokens'];
    const item = fc.record({ type: fc.constantFrom(...Object.keys(RESPONSES_DIALECT.parts)), content: fc.jsonValue() });
    const value = fc.oneof(fc.jsonValue(), fc.array(item));
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...names), value), (body) => {
        try {
          RESPONSES.readRequest(body);
        } catch (error) {
          expect(error).to.be.instanceOf(NotTranslatable);
        }
      }),
      { numRuns: 1_000 },
    );
  });

  it("writes an upstream's error in the form of its clients", () => {
    const error = { message: 'Slow down.', type: 'overloaded_error', code: 'rate_limit_exceeded' };
    expect(RESPONSES.writeError(error, 429, 'req-1')).to.deep.equal({
      request_id: 'req-1',
      error: { message: 'Slow down.', type: 'rate_limit_error', code: 'rate_limit_exceeded', param: null },
    });
    const typeAt = (status: number) => asObject(RESPONSES.writeError(error, status, 'req-1')['error'])?.['type'];
    expect([400, 401, 403, 404, 413, 500, 529].map(typeAt)).to.deep.equal([
      'invalid_request_error',
      'authentication_error',
      'permission_error',
      'not_found_error',
      'invalid_request_error',
      'server_error',
      'server_error',
    ]);
  });
});

/** A part of an answer, as pieces of its content. */
const said = fc.record({
  part: fc.oneof(
    fc.constant({ is: 'text' } as const),
    fc.constant({ is: 'refusal' } as const),
    fc.constant({ is: 'reasoning' } as const),
    fc.record({ is: fc.constant('tool_call' as const), id: word, name: word }),
    fc.record({ is: fc.constant('tool_call' as const), id: word, name: word, isText: fc.constant(true) }),
  ),
  pieces: fc.array(text, { minLength: 1, maxLength: 3 }),
  signature: fc.option(word, { nil: undefined }),
});

/** Whole answers. Parts may overlap: `order` lists which part continues. */
const answer = fc
  .record({
    parts: fc.array(said, { maxLength: 4 }),
    order: fc.array(fc.nat(), { maxLength: 20 }),
    finish: fc.constantFrom('end', 'length', 'filter'),
    reasoning: fc.integer({ min: 1, max: 50 }),
  })
  .map(({ parts, order, finish, reasoning }): readonly AnswerEvent[] => {
    const queues = parts.map((each, at) => eventsOf(each.part, each.pieces, each.signature, at));
    const events: AnswerEvent[] = queues.map((queue) => queue.shift()).filter((event) => event !== undefined);
    for (const turn of order) {
      const next = queues[turn % Math.max(queues.length, 1)]?.shift();
      if (next !== undefined) events.push(next);
    }
    const hasCalls = parts.some(({ part }) => part.is === 'tool_call');
    return [
      { is: 'begin' },
      ...events,
      ...queues.flat(),
      { is: 'finish', choice: 0, reason: finish === 'end' && hasCalls ? 'tool_calls' : finish },
      { is: 'usage', usage: usageOf({ input: 100, cacheRead: 20, output: 60 }), reasoning },
      { is: 'end' },
    ] as readonly AnswerEvent[];
  });

function eventsOf(part: OpenPart, pieces: readonly string[], signature: string | undefined, at: number): AnswerEvent[] {
  const json = part.is === 'tool_call' && part.isText !== true;
  const whole = json ? [JSON.stringify(pieces)] : pieces;
  const sign = part.is === 'reasoning' && signature !== undefined;
  return [
    { is: 'open', at, choice: 0, part },
    ...whole.map((each): AnswerEvent => ({ is: 'add', at, text: each })),
    ...(sign ? [{ is: 'sign', at, value: signature } as const] : []),
    { is: 'close', at },
  ];
}

function written(events: readonly AnswerEvent[]) {
  const writer = RESPONSES.openWriter(writtenCall({}));
  return events.flatMap((event) => writer.write(event));
}

/** Returns the content of an answer, however it was split. */
function summaryOf(events: readonly AnswerEvent[]): unknown {
  const parts = new Map<number, { part: OpenPart; text: string; signature?: string; isOpen: boolean }>();
  const others: unknown[] = [];
  for (const event of events) {
    if (event.is === 'open') parts.set(event.at, { part: event.part, text: '', isOpen: true });
    else if (event.is === 'add') partAt(parts, event.at).text += event.text;
    else if (event.is === 'close') partAt(parts, event.at).isOpen = false;
    else if (event.is === 'sign') partAt(parts, event.at).signature = signed(event.value);
    else if (event.is === 'usage') others.push({ ...event, usage: UNKNOWN_USAGE });
    else if (event.is !== 'begin') others.push(event);
  }
  return { parts: [...parts.values()], others };
}

function partAt<T>(parts: ReadonlyMap<number, T>, at: number): T {
  const part = parts.get(at);
  if (part === undefined) throw new Error(`there is no part ${at}`);
  return part;
}

/** Signs as this dialect does: with all members of the item. A client returns the signature unchanged. */
function signed(value: string): string {
  if (!value.startsWith('{')) return value;
  const sealed = asText((JSON.parse(value) as JsonObject)['encrypted_content']);
  return unseal(sealed)?.value ?? sealed;
}

/** Drops the members that the helper parses from the arguments of tool calls. */
function withoutParsed(output: unknown): unknown {
  return JSON.parse(JSON.stringify(output), (name, value: unknown) =>
    name === 'parsed_arguments' || name === 'parsed' ? undefined : value,
  ) as unknown;
}

interface Disturbance {
  readonly at: number;
  readonly to: number;
  readonly do: string;
}

function disturb(stream: Record<string, unknown>[], step: Disturbance): void {
  if (stream.length === 0) return;
  const at = step.at % stream.length;
  const to = step.to % stream.length;
  const event = stream[at] ?? {};
  if (step.do === 'drop') stream.splice(at, 1);
  if (step.do === 'repeat') stream.splice(to, 0, event);
  if (step.do === 'swap') stream.splice(to, 0, ...stream.splice(at, 1));
  if (step.do === 'nest')
    stream[at] = { ...event, mood: { response: stream[to] }, delta: event['delta'] ?? { text: 'x' } };
  if (step.do === 'strip') {
    const names = Object.keys(event);
    const { [names[step.to % names.length] ?? '']: _, ...rest } = event;
    stream[at] = rest;
  }
}

/** Returns the events before an error that ends the attempt. */
function readAll(stream: readonly JsonObject[]): readonly AnswerEvent[] {
  const reader = RESPONSES.openReader();
  const read: AnswerEvent[] = [];
  try {
    for (const event of stream) read.push(...reader.event({ name: undefined, data: JSON.stringify(event) }));
  } catch (error) {
    expect(error).to.be.instanceOf(Error);
    expect(error).not.to.be.instanceOf(TypeError);
  }
  return [...read, ...reader.end()];
}

function expectBalanced(events: readonly AnswerEvent[]): void {
  const open = new Set<number>();
  let opened = 0;
  for (const event of events) {
    if (event.is === 'open') {
      expect(event.at).to.equal(opened);
      opened += 1;
      open.add(event.at);
    } else if ('at' in event) {
      expect(open.has(event.at), `${event.is} ${event.at}`).to.equal(true);
      if (event.is === 'close') open.delete(event.at);
    }
  }
  expect([...open]).to.deep.equal([]);
  expect(events.filter(({ is }) => is === 'finish')).to.have.length.below(2);
  expect(events.filter(({ is }) => is === 'end')).to.have.length.below(2);
}
