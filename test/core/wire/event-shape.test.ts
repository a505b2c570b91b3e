import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { EventNote } from '../../../core/catalog/upstream';
import { EventReader } from '../../../core/wire/event-reader';
import { EventShapes } from '../../../core/wire/event-shape';
import { cut } from '../../fuzz/mutate';
import { seeded } from '../../support/random';

const PROTOCOLS = ['chat', 'messages', 'responses'] as const;
const FIXTURES = join(__dirname, '../../fixtures');

type Protocol = (typeof PROTOCOLS)[number];

/** One event of each protocol whose content is `text`, as JSON has it between its quotes. */
const SAYS: Readonly<Record<Protocol, (text: string, number: number) => string>> = {
  chat: (text, number) =>
    `data: {"id":"c","created":${1_790_000_000 + number},"choices":[{"index":0,"delta":{"content":"${text}"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"${'x'.repeat(number % 5)}"}\n\n`,
  messages: (text) =>
    `event: content_block_delta\ndata: {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "${text}"}}\n\n`,
  responses: (text, number) =>
    `event: response.output_text.delta\r\ndata: {"type":"response.output_text.delta","sequence_number":${number},"item_id":"msg","delta":"${text}","logprobs":[]}\r\n\r\n`,
};

/** The same for reasoning and the input of a call, whose events come between those of the text. */
const ALSO_SAYS: Readonly<Record<Protocol, readonly string[]>> = {
  chat: [
    'data: {"id":"c","choices":[{"index":0,"delta":{"reasoning_content":"why"},"finish_reason":null}]}\n\n',
    'data: {"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"a\\":"}}]}}]}\n\n',
  ],
  messages: [
    'event: content_block_delta\ndata: {"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"why"}}\n\n',
    'event: content_block_delta\ndata: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\\"a\\":"}}\n\n',
  ],
  responses: [
    'event: response.reasoning_text.delta\ndata: {"type":"response.reasoning_text.delta","sequence_number":1,"item_id":"rs","delta":"why"}\n\n',
    'event: response.function_call_arguments.delta\ndata: {"type":"response.function_call_arguments.delta","sequence_number":1,"output_index":1,"delta":"{\\"a\\":"}\n\n',
  ],
};

/** Texts that an adapter might not read byte by byte. */
const TEXTS = [
  'Hello',
  ' wörld',
  '日本',
  '😀',
  '',
  ' ',
  '\\n',
  'a\\"b\\\\\\/\\t',
  '\\x',
  'ends in \\',
  '\\u0041',
  '\\ud83d',
  '"},{',
  'a: NaN, b',
  '\u0001',
  '\ud800',
];

/** Events that look like the previous ones and have another meaning. */
const ODD: Readonly<Record<Protocol, readonly string[]>> = {
  chat: [
    'data: {"id":"c","created":01,"choices":[{"index":0,"delta":{"content":"a"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":""}\n\n',
    'data: {"id":"c","created":1.5e3,"choices":[{"index":0,"delta":{"content":"a"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":""}\n\n',
    'data: {"choices":[{"delta":{"reasoning":"abc","reasoning_content":"abc"}}]}\n\n',
    'data: {"choices":[{"delta":{"reasoning":"abc","reasoning_content":"a"}}]}\n\n',
    'data: {"choices":[{"delta":{"content":"abc"},"logprobs":{"logprob":-Infinity}}]}\n\n',
    'data: {"choices":[{"delta":{"content":"a: NaN, b"},"logprobs":{"logprob":-Infinity}}]}\n\n',
    'data: {"choices":[{"delta":{"con\\u0074ent":"abc"},"x":{"text":"abc"}}]}\n\n',
    'data: {"choices":[{"delta":{"con\\u0074ent":"abc"},"x":{"text":"abcd"}}]}\n\n',
    'data: {"choices":[{"delta":{"content" : "abc"}}]}\n\n',
    'data: {"choices":[{"delta":{"content":"abc"}}],"error":{"message":"text"}}\n\n',
    ': "content":"abc"\ndata: {"choices":[{"delta":{"content":"abc"}}]}\n\n',
    ': "content":"abcdef"\ndata: {"choices":[{"delta":{"content":"abc"}}]}\n\n',
    'data: {"choices":[{"delta":\ndata: {"content":"abc"}}]}\n\n',
    'data: {"choices":[{"delta":{"content":"abc",\ndata: "x":{"text":"abc"}}}]}\n\n',
    'data: {"choices":[{"delta":{"content":"abc",\ndata: "x":{"text":"abcd"}}}]}\n\n',
    'data: {"choices":[{"delta":{"content":"abc"},"finish_reason":"stop"}]}\n\n',
    'data: {"choices":[{"delta":{"content":"abc"}}],"usage":{"prompt_tokens":1,"completion_tokens":2}}\n\n',
    'data: {"choices":[{"delta":{"content":"abc"}}]\n\n',
  ],
  messages: [
    'event: ping\ndata: {"type": "ping"}\n\n',
    'event: content_block_delta\ndata: {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "abc"}}\n\n',
    'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "abc"}}\n\n',
    'event: content_block_start\ndata: {"type":"content_block_start","content_block":{"type":"tool_use","input":{"text":"abc"}}}\n\n',
  ],
  responses: [
    'event: response.output_text.done\r\ndata: {"type":"response.output_text.done","sequence_number":3,"item_id":"msg","delta":"abc","logprobs":[]}\r\n\r\n',
    'event: error\r\ndata: {"type":"error","message":"abc"}\r\n\r\n',
    'data: [DONE]\r\n\r\n',
  ],
};

