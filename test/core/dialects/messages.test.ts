import { MessageStream } from '@anthropic-ai/sdk/lib/MessageStream';
import { expect } from 'chai';
import fc from 'fast-check';
import type { AnswerEvent, ClientEvent, FinishReason } from '../../../core/catalog/answer';
import {
  type Conversation,
  NotTranslatable,
  type Part,
  type Tool,
  type Turn,
} from '../../../core/catalog/conversation';
import { usageOf } from '../../../core/catalog/usage';
import { MESSAGES } from '../../../core/dialects/messages';
import { RULES } from '../../../core/dialects/messages/rules';
import { unseal } from '../../../core/dialects/seal';
import type { JsonObject } from '../../../core/json-values';
import { callOf, writtenCall } from '../../support/golden';

const ID = fc.stringMatching(/^[a-zA-Z0-9_-]{1,12}$/);
const TEXT = fc.string({ minLength: 1, unit: 'binary' });
const INPUT = fc.dictionary(fc.string(), fc.jsonValue()).map((input) => JSON.stringify(input));

describe('the dialect messages', () => {
  it('refuses or drops members as its rules say, and names each refused member', () => {
    const given = { model: 'm', messages: [] };
    for (const { member, fate } of RULES.all.filter((rule) => /^\w+$/.test(rule.member))) {
      const read = () => MESSAGES.readRequest({ ...given, [member]: { of: 'the vendor' } });
      if (fate === 'refused') expect(read, member).to.throw(`\`${member}\``);
      if (fate === 'dropped') expect(read(), member).to.deep.equal(MESSAGES.readRequest(given));
    }
  });

  it('refuses the blocks and tools that its rules refuse, and no others', () => {
    const isRefused = (place: string, request: JsonObject) => {
      try {
        MESSAGES.readRequest(request);
        return false;
      } catch (error) {
        if (!(error instanceof NotTranslatable)) throw error;
        return error.what === `${place}.type`;
      }
    };
    for (const { member, fate } of RULES.all) {
      const [, place, type] = /^(content|tools)\[(.+)\]$/.exec(member) ?? [];
      if (type === undefined) continue;
      const inResult = { type: 'tool_result', tool_use_id: 't', content: [{ type }] };
      const sides = [
        ...['user', 'assistant'].map((role) => ['', { role, content: [{ type }] }] as const),
        ['.content[0]', { role: 'user', content: [inResult] }] as const,
      ];
      const refused =
        place === 'tools'
          ? isRefused('tools[0]', { messages: [], tools: [{ type }] })
          : sides.every(([inside, message]) => isRefused(`messages[0].content[0]${inside}`, { messages: [message] }));
      expect(refused, member).to.equal(fate === 'refused');
    }
  });

  it('reads every conversation that it writes without a change', () => {
    fc.assert(
      fc.property(CONVERSATION, (conversation) => {
        const body = JSON.parse(JSON.stringify(MESSAGES.writeRequest(callOf(conversation, {})))) as JsonObject;
        expect(plain(MESSAGES.readRequest(body))).to.deep.equal(plain(conversation));
      }),
    );
  });

  it('refuses a request of any other form, and never throws another error', () => {
    const names = [...RULES.all.map(({ member }) => member.split('.').at(-1) as string), 'type', 'schema', 'data'];
    const words = fc.constantFrom('user', 'assistant', 'system', 'text', 'tool_use', 'thinking', 'base64', 'auto');
    const { node } = fc.letrec((tie) => ({
      node: fc.oneof(
        { maxDepth: 6 },
        words,
        fc.constantFrom(null, true, 1),
        fc.dictionary(fc.constantFrom(...names), tie('node')),
        fc.array(tie('node'), { maxLength: 2 }),
      ),
    }));
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...names), node), (body) => {
        try {
          MESSAGES.writeRequest(callOf(MESSAGES.readRequest(body), {}));
        } catch (error) {
          expect(error).to.be.instanceOf(NotTranslatable);
        }
      }),
      { numRuns: 1_000 },
    );
  });

  it('reads every answer that it writes, streamed or whole, without a change', () => {
    fc.assert(
      fc.property(ANSWER, (events) => {
        const reader = MESSAGES.openReader();
        const streamed = written(events).flatMap((event) => reader.event({ name: undefined, ...event }));
        expect(meaning(streamed)).to.deep.equal(meaning(events));
        const body = MESSAGES.openWriter(writtenCall({})).body(events);
        expect(meaning(MESSAGES.openReader().body(body))).to.deep.equal(meaning(events));
      }),
    );
  });

  it("writes a stream and a body that the vendor's own client reads as the same message", async () => {
    await fc.assert(
      fc.asyncProperty(ANSWER, async (events) => {
        const lines = written(events).map(({ data }) => `${data}\n`);
        const message = await MessageStream.fromReadableStream(new Blob(lines).stream()).finalMessage();
        const body = MESSAGES.openWriter(writtenCall({})).body(events);
        expect(JSON.parse(JSON.stringify(message))).to.deep.include(JSON.parse(JSON.stringify(body)));
      }),
      { numRuns: 50 },
    );
  });

  it('returns a signature to the upstream that made it', () => {
    const value = JSON.stringify({ redacted_thinking: 'Emw' });
    const events: AnswerEvent[] = [
      { is: 'open', at: 0, choice: 0, part: { is: 'reasoning' } },
      { is: 'sign', at: 0, value: 'EqQB' },
      { is: 'close', at: 0 },
      { is: 'open', at: 1, choice: 0, part: { is: 'tool_call', id: 'c', name: 'n' } },
      { is: 'sign', at: 1, value },
      { is: 'close', at: 1 },
    ];
    const { content } = MESSAGES.openWriter(writtenCall({})).body(events);
    const messages = [
      { role: 'user', content: 'Go' },
      { role: 'assistant', content },
    ];
    const [, turn] = MESSAGES.readRequest({ messages }).turns;
    const signed = { upstream: 'up-1', dialect: 'other' };
    expect(turn?.parts.map((part) => 'signature' in part && part.signature)).to.deep.equal([
      { ...signed, value: 'EqQB' },
      { ...signed, value },
    ]);
  });

  it('marks unsigned thinking, so that no upstream receives it', () => {
    const { content } = MESSAGES.openWriter(writtenCall({})).body([
      { is: 'open', at: 0, choice: 0, part: { is: 'reasoning' } },
      { is: 'add', at: 0, text: 'Hm.' },
      { is: 'close', at: 0 },
    ]);
    const [block] = content as readonly JsonObject[];
    expect(unseal(block?.['signature'])).to.include({ upstream: 'none' });
  });

  it('never mixes parts up, whatever order events arrive in', () => {
    const stream = ANSWER.map((events) => written(events).map(({ data }) => JSON.parse(data) as JsonObject));
    const junk = fc.dictionary(fc.string(), fc.jsonValue());
    const shuffled = fc.tuple(stream, fc.infiniteStream(fc.nat()), junk).map(([events, numbers, added]) => {
      const [length = 0, ...places] = [...numbers.take(events.length + 1)];
      const changed = events.map((event, at) => ({ ...((places[at] ?? 0) % 3 === 0 ? added : {}), ...event }));
      if (length % 2 === 0)
        changed.sort((one, other) => order(one, places, events.length) - order(other, places, events.length));
      return changed.slice(0, length % (changed.length + 1));
    });
    fc.assert(fc.property(shuffled, (events) => expectBalanced(events)));
  });

  it('gives an error the type that its status has', () => {
    const typed = (status: number, error = {}) =>
      (MESSAGES.writeError({ message: 'Sorry.', ...error }, status, 'req-1')['error'] as JsonObject)['type'];
    expect([400, 401, 404, 413, 418, 429, 500, 503].map((status) => typed(status))).to.deep.equal([
      'invalid_request_error',
      'authentication_error',
      'not_found_error',
      'request_too_large',
      'invalid_request_error',
      'rate_limit_error',
      'api_error',
      'overloaded_error',
    ]);
    expect(typed(200, { type: 'constructor', code: 'insufficient_quota' })).to.equal('billing_error');
    expect(typed(200, { type: 'constructor' })).to.equal('api_error');
  });

  it('omits a tool call whose input is not valid JSON', () => {
    const events: AnswerEvent[] = [
      { is: 'open', at: 0, choice: 0, part: { is: 'tool_call', id: 'c', name: 'n' } },
      { is: 'add', at: 0, text: '{"a":' },
      { is: 'close', at: 0 },
      { is: 'finish', choice: 0, reason: 'tool_calls' },
    ];
    expect(() => MESSAGES.openWriter(writtenCall({})).body(events)).to.throw('no JSON object');
  });
});

