import { expect } from 'chai';
import * as fc from 'fast-check';
import { ChatCompletionStream } from 'openai/lib/ChatCompletionStream';
import type { AnswerEvent, FinishReason } from '../../../core/catalog/answer';
import type { Conversation, Part, Turn } from '../../../core/catalog/conversation';
import { CHAT } from '../../../core/dialects/chat';
import { callOf, writtenCall } from '../../support/golden';

const text = fc.string({ minLength: 1, maxLength: 20 });
const name = fc.stringMatching(/^[a-z]{1,8}$/);
const json = fc.jsonValue({ maxDepth: 1 }).map((value) => JSON.stringify({ value }));

describe('the dialect chat', () => {
  it('reads every conversation that it writes without a change', () => {
    void fc.assert(
      fc.property(conversations(), (conversation) => {
        const written = CHAT.writeRequest(callOf(conversation, { reasoning: 'effort' }));
        const read = CHAT.readRequest(asJson(written) as Record<string, unknown>);
        expect(asJson(read)).to.deep.equal(asJson(conversation));
      }),
    );
  });

  it('reads every answer that it writes, streamed or whole, without a change', () => {
    void fc.assert(
      fc.property(answers(), (events) => {
        expect(said(readStream(chunksOf(events)))).to.deep.equal(said(events));
        const body = CHAT.openWriter(writtenCall({})).body(events);
        expect(said(CHAT.openReader().body(asJson(body)))).to.deep.equal(said(events));
      }),
    );
  });

  it('never mixes parts up if chunks are lost, doubled or reordered', () => {
    void fc.assert(
      fc.property(answers(), fc.array(fc.nat(30), { maxLength: 40 }), (events, order) => {
        const chunks = chunksOf(events);
        const nonsense = order.flatMap((at) => chunks[at] ?? []);
        const read = orUndefined(() => readStream(nonsense));
        if (read === undefined) return;
        expectBalanced(read);
        chunksOf(read);
      }),
    );
  });

  it("writes streams that the official SDK's helper assembles to the whole answer", async () => {
    await fc.assert(
      fc.asyncProperty(answers({ isText: false }), async (events) => {
        const lines = chunksOf(events).filter((data) => data !== '[DONE]');
        const stream = ChatCompletionStream.fromReadableStream(new Blob([lines.join('\n')]).stream());
        const whole = asJson(await stream.finalChatCompletion()) as Completion;
        const body = asJson(CHAT.openWriter(writtenCall({})).body(events)) as Completion;
        expect(whole.choices.map(comparable)).to.deep.equal(body.choices.map(comparable));
      }),
      { numRuns: 50 },
    );
  });

  it('ends an attempt with a clear error if an upstream contradicts itself', () => {
    const call = (index: number, rest: object) => chunk({ tool_calls: [{ index, ...rest }] });
    const begin = (index: number, id: string) => call(index, { id, function: { name: 'f', arguments: '{}' } });
    const more = call(0, { function: { arguments: '{"a":1}' } });
    expect(() => readStream(['[1]'])).to.throw('a chunk of the answer is no JSON object');
    expect(() => readStream([begin(0, 'a'), begin(1, 'b'), more])).to.throw('goes on behind its end');
    expect(() => readStream([call(0, { id: 'a', function: { arguments: '{}' } }), chunk({}, 'stop')])).to.throw(
      'a tool call has no name',
    );
    expect(() => readStream([chunk({ tool_calls: [{ function: { arguments: '{' } }] })])).to.throw('without its call');
    expect(() => readStream([chunk({}, 'stop'), chunk({ content: 'more' })])).to.throw('after the stop reason');
    expect(() => readStream([chunk({}, 'insufficient_system_resource')])).to.throw('broke off its answer');
    expect(() => CHAT.openReader().body([])).to.throw('the answer is no JSON object');
  });

  it("gives vendors' errors the types that Chat clients know and the vendor's message", () => {
    const told = (status: number) => CHAT.writeError({ message: 'No.', type: 'overloaded_error' }, status, 'req-1');
    expect(told(529)).to.deep.equal({
      error: { message: 'No.', type: 'server_error', param: null, code: 'overloaded_error' },
      request_id: 'req-1',
    });
    const typeOf = (status: number) => (told(status)['error'] as { readonly type: string }).type;
    expect([400, 401, 403, 404, 429, 500].map(typeOf)).to.deep.equal([
      'invalid_request_error',
      'authentication_error',
      'permission_error',
      'not_found_error',
      'rate_limit_error',
      'server_error',
    ]);
  });
});

