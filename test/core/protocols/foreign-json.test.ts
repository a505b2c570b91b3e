import { expect } from 'chai';
import { asObject, type JsonObject, memberOf } from '../../../core/base/json-values';
import { type Conversation, NotTranslatable } from '../../../core/catalog/conversation';
import { jsonOf, parseRaw } from '../../../core/http/raw-json';
import { CHAT, MESSAGES, RESPONSES } from '../../../core/protocols/client-dialects';
import { writeConverseRequest as writeConverse } from '../../../core/protocols/converse/request';
import { GeminiReader } from '../../../core/protocols/gemini/answer';
import { writeGeminiRequest as writeGemini } from '../../../core/protocols/gemini/request';
import { callOf, writtenCall } from '../../support/golden';
import { seeded } from '../../support/random';

/** Where each dialect has the input of the first call, and the schema of the first tool. */
const TARGETS = {
  messages: {
    write: MESSAGES.writeRequest,
    input: ['messages', 1, 'content', 0, 'input'],
    schema: ['tools', 0, 'input_schema'],
  },
  gemini: {
    write: writeGemini,
    input: ['contents', 1, 'parts', 0, 'functionCall', 'args'],
    schema: ['tools', 0, 'functionDeclarations', 0, 'parametersJsonSchema'],
  },
  converse: {
    write: writeConverse,
    input: ['messages', 1, 'content', 0, 'toolUse', 'input'],
    schema: ['toolConfig', 'tools', 0, 'toolSpec', 'inputSchema', 'json'],
  },
  chat: {
    write: CHAT.writeRequest,
    input: ['messages', 1, 'tool_calls', 0, 'function', 'arguments'],
    schema: ['tools', 0, 'function', 'parameters'],
  },
  responses: { write: RESPONSES.writeRequest, input: ['input', 1, 'arguments'], schema: ['tools', 0, 'parameters'] },
} as const;

/** What parsing and printing changes: long and short numbers, the order of names, white space, escapes. */
const INPUT = '{"id": 1234567890123456789,"2":1.0,"1":1e2, "text":"\\u00e9\\/\\ud800","long":"LONG"}'.replace(
  'LONG',
  'x'.repeat(5_000),
);
const SCHEMA = `{"type":"object","properties":{"id":{"maximum":12345678901234567890.0,"default":${INPUT}}}}`;

const body = (json: string) => parseRaw(Buffer.from(json)) as JsonObject;

/** One request in each dialect of clients: a call with `INPUT`, of a tool with `SCHEMA`. */
const REQUESTS: Readonly<Record<string, () => Conversation>> = {
  messages: () =>
    MESSAGES.readRequest(
      body(`{"messages":[{"role":"user","content":"Hello"},
        {"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"t","input":${INPUT}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"1"}]}],
        "tools":[{"name":"t","input_schema":${SCHEMA}}],"max_tokens":5}`),
    ),
  chat: () => fromChat(INPUT),
  responses: () => fromResponses(INPUT),
};

function fromResponses(input: string): Conversation {
  return RESPONSES.readRequest(
    body(`{"input":[{"role":"user","content":"Hello"},
      {"type":"function_call","call_id":"c1","name":"t","arguments":${JSON.stringify(input)}},
      {"type":"function_call_output","call_id":"c1","output":"1"}],
      "tools":[{"type":"function","name":"t","parameters":${SCHEMA}}]}`),
  );
}

function fromChat(input: string): Conversation {
  return CHAT.readRequest(
    body(`{"messages":[{"role":"user","content":"Hello"},
      {"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"t","arguments":${JSON.stringify(input)}}}]},
      {"role":"tool","tool_call_id":"c1","content":"1"}],
      "tools":[{"type":"function","function":{"name":"t","parameters":${SCHEMA}}}]}`),
  );
}

/** Events of answers with `INPUT` as an object. */
const ANSWERS = {
  gemini: {
    open: () => new GeminiReader(),
    events: [`{"candidates":[{"content":{"parts":[{"functionCall":{"id":"c","name":"t","args":${INPUT}}}]}}]}`],
  },
  chat: {
    open: CHAT.openReader,
    events: [
      `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"t","arguments": ${INPUT}}}]}}]}`,
    ],
  },
  messages: {
    open: MESSAGES.openReader,
    events: [
      '{"type":"message_start","message":{}}',
      `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"t","input": ${INPUT}}}`,
      '{"type":"content_block_stop","index":0}',
    ],
  },
};

