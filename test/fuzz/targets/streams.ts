import assert from 'node:assert/strict';
import { fail } from '../../../core/base/errors';
import { asObject } from '../../../core/base/json-values';
import { log } from '../../../core/base/log';
import { parseJson } from '../../../core/base/parse-json';
import { AdapterFault } from '../../../core/catalog/guarded-adapter';
import type { EventNote, Protocol, SseEvent } from '../../../core/catalog/upstream';
import { mergeUsage, outputTokens, totalInputTokens, UNKNOWN_USAGE, type Usage } from '../../../core/catalog/usage';
import { Translation } from '../../../core/protocols/translation';
import { EventReader, type NotedEvent } from '../../../core/wire/event-reader';
import { SseEventTooLarge, SseSplitter } from '../../../core/wire/sse';
import { errorEvent } from '../../../policies/sse-relay/error-event';
import type { Random } from '../../support/random';
import { cut, mutateBytes, mutateJson } from '../mutate';
import {
  errorOf,
  geminiAnswers,
  type RandomAnswer,
  randomAnswer,
  TEXT_TOOL,
  writeAnswer,
} from '../translation/answers';
import { CANDIDATES, CLIENTS, type Client, MODEL, UPSTREAM, UPSTREAMS, type Upstream } from '../translation/directions';
import {
  chatChoices,
  StrictChat,
  type StrictClient,
  strictClient,
  type Understood,
  understoodBody,
} from '../translation/grammar';
import type { Target } from './target';

/** Translates answers in each of the nine directions: whole, cut off, and broken in any way. A client must understand all that it receives. */
export const streams: Target = {
  name: 'streams',
  summary: 'answers that are translated',
  isOfGateway: false,
  run: async (_, random) => {
    // Hides the log, because many of these streams are broken on purpose.
    log.level = 'fatal';
    for (const upstream of UPSTREAMS) {
      const answer = randomAnswer(random, upstream);
      const { events, body } = writeAnswer(random, upstream, answer);
      const broken = Array.from({ length: 2 }, () => brokenBytes(random, events));
      const cutFor = random.pick(CLIENTS);
      for (const client of CLIENTS) {
        if (client === upstream) continue;
        const told = `${upstream} to ${client}: ${JSON.stringify(events)}`.slice(0, 4_000);
        const whole = relayed(client, upstream, cut(random, bytesOf(events)), told);
        isWhole(whole, told);
        telling(told, () => isSame(whole, bodyOf(client, upstream, body), answer, client, upstream));
        if (cutFor === client) tellsError(random, client, upstream, events);
        for (let count = 0; cutFor === client && count < events.length; count += 1)
          isSound(relayed(client, upstream, [bytesOf(events.slice(0, count))], told), `${told} cut at ${count}`);
        for (const bytes of broken) {
          const shown = `${upstream} to ${client}: ${bytes.toString()}`.slice(0, 6_000);
          isSound(relayed(client, upstream, cut(random, bytes), shown), shown);
        }
      }
    }
    givesChoices(random);
  },
};

interface Relayed {
  readonly read: StrictClient;
  readonly isWhole: boolean;
  readonly contentBytes: number;
  readonly usage: Usage;
  readonly usageTold: Usage;
}

function translationOf(client: Client, upstream: Upstream, choices = 1): Translation {
  const tools = [{ name: TEXT_TOOL, input: 'text' as const }];
  const conversation = { instructions: [], turns: [], tools, choices, stream: true, stop: [] };
  const asked = { conversation, model: MODEL, maxOutput: 8_000, upstream: UPSTREAM };
  return new Translation(CANDIDATES[upstream], {
    requestId: 'req-1',
    protocol: client as Protocol,
    asked,
    request: {},
  });
}

function bodyOf(client: Client, upstream: Upstream, body: unknown): Understood {
  return understoodBody(client, translationOf(client, upstream).body(body).written);
}

function bytesOf(events: readonly SseEvent[]): Buffer {
  const text = events.map(({ name, data }) => `${name === undefined ? '' : `event: ${name}\n`}data: ${data}\n\n`);
  return Buffer.from(text.join(''));
}