interface Completion {
  readonly choices: readonly { readonly message: Record<string, unknown>; readonly finish_reason: string }[];
}

/** Drops what the helper adds: `null` for a missing text, and the parsed value. */
function comparable({ message, finish_reason }: Completion['choices'][number]): unknown {
  const calls = (message['tool_calls'] ?? []) as readonly { readonly id: string; readonly function: object }[];
  const { content, refusal } = message;
  return {
    content: content || null,
    refusal: refusal ?? null,
    calls: calls.map(({ id, function: { parsed_arguments: _, ...called } }: Parsed) => ({ id, ...called })),
    finish_reason,
  };
}

type Parsed = { readonly id: string; readonly function: { readonly parsed_arguments?: unknown } };

function asJson(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

function orUndefined<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch (error) {
    expect(error).to.be.instanceOf(Error).and.not.instanceOf(TypeError);
    return undefined;
  }
}

function chunk(delta: object, finish: string | null = null): string {
  return JSON.stringify({ id: 'chatcmpl-1', choices: [{ index: 0, delta, finish_reason: finish }] });
}

function chunksOf(events: readonly AnswerEvent[]): readonly string[] {
  const writer = CHAT.openWriter(writtenCall({}));
  return events.flatMap((event) => writer.write(event)).map(({ data }) => data);
}

function readStream(chunks: readonly string[]): readonly AnswerEvent[] {
  const reader = CHAT.openReader();
  return [...chunks.flatMap((data) => reader.event({ name: undefined, data })), ...reader.end()];
}

/** Returns the text of each choice, however it was split. Chat has one text and one refusal. */
function said(events: readonly AnswerEvent[]): unknown {
  const choices = new Map<
    number,
    { text: string; refusal: string; calls: { input: string }[]; reason?: FinishReason }
  >();
  const parts = new Map<number, (text: string) => void>();
  const choiceOf = (index: number) => {
    const choice = choices.get(index) ?? { text: '', refusal: '', calls: [] };
    choices.set(index, choice);
    return choice;
  };
  for (const event of events) {
    if (event.is === 'open') {
      const { at, part } = event;
      const choice = choiceOf(event.choice);
      if (part.is === 'text') parts.set(at, (more) => (choice.text += more));
      if (part.is === 'refusal') parts.set(at, (more) => (choice.refusal += more));
      if (part.is !== 'tool_call') continue;
      const call = { ...part, input: '' };
      choice.calls.push(call);
      parts.set(at, (more) => (call.input += more));
    }
    if (event.is === 'add') parts.get(event.at)?.(event.text);
    if (event.is === 'finish') choiceOf(event.choice).reason = event.reason;
  }
  return [...choices].sort(([one], [other]) => one - other);
}

function expectBalanced(events: readonly AnswerEvent[]): void {
  const open = new Set<number>();
  const opened = new Set<number>();
  const finished = new Set<number>();
  for (const event of events) {
    if (event.is === 'open') {
      expect(opened.has(event.at) || finished.has(event.choice)).to.equal(false);
      opened.add(event.at);
      open.add(event.at);
    }
    if (event.is === 'add') expect(open.has(event.at)).to.equal(true);
    if (event.is === 'close') expect(open.delete(event.at)).to.equal(true);
    if (event.is === 'finish') expect(finished.has(event.choice)).to.equal(false);
    if (event.is === 'finish') finished.add(event.choice);
  }
  expect([...open]).to.deep.equal([]);
}