const PARTS = {
  user: fc.oneof(
    TEXT.map((text): Part => ({ is: 'text', text })),
    fc.webUrl().map((url): Part => ({ is: 'image', source: { url } })),
    fc
      .base64String({ minLength: 4 })
      .map((base64): Part => ({ is: 'image', source: { base64, mediaType: 'image/png' } })),
    TEXT.map((text): Part => ({ is: 'document', source: { text }, name: 'notes' })),
  ),
  assistant: fc.oneof(
    TEXT.map((text): Part => ({ is: 'text', text })),
    fc.tuple(ID, ID, INPUT).map(([id, name, input]): Part => ({ is: 'tool_call', id, name, input })),
    fc.tuple(fc.string(), ID).map(
      ([text, value]): Part => ({
        is: 'reasoning',
        text,
        signature: { upstream: 'up-1', dialect: 'messages', value },
      }),
    ),
  ),
  system: TEXT.map((text): Part => ({ is: 'text', text })),
  results: fc
    .tuple(ID, fc.array(TEXT.map((text) => ({ is: 'text' as const, text }))), fc.constantFrom(true, undefined))
    .map(([id, parts, isError]): Part => ({ is: 'tool_result', id, parts, isError })),
};

const EXCHANGE = fc
  .tuple(
    fc.array(PARTS.results),
    fc.array(PARTS.user, { minLength: 1 }),
    fc.array(PARTS.assistant, { minLength: 1 }),
    fc.array(PARTS.system),
  )
  .map(([results, user, assistant, system]): Turn[] => [
    { role: 'user', parts: [...results, ...user] },
    { role: 'assistant', parts: assistant },
    ...(system.length > 0 ? [{ role: 'system' as const, parts: system }] : []),
  ]);