/** Returns what a client receives of a stream, by the rules of the relay. */
function relayed(
  client: Client,
  upstream: Upstream,
  pieces: readonly Buffer[],
  told: string,
  read = strictClient(client),
  choices = 1,
): Relayed {
  const native = upstream === 'gemini' ? undefined : new Sums(new EventReader(upstream, choices));
  const sums = new Sums(new EventReader(client, choices, undefined, translationOf(client, upstream, choices)));
  const splitter = new SseSplitter();
  const give = (bytes: Buffer | undefined) => {
    for (const frame of splitter.push(bytes ?? NOTHING)) telling(told, () => read.read(frame));
  };
  for (const piece of pieces) {
    give(sums.feed(piece, told));
    native?.feed(piece, told);
  }
  if (sums.isWhole) give(sums.isBroken ? undefined : sums.reader.rest());
  else give(sums.told ?? errorEvent(client, fail('ALL_PROVIDERS_FAILED'), 'req-1', sums.given));
  if (native !== undefined && !sums.hasThrown && !sums.isBroken && !native.isBroken)
    telling(told, () => sums.isLike(native));
  const { isWhole: whole, contentBytes, usage, usageTold } = sums;
  return { read, isWhole: whole, contentBytes, usage, usageTold: usageTold ?? usage };
}

const NOTHING = Buffer.alloc(0);

function telling(told: string, work: () => void): void {
  try {
    work();
  } catch (cause) {
    throw new Error(`${cause instanceof Error ? cause.message : String(cause)}: ${told}`, { cause });
  }
}

/** Reads a stream as the relay does: up to its end, a malformed event, or an error of the upstream. */
class Sums {
  contentBytes = 0;
  usage: Usage = UNKNOWN_USAGE;
  /** The usage at the time when the client received it. */
  usageTold: Usage | undefined;
  isWhole = false;
  hasThrown = false;
  /** Whether an event was an error or malformed. After it the relay sends only the client's error event. */
  isBroken = false;
  told: Buffer | undefined;
  readonly given: { first: SseEvent | undefined; last: SseEvent | undefined } = { first: undefined, last: undefined };

  constructor(readonly reader: EventReader) {}

  feed(piece: Buffer, told: string): Buffer {
    if (this.isBroken || this.hasThrown) return NOTHING;
    const raws: Buffer[] = [];
    try {
      for (const noted of this.reader.read(piece)) {
        if (this.#breaksOff(noted)) break;
        raws.push(noted.raw);
      }
    } catch (error) {
      this.hasThrown = true;
      isFault(error, told);
    }
    return Buffer.concat(raws);
  }

  #breaksOff({ note, raw, event, isWhole: whole }: NotedEvent): boolean {
    this.isBroken = note.malformed === true || note.error !== undefined;
    if (note.malformed === true) return true;
    this.#note(note);
    if (note.error !== undefined) this.told = raw;
    // A translation reports an error behind the stop reason only if content came behind the usage.
    if (note.error !== undefined) this.isWhole = false;
    if (this.isBroken) return true;
    this.isWhole = whole;
    if (event.data !== undefined) {
      this.given.first ??= event;
      this.given.last = event;
    }
    return false;
  }

  #note({ contentBytes = 0, usage, finalUsage }: EventNote): void {
    this.contentBytes += contentBytes;
    if (usage !== undefined) this.usage = mergeUsage(this.usage, usage);
    if (finalUsage === true) this.usageTold ??= this.usage;
  }

  isLike(native: Sums): void {
    assert.deepEqual(
      [this.contentBytes, this.usage, this.isWhole],
      [native.contentBytes, native.usage, native.isWhole],
      'the notes differ from those of a native call',
    );
  }
}

/** Asserts that an error is a deliberate one of the reader, because JavaScript's own errors are bugs. */
function isFault(error: unknown, told: string): void {
  if (error instanceof SseEventTooLarge) return;
  const cause = error instanceof AdapterFault ? error.cause : error;
  const isOwn = error instanceof AdapterFault && cause instanceof Error && cause.name === 'Error';
  if (!isOwn) throw new Error(`threw at ${told}`, { cause });
}