describe('JSON that belongs to the client', () => {
  for (const [client, read] of Object.entries(REQUESTS))
    for (const [target, { write, input, schema }] of Object.entries(TARGETS)) {
      if (target === client) continue;
      it(`arrives unchanged from a client of ${client} at an upstream of ${target}`, () => {
        const written = write(callOf(read(), {}));
        const sent = memberOf(written, ...input);
        expect(typeof sent === 'string' ? sent : jsonOf(sent)).to.equal(INPUT);
        expect(jsonOf(memberOf(written, ...schema))).to.equal(SCHEMA);
        expect(jsonOf(written)).to.include(SCHEMA);
      });
    }

  for (const [upstream, { open, events }] of Object.entries(ANSWERS))
    it(`reaches the client unchanged from an event of an upstream of ${upstream}`, () => {
      const reader = open();
      const answerEvents = [...events.flatMap((data) => reader.event({ name: undefined, data })), ...reader.end()];
      expect(answerEvents.flatMap((event) => (event.kind === 'add' ? [event.text] : [])).join('')).to.equal(INPUT);
      const answered = [
        ...answerEvents,
        { kind: 'finish', choice: 0, reason: 'tool_calls' } as const,
        { kind: 'end' } as const,
      ];
      const message = MESSAGES.openWriter(writtenCall({})).body(answered);
      expect(jsonOf(message)).to.include(`"input":${INPUT}`);
      const search = { tools: [{ type: 'tool_search', execution: 'client' }] };
      const found = answered.map((event) =>
        event.kind === 'open' && event.part.kind === 'tool_call'
          ? { ...event, part: { ...event.part, name: 'tool_search' } }
          : event,
      );
      expect(jsonOf(RESPONSES.openWriter(writtenCall(search)).body(found))).to.include(`"arguments":${INPUT}`);
    });

  it('is rejected if it has a member name twice', () => {
    const twice = SCHEMA.replace('"default"', '"maximum"');
    for (const read of [
      () => MESSAGES.readRequest(body(`{"messages":[],"tools":[{"name":"t","input_schema":${twice}}]}`)),
      () => RESPONSES.readRequest(body(`{"input":"a","tools":[{"type":"function","name":"t","parameters":${twice}}]}`)),
    ])
      expect(read).to.throw(NotTranslatable, 'has a name twice');
  });

  const PLACES: ReadonlySet<string> = new Set(['input', 'args', 'arguments', 'status']);

  /** Texts that would leave their place, or that no parser or not every parser reads. */
  const BROKEN = [
    '{}}],"tools":[{"name":"evil"}],"x":[{"a":{',
    '{"a":1},"b":{"c":2}',
    '{"a":1}}',
    '{"a":"\n"}',
    '{"a":1,}',
    "{'a':1}",
    '{"a":NaN}',
    '{"a":01}',
    '{"a":1}//',
    '[{}]',
    '"{}"',
    '\ufeff{}',
    '{"a":1,"\\u0061":2}',
    '{"a":{"b":[{"c":1,"c":2}]}}',
    `{"a":${'['.repeat(256)}${']'.repeat(256)}}`,
    '{"a":"\\ud800',
    'null',
  ];

  function brokenBy(random: ReturnType<typeof seeded>): string {
    const one = random.pick(BROKEN);
    const other = random.pick(BROKEN);
    const cut = random.below(one.length + 1);
    return random.pick([one, one.slice(0, cut) + other, `{"a":${one}`, `${one},${other}`, one.slice(cut)]);
  }

  /** Returns the members of a body, without those that hold the text. */
  function planned(written: JsonObject): string {
    return JSON.stringify(written, (name, value) => (PLACES.has(name) ? 0 : value));
  }

  it('never adds a member to a request body: 1,000 invalid JSON texts are rejected or written as strings', () => {
    const random = seeded(7);
    const frames = Object.entries(TARGETS).map(
      ([target, { write }]) => [target, write, planned(write(callOf(fromChat('{}'), {})))] as const,
    );
    let refused = 0;
    for (let at = 0; at < 1_000; at += 1) {
      const text = brokenBy(random);
      const read = random.pick([fromChat, fromResponses]);
      for (const [target, write, frame] of frames) {
        let written: JsonObject;
        try {
          written = write(callOf(read(text), {})) as JsonObject;
        } catch (error) {
          expect(error, text).to.be.instanceOf(NotTranslatable).with.property('what', 'tool_call');
          refused += 1;
          continue;
        }
        const sent = asObject(JSON.parse(jsonOf(written)));
        if (target === 'chat' || target === 'responses') {
          const said = memberOf(sent, ...TARGETS[target].input);
          expect(said, text).to.equal(text.trim() === '' ? '{}' : text);
        } else expect(planned(sent ?? {}), text).to.equal(frame);
      }
    }
    expect(refused).to.be.above(2_000);
  });

  it('never adds a member to an answer: 1,000 invalid JSON texts of a model stay within their own member', () => {
    const random = seeded(8);
    const answers = [MESSAGES, CHAT, RESPONSES].flatMap((dialect) =>
      [[], [{ type: 'tool_search', execution: 'client' }]].map((tools) => (input: string) => {
        const called = {
          id: 'c',
          type: 'function',
          function: { name: tools.length > 0 ? 'tool_search' : 't', arguments: input },
        };
        const said = { choices: [{ index: 0, message: { tool_calls: [called] }, finish_reason: 'tool_calls' }] };
        const events = [...CHAT.openReader().body(said), { kind: 'end' } as const];
        return jsonOf(dialect.openWriter(writtenCall({ tools })).body(events));
      }),
    );
    const frames = answers.map((write) => planned(JSON.parse(write('{"a":1}'))));
    let refused = 0;
    for (let at = 0; at < 1_000; at += 1) {
      const text = brokenBy(random);
      for (const [place, write] of answers.entries()) {
        let written: string;
        try {
          written = write(text);
        } catch (error) {
          expect(String(error), text).to.include('is not a JSON object');
          refused += 1;
          continue;
        }
        expect(planned(JSON.parse(written)), text).to.equal(frames[place]);
      }
    }
    expect(refused).to.be.above(1_000);
  });
});
