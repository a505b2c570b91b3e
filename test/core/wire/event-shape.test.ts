import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type EventNote, type SseEvent, type UpstreamAdapter, withDeltas } from '../../../core/catalog/upstream';
import { EventReader } from '../../../core/wire/event-reader';
import chat from '../../../plugins/upstreams/chat';
import messages from '../../../plugins/upstreams/messages';
import responses from '../../../plugins/upstreams/responses';

const ADAPTERS = { chat, messages, responses };
const FIXTURES = join(__dirname, '../../fixtures');

type Protocol = keyof typeof ADAPTERS;

/** One event of each protocol whose content is `text`, as JSON has it between its quotes. */
const SAYS: Readonly<Record<Protocol, (text: string, number: number) => string>> = {
  chat: (text, number) =>
    `data: {"id":"c","created":${1_790_000_000 + number},"choices":[{"index":0,"delta":{"content":"${text}"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"${'x'.repeat(number % 5)}"}\n\n`,
  messages: (text) =>
    `event: content_block_delta\ndata: {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "${text}"}}\n\n`,
  responses: (text, number) =>
    `event: response.output_text.delta\r\ndata: {"type":"response.output_text.delta","sequence_number":${number},"item_id":"msg","delta":"${text}","logprobs":[]}\r\n\r\n`,
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

/** Returns the notes of a stream in these pieces, and how many of its events the adapter parsed. */
function read(adapter: UpstreamAdapter, pieces: readonly Buffer[]): { notes: EventNote[]; asked: number; raw: string } {
  let asked = 0;
  const readEvent = (event: SseEvent) => {
    asked += 1;
    return adapter.readEvent(event);
  };
  const { deltas } = adapter.readEvent;
  const counting = { readEvent: deltas === undefined ? readEvent : withDeltas(deltas, readEvent) };
  const reader = new EventReader(counting, 1);
  const events = pieces.flatMap((piece) => reader.read(piece));
  const raws = [...events.map(({ raw }) => raw), reader.rest() ?? Buffer.alloc(0)];
  return { notes: events.map(({ note }) => note), asked, raw: Buffer.concat(raws).toString('latin1') };
}

/** Returns the notes of an adapter without the short cut, which parses every event. */
function readAll(adapter: UpstreamAdapter, pieces: readonly Buffer[]) {
  return read({ ...adapter, readEvent: (event) => adapter.readEvent(event) }, pieces);
}

describe('a stream event that only adds text', () => {
  for (const [protocol, adapter] of Object.entries(ADAPTERS)) {
    const says = SAYS[protocol as Protocol];

    it(`is not parsed again in ${protocol}`, () => {
      const pieces = ['one', 'two', ' and three', 'vier größer'].map((text, at) => Buffer.from(says(text, at)));
      const { notes, asked } = read(adapter, pieces);
      assert.equal(asked, 1);
      assert.deepEqual(notes, readAll(adapter, pieces).notes);
    });

    it(`gives the same notes in ${protocol} as a parsed one, after any events and in any pieces`, () => {
      const events = [...TEXTS.map((text, at) => says(text, at)), ...ODD[protocol as Protocol]].map((text) =>
        Buffer.from(text),
      );
      const broken = Buffer.from(says('abc', 1));
      broken[broken.indexOf('abc')] = 0xff;
      events.push(broken);
      for (const before of events) {
        for (const event of events) {
          const stream = [before, event, event, before];
          const expected = readAll(adapter, stream);
          const inOne = Buffer.concat(stream);
          for (const pieces of [stream, [inOne], halves(inOne, before.length + 7), halves(inOne, inOne.length - 1)]) {
            const { notes, raw } = read(adapter, pieces);
            assert.deepEqual(notes, expected.notes, `${before.toString()}${event.toString()}`);
            assert.equal(raw, expected.raw);
          }
        }
      }
    });

    it(`gives the same notes in the recordings of ${protocol}`, () => {
      for (const file of readdirSync(join(FIXTURES, protocol)).filter((name) => name.endsWith('.sse'))) {
        const bytes = readFileSync(join(FIXTURES, protocol, file));
        const twice = [bytes, bytes];
        assert.deepEqual(read(adapter, twice).notes, readAll(adapter, twice).notes, file);
      }
    });
  }
});

function halves(bytes: Buffer, at: number): Buffer[] {
  return [bytes.subarray(0, at), bytes.subarray(at)];
}