function isWhole({ read, isWhole: whole }: Relayed, told: string): void {
  assert(whole && read.hasEnded && read.failure === undefined, `is not whole: ${told}`);
}

function isSound({ read, isWhole: whole, usageTold }: Relayed, told: string): void {
  assert.equal(read.hasEnded, whole, `the end and the bill differ: ${told}`);
  assert.equal(read.failure !== undefined, !whole, `the error event and the bill differ: ${told}`);
  if (whole) hasUsage(read.understood, usageTold, told);
}

function hasUsage({ usage: shown }: Understood, usage: Usage, told: string): void {
  if (shown === undefined || usage.passes.length === 0) return;
  const expected = { input: totalInputTokens(usage), output: outputTokens(usage) ?? 0 };
  assert.deepEqual(shown, expected, `the client is told another usage: ${told}`);
}

/** Asserts that a vendor's error after any event reaches the client in its protocol, with the vendor's message and after all earlier content. */
function tellsError(random: Random, client: Client, upstream: Upstream, events: readonly SseEvent[]): void {
  const words = `It broke. ${random.below(1_000)}`;
  const isEnd = ({ data = '' }: SseEvent) => /\[DONE\]|message_stop|message_delta|usage|finish|completed/i.test(data);
  const end = events.findIndex(isEnd);
  const before = events.slice(0, 1 + random.below(end === -1 ? events.length : Math.max(1, end)));
  const bytes = bytesOf([...before, errorOf(upstream, words)]);
  const told = `${upstream} to ${client}: ${bytes.toString()}`.slice(0, 6_000);
  const { read, isWhole: whole } = relayed(client, upstream, cut(random, bytes), told);
  if (whole) return;
  assert.equal(read.failure, words, `the error is told in other words: ${told}`);
  const { text } = relayed(client, upstream, [bytesOf(before)], told).read.understood;
  assert.equal(read.understood.text, text, `the error changes what was said: ${told}`);
}

/** Asserts that several answers to one call reach the client. Only Gemini and Chat have them. */
function givesChoices(random: Random): void {
  const count = 2 + random.below(2);
  const answers = Array.from({ length: count }, () => randomAnswer(random, 'gemini'));
  const { events, body } = geminiAnswers(random, answers);
  const told = `${count} choices: ${JSON.stringify(events)}`.slice(0, 4_000);
  const read = new StrictChat(count);
  isWhole(relayed('chat', 'gemini', cut(random, bytesOf(events)), told, read, count), told);
  const choices = chatChoices(translationOf('chat', 'gemini', count).body(body).written);
  telling(told, () => {
    assert.deepEqual(
      read.choices.map(({ usage: _, ...said }) => said),
      choices.map(({ usage: _, ...said }) => said),
    );
    for (const [at, answer] of answers.entries()) isSaid(read.choices[at] as Understood, answer, 'chat', 'gemini');
  });
  const cutAt = random.below(events.length);
  isSound(relayed('chat', 'gemini', [bytesOf(events.slice(0, cutAt))], told, new StrictChat(count), count), told);
}

/** Asserts that the stream, the body and the model's content are equal. */
function isSame(
  { read, contentBytes, usage }: Relayed,
  body: Understood,
  answer: RandomAnswer,
  client: Client,
  upstream: Upstream,
): void {
  assert.deepEqual(comparable(read.understood), comparable(body), 'the stream differs from the body');
  isSaid(read.understood, answer, client, upstream);
  const { said, used } = answer;
  const expected = { input: used.input + used.cacheRead + used.cacheWrite, output: used.output };
  assert.deepEqual(read.understood.usage, expected);
  hasUsage(read.understood, usage, 'a whole stream');
  const inputs = said.flatMap((each) => {
    if (each.is !== 'call') return [];
    const isJson = upstream === 'messages' || upstream === 'gemini';
    return (isJson ? undefined : each.text) ?? JSON.stringify(each.input);
  });
  const texts = sayings(answer, 'text', 'refusal', 'reasoning');
  assert.equal(contentBytes, Buffer.byteLength(texts + inputs.join('')), 'the bytes of the content differ');
}