const textPart = text.map((said) => ({ is: 'text', text: said }) as const);
const bytes = fc.base64String({ minLength: 4, maxLength: 12 });
const imagePart = fc.record({
  is: fc.constant('image' as const),
  source: fc.oneof(fc.record({ base64: bytes, mediaType: fc.constant('image/png') }), fc.record({ url: fc.webUrl() })),
});
const documentPart = fc.record({
  is: fc.constant('document' as const),
  source: fc.record({ base64: bytes, mediaType: fc.constant('application/pdf') }),
  name,
});
const audioPart = fc.record({ is: fc.constant('audio' as const), base64: bytes, format: fc.constant('wav') });

/** A user's turn. Chat joins adjacent texts, so a turn has one text or other parts. */
const userTurn: fc.Arbitrary<Turn> = fc
  .oneof(
    textPart.map((part) => [part]),
    fc
      .tuple(fc.oneof(imagePart, documentPart, audioPart), fc.array(fc.oneof(textPart, imagePart), { maxLength: 3 }))
      .map(([first, others]) => [first, ...others]),
  )
  .map((parts) => ({ role: 'user', parts }));

const callPart = fc.oneof(
  fc.record({ is: fc.constant('tool_call' as const), name, input: json }),
  fc.record({ is: fc.constant('tool_call' as const), name, input: fc.string(), isText: fc.constant(true) }),
);

/** An answer of the assistant, followed by the results of its tool calls. */
const exchange: fc.Arbitrary<readonly Turn[]> = fc
  .record({
    said: fc.option(textPart),
    calls: fc.array(callPart, { maxLength: 3 }),
    results: fc.array(text),
    next: userTurn,
  })
  .map(({ said, calls, results, next }) => {
    const called = calls.map((call, at) => ({ ...call, id: `${call.name}_${at}` }));
    const parts: readonly Part[] = [...(said === null && called.length > 0 ? [] : [said ?? EMPTY]), ...called];
    const answered: readonly Part[] = called.map(({ id, ...call }, at) => ({
      is: 'tool_result',
      id,
      parts: [{ is: 'text', text: results[at] ?? '' }],
      ...('isText' in call && { isText: true }),
    }));
    const answer: Turn = { role: 'assistant', parts };
    return called.length === 0 ? [answer, next] : [answer, { role: 'user', parts: answered }, next];
  });

const EMPTY = { is: 'text', text: '' } as const;

function unique(exchanges: readonly (readonly Turn[])[]): readonly Turn[] {
  return exchanges.flatMap((turns, at) =>
    turns.map((turn) => ({
      ...turn,
      parts: turn.parts.map((part) => ('id' in part ? { ...part, id: `${part.id}_${at}` } : part)),
    })),
  );
}

function conversations(): fc.Arbitrary<Conversation> {
  const tool = fc.oneof(
    fc.record({
      name,
      input: fc.constant('json' as const),
      schema: fc.constant({ type: 'object' }),
      strict: fc.boolean(),
    }),
    fc.record({ name, input: fc.constant('text' as const), format: fc.constant({ type: 'grammar', syntax: 'lark' }) }),
  );
  const toolChoice = fc.constantFrom('auto' as const, 'none' as const, 'required' as const);
  return fc
    .record({
      instructions: fc.array(textPart, { maxLength: 1 }),
      first: userTurn,
      exchanges: fc.array(exchange, { maxLength: 3 }),
      tools: fc.array(tool, { maxLength: 2 }),
      toolChoice,
      settings: fc.record(
        {
          parallelTools: fc.boolean(),
          outputFormat: fc.oneof(fc.constant({ is: 'json' as const }), schemaFormat),
          maxTokens: fc.integer({ min: 1, max: 9_999 }),
          temperature: fc.double({ min: 0, max: 2, noNaN: true }).map((value) => value + 0),
          topP: fc.constantFrom(0.25, 1),
          frequencyPenalty: fc.constantFrom(-1, 1.5),
          presencePenalty: fc.constantFrom(-1, 1.5),
          seed: fc.nat(),
          reasoning: fc.record({ effort: fc.constantFrom('none' as const, 'low' as const, 'max' as const) }),
        },
        { requiredKeys: [] },
      ),
      choices: fc.integer({ min: 1, max: 3 }),
      stream: fc.boolean(),
      stop: fc.array(text, { maxLength: 4 }),
    })
    .map(({ first, exchanges, tools, toolChoice: chosen, settings, ...rest }) => ({
      ...rest,
      ...settings,
      ...(tools.length === 0 ? { parallelTools: undefined } : { toolChoice: chosen }),
      tools,
      turns: [first, ...unique(exchanges)],
    }));
}