/** Returns the notes of a stream in these pieces, and how many of its events were parsed and watched. */
function read(protocol: Protocol, pieces: readonly Buffer[]) {
  let asked = 0;
  const reader = new EventReader(protocol, 1, () => {
    asked += 1;
  });
  const events = pieces.flatMap((piece) => reader.read(piece));
  const raws = [...events.map(({ raw }) => raw), reader.rest() ?? Buffer.alloc(0)];
  return { notes: inRuns(events.map(({ note }) => note)), asked, raw: Buffer.concat(raws).toString('latin1') };
}

/** Adds up notes that follow each other and only say how much text came. */
function inRuns(notes: readonly EventNote[]): EventNote[] {
  const runs: EventNote[] = [];
  for (const note of notes) {
    const before = runs.at(-1);
    const contentBytes = (before?.contentBytes ?? 0) + (note.contentBytes ?? 0);
    const sum = { content: true, contentBytes };
    if (isText(before) && isText(note)) runs[runs.length - 1] = sum;
    else runs.push(note);
  }
  return runs;
}

function isText(note: EventNote | undefined): boolean {
  return (
    isDeepStrictEqual(note, { content: true, contentBytes: note?.contentBytes }) && note?.contentBytes !== undefined
  );
}

/** Returns the notes of a stream of which every event is parsed. */
function readAll(protocol: Protocol, pieces: readonly Buffer[]) {
  const { find } = EventShapes.prototype;
  EventShapes.prototype.find = () => false;
  try {
    return read(protocol, pieces);
  } finally {
    EventShapes.prototype.find = find;
  }
}

describe('a stream event that only adds text', () => {
  for (const protocol of PROTOCOLS) {
    const says = SAYS[protocol];

    it(`is parsed as JSON only once per kind in ${protocol}, and adjacent events of a kind are read together`, () => {
      const kinds = [says('one', 0), ...ALSO_SAYS[protocol]];
      const more = ['two', ' and\\nthree', 'vier größer'].flatMap((text, at) => [
        says(text, at + 1),
        ...ALSO_SAYS[protocol],
      ]);
      const first = kinds.map((kind) => Buffer.from(kind));
      const chunk = Buffer.from(more.join(''));
      assert.equal(read(protocol, [...first, chunk]).asked, kinds.length);
      const reader = new EventReader(protocol, 1);
      for (const each of first) reader.read(each);
      const [run, ...others] = reader.read(chunk);
      assert.deepEqual([run?.raw, others], [chunk, []]);
      assert.equal(run?.event.data, more.at(-1)?.split('data: ')[1]?.trim());
    });

    it(`gives the gateway the same facts in ${protocol} as a parsed event, in any order and any chunks`, () => {
      const texts = [...TEXTS.map((text, at) => says(text, at)), ...ALSO_SAYS[protocol]];
      for (let seed = 1; seed <= 300; seed += 1) {
        const random = seeded(seed);
        const common = [random.pick(texts), random.pick(texts), random.pick(texts)];
        const stream = Array.from({ length: 20 }, () => random.pick(random.below(4) === 0 ? texts : common));
        stream.push(random.pick(ODD[protocol]));
        const bytes = Buffer.from(stream.join(''));
        const { notes, raw } = read(protocol, cut(random, bytes));
        const expected = readAll(protocol, [bytes]);
        assert.deepEqual(notes, expected.notes, `seed ${seed}`);
        assert.equal(raw, bytes.toString('latin1'), `seed ${seed}`);
      }
    });

    it(`gives the gateway the same facts in ${protocol} as a parsed event, after any other event and in any chunks`, () => {
      const events = [...TEXTS.map((text, at) => says(text, at)), ...ODD[protocol]].map((text) => Buffer.from(text));
      const broken = Buffer.from(says('abc', 1));
      broken[broken.indexOf('abc')] = 0xff;
      events.push(broken);
      for (const before of events) {
        for (const event of events) {
          const stream = [before, event, event, before];
          const expected = readAll(protocol, stream);
          const inOne = Buffer.concat(stream);
          for (const pieces of [stream, [inOne], halves(inOne, before.length + 7), halves(inOne, inOne.length - 1)]) {
            const { notes, raw } = read(protocol, pieces);
            assert.deepEqual(notes, expected.notes, `${before.toString()}${event.toString()}`);
            assert.equal(raw, expected.raw);
          }
        }
      }
    });

    it(`gives the gateway the same facts as a parsed event in the recorded streams of ${protocol}`, () => {
      for (const file of readdirSync(join(FIXTURES, protocol)).filter((name) => name.endsWith('.sse'))) {
        const bytes = readFileSync(join(FIXTURES, protocol, file));
        const twice = [bytes, bytes];
        assert.deepEqual(read(protocol, twice).notes, readAll(protocol, twice).notes, file);
      }
    });
  }
});

function halves(bytes: Buffer, at: number): Buffer[] {
  return [bytes.subarray(0, at), bytes.subarray(at)];
}