const TOOLS = fc.array(
  fc.record<Tool>({
    name: ID,
    description: fc.option(TEXT, { nil: undefined }),
    schema: fc.constant({ type: 'object', properties: { a: { type: 'string' } } }),
    strict: fc.constantFrom(true, undefined),
    input: fc.constant('json'),
  }),
  { minLength: 1 },
);

const unit = { min: 0, max: 1, noNaN: true };
const WHOLE = fc.record<Conversation>({
  instructions: fc.array(TEXT.map((text) => ({ is: 'text' as const, text }))),
  turns: fc.array(EXCHANGE, { minLength: 1, maxLength: 3 }).map((turns) => turns.flat()),
  tools: TOOLS,
  toolChoice: fc.oneof(
    fc.constantFrom('auto' as const, 'required' as const),
    ID.map((tool) => ({ tool })),
  ),
  parallelTools: fc.constantFrom(false, undefined),
  outputFormat: fc.constantFrom(undefined, { is: 'schema' as const, schema: { type: 'object' } }),
  maxTokens: fc.integer({ min: 1, max: 100_000 }),
  choices: fc.constant(1),
  stream: fc.boolean(),
  stop: fc.array(TEXT),
  temperature: fc.double(unit).map((value) => value + 0),
  topP: fc.double(unit).map((value) => value + 0),
  user: fc.option(ID, { nil: undefined }),
});
const CONVERSATION = WHOLE.map((conversation): Conversation => {
  const isBegun = conversation.turns.at(-1)?.role === 'assistant';
  return { ...conversation, ...(isBegun && { isBegun }) };
});

/** Converts to JSON without signatures, because another vendor cannot use them. */
function plain(conversation: Conversation): unknown {
  return JSON.parse(JSON.stringify(conversation, (key, value: unknown) => (key === 'signature' ? undefined : value)));
}

