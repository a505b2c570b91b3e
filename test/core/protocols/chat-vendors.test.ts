import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { asArray, asObject } from '../../../core/base/json-values';
import type { Candidate } from '../../../core/catalog/catalog';
import { roughPrice } from '../../../core/catalog/price';
import {
  countsIn,
  mergeUsage,
  outputTokens,
  totalInputTokens,
  UNKNOWN_USAGE,
  type Usage,
} from '../../../core/catalog/usage';
import { NoteReader } from '../../../core/protocols/notes';
import { Translation } from '../../../core/protocols/translation';
import chat from '../../../plugins/upstreams/chat';
import { sampleModel, sampleUpstream } from '../../support/catalog-samples';
import { callOf } from '../../support/golden';

type Json = Readonly<Record<string, unknown>>;

interface Answer {
  readonly is: string;
  readonly message?: Json;
  readonly usage?: Json;
  readonly finish_reason?: string;
  /** Further members of the answer. */
  readonly more?: Json;
  /** The chunks of a stream, in place of the parts of a whole answer. */
  readonly chunks?: readonly Json[];
  readonly charged: Readonly<Record<string, number>> | 'estimate';
  readonly flags?: readonly ('unknown' | 'suspect')[];
  readonly reasoning?: number;
  readonly blocks?: readonly string[];
  readonly stop?: string;
}

interface Refusal {
  readonly is: string;
  readonly status?: number;
  readonly body: unknown;
  readonly type?: string;
  readonly message: string;
}

interface Vendor {
  readonly settings?: Json;
  readonly answers: readonly Answer[];
  readonly reasons: Readonly<Record<string, string>>;
  readonly broken?: readonly string[];
  readonly errors: readonly Refusal[];
}

const FILE = join(__dirname, '../../fixtures/chat-vendors.yml');
const VENDORS = parse(readFileSync(FILE, 'utf8')) as Readonly<Record<string, Vendor>>;

const HI = { role: 'assistant', content: 'Hi.' };
/** The estimate of the prompt, for reports that say nothing of it. */
const ESTIMATE = 7;

for (const [vendor, { settings = {}, answers, reasons, broken = [], errors }] of Object.entries(VENDORS))
  describe(`an answer of ${vendor} in the Chat protocol`, () => {
    for (const answer of answers)
      it(`is charged and translated for clients of Messages: ${answer.is}`, () => {
        const chunks = answer.chunks ?? chunksOf(answer);
        const forms = {
          chunks: streamed(settings, chunks),
          ...(answer.chunks === undefined && { body: whole(settings, bodyOf(answer)) }),
        };
        for (const [form, { native, translated, message }] of Object.entries(forms)) {
          const { charged, flags = [], reasoning, blocks = ['text'], stop = 'end_turn' } = answer;
          for (const usage of [native, translated]) {
            const shown = charged === 'estimate' ? withoutZeros(countsIn(usage)) : countsIn(usage);
            expect(withoutZeros(shown), form).to.deep.equal(charged === 'estimate' ? {} : charged);
            expect(flagsOf(usage), form).to.deep.equal(flags);
            expect(usage.reasoning, form).to.equal(reasoning);
          }
          expect(
            asArray(message['content']).map((block) => asObject(block)?.['type']),
            form,
          ).to.deep.equal(blocks);
          expect(message['stop_reason'], form).to.equal(stop);
          const counts = asObject(message['usage']) ?? {};
          const [input, output] =
            charged === 'estimate' ? [ESTIMATE, 1] : [totalInputTokens(native), outputTokens(native)];
          const sum = ['input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens'].reduce(
            (all, name) => all + Number(counts[name]),
            0,
          );
          expect([sum, counts['output_tokens']], form).to.deep.equal([input, output]);
        }
      });

    for (const [reason, stop] of Object.entries(reasons))
      it(`reaches clients of Messages with the stop reason ${stop} if its own stop reason is ${reason}`, () => {
        const { message } = whole(settings, bodyOf({ finish_reason: reason }));
        expect(message['stop_reason']).to.equal(stop);
      });

    for (const reason of broken)
      it(`is an error if the stop reason is ${reason}`, () => {
        expect(
          open(settings).body(bodyOf({ finish_reason: reason, message: { ...HI, content: '' } })).error,
        ).not.to.equal(undefined);
        const notes = chunksOf({ finish_reason: reason }).map((chunk) => open(settings).event(eventOf(chunk)).note);
        expect(notes.some(({ error }) => error !== undefined)).to.equal(true);
      });

    for (const { is, status = 400, body, type = 'invalid_request_error', message } of errors)
      it(`becomes an error with the type and text of the Messages protocol if it reports an error: ${is}`, () => {
        const told = open(settings).error(body, status);
        expect(asObject(told.body['error'])?.['type']).to.equal(type);
        expect(asObject(told.body['error'])?.['message']).to.include(message);
        expect(told.status).to.equal(status);
      });
  });

function bodyOf({ message = HI, finish_reason = 'stop', usage, more }: Partial<Answer>): Json {
  return {
    id: 'c',
    object: 'chat.completion',
    model: 'm',
    choices: [{ index: 0, message, finish_reason }],
    usage,
    ...more,
  };
}

/** Returns a stream with the parts of an answer, and its usage in the last chunk. */
function chunksOf({ message = HI, finish_reason = 'stop', usage, more }: Partial<Answer>): readonly Json[] {
  const calls = asArray(message['tool_calls']).map((call, index) => ({ index, ...asObject(call) }));
  const delta = { ...message, ...(calls.length > 0 && { tool_calls: calls }) };
  return [
    { choices: [{ index: 0, delta }] },
    { choices: [{ index: 0, delta: {}, finish_reason }] },
    { choices: [], usage, ...more },
  ];
}

interface Read {
  readonly native: Usage;
  readonly translated: Usage;
  /** The message that a client of Messages gets. */
  readonly message: Json;
}

function whole(settings: Json, body: Json): Read {
  const { usage: translated, written } = open(settings).body(body);
  return { native: new NoteReader('chat', settings).body(body).usage, translated, message: written };
}

function streamed(settings: Json, chunks: readonly Json[]): Read {
  const events = [...chunks.map(eventOf), { name: undefined, data: '[DONE]' }];
  const reader = new NoteReader('chat', settings);
  const gathered = open(settings).gathered(events);
  const native = events.map((event) => reader.event(event).usage ?? UNKNOWN_USAGE).reduce(mergeUsage, UNKNOWN_USAGE);
  return { native, translated: gathered.usage, message: gathered.written };
}

function eventOf(chunk: Json) {
  return { name: undefined, data: JSON.stringify({ id: 'c', object: 'chat.completion.chunk', model: 'm', ...chunk }) };
}

function open(adapterSettings: Json): Translation {
  const model = sampleModel('m');
  const upstream = { ...sampleUpstream('up-1', [model], { adapters: [chat] }), adapterSettings };
  const candidate: Candidate = { upstream, model, adapter: chat, rough: roughPrice(model.price), dialect: 'chat' };
  const asked = callOf({ instructions: [], turns: [], tools: [], choices: 1, stream: true, stop: [] }, {});
  return new Translation(candidate, {
    requestId: 'req',
    protocol: 'messages',
    asked,
    request: {},
    inputTokens: ESTIMATE,
  });
}

function flagsOf({ unknown, suspect }: Usage): readonly string[] {
  return [...(unknown === undefined ? [] : ['unknown']), ...(suspect === undefined ? [] : ['suspect'])];
}

function withoutZeros(counts: Json | ReturnType<typeof countsIn>): Json {
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0));
}