const schemaFormat = fc.record({
  is: fc.constant('schema' as const),
  name,
  schema: fc.constant({ type: 'object' }),
  strict: fc.boolean(),
});

/** Answers of several choices whose events interleave. Parts do not overlap, except tool calls with JSON. */
function answers({ isText = true } = {}): fc.Arbitrary<readonly AnswerEvent[]> {
  const part = fc.oneof(
    fc.record({ is: fc.constant('text' as const), pieces: fc.array(text, { minLength: 1, maxLength: 3 }) }),
    fc.record({ is: fc.constant('refusal' as const), pieces: fc.array(text, { minLength: 1, maxLength: 3 }) }),
    fc.record({ is: fc.constant('reasoning' as const), pieces: fc.array(text, { maxLength: 2 }) }),
    fc.record({ is: fc.constant('tool_call' as const), name, pieces: json.map(halves), isText: fc.constant(false) }),
    ...(isText
      ? [fc.record({ is: fc.constant('tool_call' as const), name, pieces: fc.array(text), isText: fc.constant(true) })]
      : []),
  );
  const choice = fc.record({
    parts: fc.array(part, { maxLength: 4 }),
    reason: fc.constantFrom('length' as const, 'filter' as const, 'end' as const),
  });
  return fc
    .tuple(fc.array(choice, { minLength: 1, maxLength: 2 }), fc.array(fc.boolean(), { minLength: 60, maxLength: 60 }))
    .map(([choices, turns]) =>
      interleaved(
        choices.map((each, index) => eventsOf(each, index)),
        turns,
      ),
    );
}

function halves(whole: string): readonly string[] {
  return [whole.slice(0, whole.length / 2), whole.slice(whole.length / 2)];
}

interface GivenChoice {
  readonly parts: readonly {
    readonly is: 'text' | 'refusal' | 'reasoning' | 'tool_call';
    readonly pieces: readonly string[];
    readonly name?: string;
    readonly isText?: boolean;
  }[];
  readonly reason: 'length' | 'filter' | 'end';
}

function eventsOf({ parts, reason }: GivenChoice, choice: number): readonly AnswerEvent[] {
  const said = parts.flatMap(({ is, pieces, name: called = '', isText = false }, place): readonly AnswerEvent[] => {
    const at = choice * 10 + place;
    const call = { is: 'tool_call', id: `call_${at}`, name: called, ...(isText && { isText }) } as const;
    return [
      { is: 'open', at, choice, part: is === 'tool_call' ? call : { is } },
      ...pieces.map((piece) => ({ is: 'add', at, text: piece }) as const),
      { is: 'close', at },
    ];
  });
  const isCalling = reason === 'end' && parts.some(({ is }) => is === 'tool_call');
  return [...said, { is: 'finish', choice, reason: isCalling ? 'tool_calls' : reason }];
}

function interleaved(choices: readonly (readonly AnswerEvent[])[], turns: readonly boolean[]): readonly AnswerEvent[] {
  const [first = [], second = []] = choices.map((events) => [...events]);
  const mixed = turns.flatMap((isFirst) => (isFirst ? first : second).splice(0, 1));
  return [{ is: 'begin' }, ...mixed, ...first, ...second, { is: 'end' }];
}