const SPOKEN = fc.oneof(
  fc
    .tuple(fc.constantFrom('text' as const, 'reasoning' as const), fc.array(fc.string()))
    .map(([is, texts]) => ({ part: { is }, texts })),
  fc.tuple(ID, ID, INPUT).map(([id, name, input]) => ({
    part: { is: 'tool_call' as const, id, name },
    texts: input.match(/.{1,5}/gsu) ?? [],
  })),
);
const REASONS: FinishReason[] = ['end', 'length', 'stop', 'filter', 'pause', 'context'];

/** Answers whose parts follow each other, or whose second part begins before the first is closed. */
const ANSWER = fc
  .tuple(fc.array(SPOKEN), fc.constantFrom(...REASONS), fc.boolean())
  .map(([spoken, reason, overlaps]): AnswerEvent[] => {
    const opened = spoken.map(({ part }, at): AnswerEvent => ({ is: 'open', at, choice: 0, part }));
    const said = spoken.map(({ part, texts }, at): AnswerEvent[] => [
      ...texts.map((text) => ({ is: 'add' as const, at, text })),
      ...(part.is === 'reasoning' ? [{ is: 'sign' as const, at, value: `sig-${at}` }] : []),
    ]);
    const closed = spoken.map((_, at): AnswerEvent => ({ is: 'close', at }));
    const parts = overlaps
      ? [...opened, ...said.reverse().flat(), ...closed]
      : opened.flatMap((open, at) => [open, ...(said[at] ?? []), ...closed.slice(at, at + 1)]);
    const calls = spoken.some(({ part }) => part.is === 'tool_call');
    return [
      { is: 'usage', usage: usageOf({ input: 3 }) },
      { is: 'begin' },
      ...parts,
      { is: 'finish', choice: 0, reason: reason === 'end' && calls ? 'tool_calls' : reason },
      { is: 'usage', usage: usageOf({ output: 4 }), reasoning: 2 },
      { is: 'end' },
    ];
  });

function written(events: readonly AnswerEvent[]): readonly ClientEvent[] {
  const writer = MESSAGES.openWriter(writtenCall({}));
  return events.flatMap((event) => writer.write(event));
}

/** Returns the content of each part, whether it was closed, and how the answer ended. It omits the text of signatures, because the dialect seals them. */
function meaning(events: readonly AnswerEvent[]): unknown {
  const parts = new Map<number, { part: unknown; text: string; isSigned: boolean; isClosed: boolean }>();
  const others: unknown[] = [];
  for (const event of events) {
    if (event.is === 'open') parts.set(event.at, { part: event.part, text: '', isSigned: false, isClosed: false });
    const part = 'at' in event ? parts.get(event.at) : undefined;
    if (event.is === 'add' && part !== undefined) part.text += event.text;
    if (event.is === 'sign' && part !== undefined) part.isSigned = true;
    if (event.is === 'close' && part !== undefined) part.isClosed = true;
    if (event.is === 'finish' || event.is === 'end') others.push(event);
    if (event.is === 'usage' && event.reasoning !== undefined) others.push(event.reasoning);
  }
  return { parts: [...parts.values()], others };
}

function order(event: JsonObject, places: readonly number[], length: number): number {
  return places[Number(event['index'] ?? length - 1)] ?? 0;
}

function expectBalanced(events: readonly JsonObject[]): void {
  const reader = MESSAGES.openReader();
  const open = new Set<number>();
  const seen = new Set<number>();
  const said: AnswerEvent[] = [];
  try {
    for (const event of events) said.push(...reader.event({ name: undefined, data: JSON.stringify(event) }));
  } catch (error) {
    expect(error).to.be.instanceOf(Error).and.not.instanceOf(TypeError);
  }
  for (const event of [...said, ...reader.end()]) {
    if (event.is === 'open') {
      expect(seen.has(event.at)).to.equal(false);
      seen.add(event.at);
      open.add(event.at);
    } else if ('at' in event) expect(open.has(event.at)).to.equal(true);
    if (event.is === 'close') open.delete(event.at);
  }
  expect(open.size).to.equal(0);
}