function sayings({ said }: RandomAnswer, ...kinds: readonly string[]): string {
  return said.flatMap((each) => (each.is !== 'call' && kinds.includes(each.is) ? each.pieces : [])).join('');
}

function isSaid(understood: Understood, answer: RandomAnswer, client: Client, upstream: Upstream): void {
  const streamed = comparable(understood);
  assert.equal(streamed.text, sayings(answer, 'text', 'refusal'));
  assert.equal(streamed.reasoning, client === 'chat' ? '' : sayings(answer, 'reasoning'));
  const called = answer.said.flatMap((each) => {
    if (each.is !== 'call') return [];
    const { id, name, input } = each;
    return [{ id, name, input: JSON.parse(JSON.stringify(input)) as unknown }];
  });
  assert.deepEqual(streamed.calls, called, 'the calls differ from those of the model');
  const cited = answer.said.flatMap((each) => (each.is === 'call' ? [] : citedIn(each, client, upstream)));
  assert.deepEqual(streamed.citations, cited, 'the citations differ from those of the model');
}

/** Returns the citations in a stream. Messages attaches one to a block, without the cited words. */
function citedIn(
  { pieces, cited }: Exclude<RandomAnswer['said'][number], { is: 'call' }>,
  client: Client,
  upstream: Upstream,
): Understood['citations'] {
  const text = pieces.join('');
  return cited.map(({ url, title, from, to }) => {
    const words = upstream === 'messages' ? text : text.slice(from, to);
    return { url, title, words: client === 'messages' ? undefined : words };
  });
}

function comparable({ calls, ...others }: Understood) {
  return {
    ...others,
    calls: calls.map(({ id, name, isText, input }) => ({ id, name, input: isText ? { input } : parseJson(input) })),
  };
}

/** Returns a stream with up to four events lost, doubled, moved, changed or unknown, or with any bytes changed. */
function brokenBytes(random: Random, events: readonly SseEvent[]): Buffer {
  let some = [...events];
  for (let change = random.below(4); change >= 0; change -= 1) some = brokenOnce(random, some);
  const bytes = bytesOf(some);
  return random.below(4) === 0 ? mutateBytes(random, bytes) : bytes;
}

const STRANGE: readonly SseEvent[] = [
  { name: undefined, data: '{}' },
  { name: 'new', data: '{"type":"new","delta":{"type":"new_delta"},"index":0}' },
  { name: 'error', data: '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded."}}' },
  { name: undefined, data: '{"error":{"type":"constructor","code":"toString","message":"No."}}' },
  {
    name: 'response.failed',
    data: '{"type":"response.failed","response":{"status":"failed","error":{"message":"No."}}}',
  },
  { name: undefined, data: '[DONE]' },
  { name: undefined, data: 'null' },
  { name: undefined, data: '{"half' },
];

function brokenOnce(random: Random, events: readonly SseEvent[]): SseEvent[] {
  const at = random.below(events.length + 1);
  const [before, after] = [events.slice(0, at), events.slice(at)];
  const [first, ...others] = after;
  if (first === undefined) return [...before, random.pick(STRANGE)];
  switch (random.below(6)) {
    case 0:
      return [...before, ...others];
    case 1:
      return [...before, first, first, ...others];
    case 2:
      return [...others.slice(0, 2), ...before, first, ...others.slice(2)];
    case 3:
      return [...before, random.pick(STRANGE), ...after];
    case 4:
      return [
        ...before,
        { ...first, data: JSON.stringify(mutateJson(random, asObject(parseJson(first.data ?? '')))) ?? 'null' },
        ...others,
      ];
    default:
      return [...before, withUnknown(first), ...others];
  }
}

function withUnknown({ name, data = '' }: SseEvent): SseEvent {
  const object = asObject(parseJson(data));
  return { name, data: object === undefined ? data : JSON.stringify({ zz: { deep: [1, null] }, ...object }) };
}
