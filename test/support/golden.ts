import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObject } from '../../core/base/json-values';
import type { AnswerEvent, AnswerReader, AnswerWriter, WrittenCall } from '../../core/catalog/answer';
import { type Conversation, NotTranslatable } from '../../core/catalog/conversation';
import type { TranslatedCall } from '../../core/catalog/upstream';
import { type Usage, usageOf } from '../../core/catalog/usage';
import { seal } from '../../core/protocols/seal';

/**
 * Golden pairs: `test/fixtures/dialects/<dialect>/<kind>/<name>.json` has an input and its result. `GOLDEN=write` writes the results, which a
 * developer reviews.
 */
export const KINDS = [
  'request-read',
  'request-written',
  'answer-read',
  'stream-read',
  'answer-written',
  'stream-written',
] as const;
export type Kind = (typeof KINDS)[number];

/** A pair of an input and its result. Writers of requests need a call, writers of answers need options. */
interface Pair {
  /** A sentence about what the pair shows. */
  readonly shows: string;
  readonly given: unknown;
  /** For `request-written`: the call besides its conversation. For `*-written`: the client's request. */
  readonly call?: JsonObject;
  expected?: unknown;
}

/** The functions of one dialect under test. A dialect of upstreams only has no client's side. */
export interface Subject {
  readRequest?(body: JsonObject): Conversation;
  writeRequest(call: TranslatedCall): unknown;
  openReader(call: TranslatedCall): AnswerReader;
  openWriter?(call: WrittenCall): AnswerWriter;
}

const ROOT = join(__dirname, '../fixtures/dialects');

export function pairsOf(dialect: string): { readonly kind: Kind; readonly name: string; readonly path: string }[] {
  return KINDS.flatMap((kind) => {
    const folder = join(ROOT, dialect, kind);
    return filesIn(folder).map((file) => ({ kind, name: file.replace('.json', ''), path: join(folder, file) }));
  });
}

function filesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    return [];
  }
}

export function readPair(path: string): Pair {
  return JSON.parse(readFileSync(path, 'utf8')) as Pair;
}

/** Returns the result of a pair as JSON, and writes it into the file if `GOLDEN` says so. */
export function outcomeOf(
  subject: Subject,
  kind: Kind,
  path: string,
): { readonly actual: unknown; readonly expected: unknown } {
  const pair = readPair(path);
  const actual: unknown = JSON.parse(JSON.stringify(outcome(subject, kind, pair), showUsage));
  if (process.env['GOLDEN'] === 'write')
    writeFileSync(path, `${JSON.stringify({ ...pair, expected: actual }, null, 2)}\n`);
  return { actual, expected: process.env['GOLDEN'] === 'write' ? actual : pair.expected };
}

function outcome(subject: Subject, kind: Kind, { given, call = {} }: Pair): unknown {
  try {
    switch (kind) {
      case 'request-read':
        return subject.readRequest?.(given as JsonObject);
      case 'request-written':
        return subject.writeRequest(callOf(given as Conversation, call));
      case 'answer-read':
        return subject.openReader(callOf(EMPTY, call)).body(given);
      case 'stream-read':
        return readStream(subject.openReader(callOf(EMPTY, call)), given as readonly StreamedEvent[]);
      case 'answer-written':
        return subject.openWriter?.(writtenCall(call)).body(eventsOf(given));
      case 'stream-written': {
        const writer = subject.openWriter?.(writtenCall(call));
        return eventsOf(given).flatMap((event) => (writer?.write(event) ?? []).map(shown));
      }
    }
  } catch (error) {
    if (error instanceof NotTranslatable) return { refused: error.what, why: error.why };
    throw error;
  }
}

/** An event with `data` as an object, which is easier to read in a file. */
interface StreamedEvent {
  readonly name?: string;
  readonly data: unknown;
}

function readStream(reader: AnswerReader, events: readonly StreamedEvent[]): readonly AnswerEvent[] {
  const answerEvents = events.flatMap(({ name, data }) =>
    reader.event({ name, data: typeof data === 'string' ? data : JSON.stringify(data) }),
  );
  return [...answerEvents, ...reader.end()];
}

function shown({ data, ...event }: { readonly data: string }): unknown {
  return { ...event, data: data.startsWith('{') ? (JSON.parse(data) as unknown) : data };
}

const EMPTY: Conversation = { instructions: [], turns: [], tools: [], choices: 1, stream: true, stop: [] };

export function callOf(conversation: Conversation, call: JsonObject): TranslatedCall {
  return {
    model: 'model-1',
    maxOutput: 8_000,
    upstream: 'up-1',
    ...call,
    conversation: { ...EMPTY, ...conversation },
  };
}

export function writtenCall(request: JsonObject): WrittenCall {
  return {
    requestId: 'req-1',
    model: 'model-1',
    createdAt: 1_790_000_000,
    request,
    seal: (value) => seal({ upstream: 'up-1', dialect: 'other', value }),
  };
}

/** Reads events from a file, in which the usage is an object of counts. */
function eventsOf(given: unknown): readonly AnswerEvent[] {
  return (given as readonly (AnswerEvent & { usage?: Record<string, number> })[]).map((event) => {
    if (event.kind !== 'usage') return event;
    const { reasoning, ...counts } = event.usage as unknown as Record<string, number>;
    return { ...event, usage: { ...usageOf(counts), ...(reasoning !== undefined && { reasoning }) } };
  });
}

function showUsage(key: string, value: unknown): unknown {
  if (key !== 'usage' || typeof value !== 'object' || value === null || !('passes' in value)) return value;
  const { passes, ...notes } = value as Usage;
  return { ...Object.fromEntries(passes[0]?.counts ?? []), ...notes };
}
