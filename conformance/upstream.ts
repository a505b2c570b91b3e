import assert from 'node:assert/strict';
import { withOwnDialect } from '../core/catalog/adapters';
import { costOf, plainPrice } from '../core/catalog/price';
import type {
  EventNote,
  Framing,
  ModelCall,
  Protocol,
  UpstreamAdapter,
  UpstreamFailure,
} from '../core/catalog/upstream';
import { countsIn, usageOf } from '../core/catalog/usage';
import { findMembers, sliceChunks } from '../core/http/json-members';
import { NoteReader, usageIn } from '../core/protocols/notes';
import { applyBodyEdits } from '../core/wire/body-edits';
import { annotateCost } from '../core/wire/event-data';
import { FinishTracker } from '../core/wire/event-reader';
import { type SseFrame, splitWhole } from '../core/wire/sse';
import type { RecordedBody, RecordedFailure, RecordedStream, Recordings } from './recordings';

export {
  type ExpectedCounts,
  type RecordedBody,
  type RecordedFailure,
  type RecordedStream,
  type Recordings,
  readRecordings,
  sampleRecordings,
} from './recordings';

/** An adapter, and the recordings of its upstream. */
export interface ConformanceSubject extends Recordings {
  readonly adapter: UpstreamAdapter;
  /** The adapter's own settings, after validation by its schema. */
  readonly settings: unknown;
  /** The protocol of the recordings. */
  readonly protocol: Protocol;
  /** The path of the usage member within an answer. Default: `['usage']`. */
  readonly usageAt?: readonly string[];
  /** Where the request names the model: in a member of the body, in the path, or nowhere. */
  readonly modelIn?: { readonly member: string } | 'path' | 'nowhere';
}

/** A subject whose adapter has the current contract version, and whose optional members have their defaults. */
type Subject = ConformanceSubject &
  Required<Pick<ConformanceSubject, 'usageAt' | 'modelIn'>> & { readonly adapter: UpstreamAdapter };

/** One property that an adapter must have, or that the recordings of its upstream must have. */
export interface ConformanceCheck {
  readonly name: string;
  /** Runs the check. @throws AssertionError if the adapter or its recordings fail it */
  readonly run: () => void;
}

/** Returns the checks that an adapter must pass, for any test runner: `for (const { name, run } of upstreamConformance(subject)) it(name, run);` */
export function upstreamConformance(given: ConformanceSubject): ConformanceCheck[] {
  const subject = {
    usageAt: ['usage'],
    modelIn: { member: 'model' },
    ...given,
    adapter: withOwnDialect(given.adapter),
  };
  return [
    ...subject.streams.flatMap((stream) => streamChecks(subject, stream)),
    ...subject.bodies.flatMap((body) => bodyChecks(subject, body)),
    ...subject.failures.map((failure) => failureCheck(subject, failure)),
    ...eventChecks(subject),
    ...requestChecks(subject),
  ];
}

function streamChecks({ adapter, protocol }: Subject, stream: RecordedStream): ConformanceCheck[] {
  const frames = split(stream.bytes, [stream.bytes]);
  const notes = notesOf(protocol, frames);
  const told = notes.filter(hasContents);
  const check = (name: string, run: () => void): ConformanceCheck => ({ name: `stream ${stream.name}: ${name}`, run });
  const checks = [
    check('the notes are the same at every byte split', () => {
      for (let at = 1; at < stream.bytes.length; at += 1) {
        const pieces = [stream.bytes.subarray(0, at), stream.bytes.subarray(at)];
        const cut = notesOf(protocol, split(stream.bytes, pieces)).filter(hasContents);
        assert.deepEqual(cut, told, `cut at byte ${at}`);
      }
      const single = [...stream.bytes].map((byte) => Buffer.from([byte]));
      assert.deepEqual(notesOf(protocol, split(stream.bytes, single)).filter(hasContents), told, 'byte by byte');
    }),
    check('usage, content and price are as expected', () => {
      const usage = usageIn(notes);
      assert.deepEqual(countsIn(usage), stream.usage);
      assert.equal(bytesOf(notes), stream.contentBytes);
      assert.equal(costOf(usage, PRICE), costOf(usageOf(stream.usage), PRICE));
      assert(notes.every((note) => note.malformed !== true));
      assert(
        notes.every((note) => (note.contentBytes ?? 0) === 0 || note.content === true),
        'bytes without content',
      );
    }),
    check('a malformed event is reported and does not throw', () => {
      for (const data of ['{"half', 'null', '[]', '"x"', '7', '<html>', '{"a":1}}']) {
        for (const frame of frames) {
          const note = new NoteReader(protocol).event({ name: frame.name, data });
          assert.equal(note.malformed, true, `${frame.name}: ${data}`);
        }
      }
    }),
  ];
  if (adapter.framing !== undefined) checks.push(framingCheck(check, adapter.framing, stream));
  if (stream.ends === 'done') checks.push(...wholeStreamChecks(check, stream, frames, notes));
  else checks.push(errorCheck(check, adapter, protocol, stream, notes));
  return checks;
}

type NamedCheck = (name: string, run: () => void) => ConformanceCheck;

function framingCheck(check: NamedCheck, framing: Framing, { bytes, framed }: RecordedStream): ConformanceCheck {
  const decode = (pieces: readonly Buffer[]) => {
    const decoder = framing.open();
    return splitWhole([Buffer.from(pieces.map((piece) => decoder.push(piece)).join(''))]).map(({ name, data }) => ({
      name,
      data,
    }));
  };
  return check('the framing is decoded at every byte split', () => {
    assert(framed, 'a stream of an adapter with framing needs `framed`');
    const expected = split(bytes, [bytes]).map(({ name, data }) => ({ name, data }));
    for (let at = 0; at < framed.length; at += 1)
      assert.deepEqual(decode([framed.subarray(0, at), framed.subarray(at)]), expected, `cut at byte ${at}`);
    const spoiled = Buffer.from(framed);
    spoiled.writeUInt8(spoiled.readUInt8(0) ^ 0xff, 0);
    decode([spoiled, spoiled]);
  });
}

function wholeStreamChecks(
  check: NamedCheck,
  stream: RecordedStream,
  frames: readonly SseFrame[],
  notes: readonly EventNote[],
): ConformanceCheck[] {
  return [
    check('the end is the last note', () => {
      assert.deepEqual(
        notes.filter((note) => note.done === true),
        [notes.at(-1)],
      );
    }),
    check('the stream is complete at its stop reason, which may be its end', () => {
      const tracker = new FinishTracker(stream.choices ?? 1);
      const wholeAt = notes.findIndex((note) => tracker.note(note));
      assert(wholeAt >= 0, 'no end');
      assert(wholeAt < notes.length - 1 || notes[wholeAt]?.finish === true, 'no stop reason');
      assert(!notes.slice(wholeAt + 1).some((note) => note.content === true), 'content after the stop reason');
      assert.deepEqual(usageIn(notes.slice(0, wholeAt === notes.length - 1 ? undefined : -1)), usageIn(notes));
    }),
    check('the final usage comes last, at the noted place, and the cost can be added to it', () => {
      const finals = notes.flatMap((note, at) => (note.finalUsage === true ? [at] : []));
      const isReported = stream.usage.output !== undefined;
      assert.equal(finals.length > 0, isReported);
      const [final] = finals.slice(-1);
      if (final === undefined) return;
      assert(!notes.slice(final + 1).some((note) => note.content === true || note.usage !== undefined));
      const { usageAt = ['usage'] } = notes[final] ?? {};
      const data = splitWhole([annotateCost((frames[final] as SseFrame).raw, 12_345n, usageAt)])[0]?.data ?? '';
      const usage = usageAt.reduce(
        (value: unknown, name) => (value as Record<string, unknown>)[name],
        JSON.parse(data),
      );
      assert.equal((usage as { cost: number }).cost, 0.00012345);
    }),
  ];
}

function errorCheck(
  check: NamedCheck,
  adapter: UpstreamAdapter,
  protocol: Protocol,
  stream: RecordedStream,
  notes: readonly EventNote[],
): ConformanceCheck {
  return check('the error is reported with its verdict', () => {
    const { error } = notes.at(-1) ?? {};
    assert(error, 'the last event is no error');
    assert.equal(adapter.judge({ protocol, status: 200, headers: {}, body: error.body }), stream.verdict);
    const hasContent = notes.some((note) => note.content === true);
    assert.equal(hasContent, stream.contentBytes > 0, 'a preamble must not count as content');
    assert(!notes.some((note) => note.finish === true || note.done === true));
  });
}

function bodyChecks({ adapter, protocol, usageAt }: Subject, recorded: RecordedBody): ConformanceCheck[] {
  const noteOf = (given: unknown) => new NoteReader(protocol).body(given);
  const { name, bytes, usage, contentBytes, verdict } = recorded;
  const body: unknown = JSON.parse(bytes.toString());
  const checks: ConformanceCheck[] = [
    {
      name: `answer ${name}: usage, content and price are as expected`,
      run: () => {
        const read = noteOf(body);
        assert.deepEqual(countsIn(read.usage), usage);
        assert.equal(read.contentBytes, contentBytes);
        assert.equal(costOf(read.usage, PRICE), costOf(usageOf(usage), PRICE));
      },
    },
    {
      name: `answer ${name}: invalid counts are unknown, never 0`,
      run: () => {
        assert.deepEqual(countsIn(noteOf(changedAt(body, usageAt, () => undefined)).usage), {});
        for (const nonsense of [-1, 1.5, 1e308, '7', null, {}, []]) {
          const spoiled = changedAt(body, usageAt, (reported) => spoilNumbers(reported, nonsense));
          assert.deepEqual(countsIn(noteOf(spoiled).usage), {}, JSON.stringify(nonsense));
        }
      },
    },
  ];
  if (verdict === undefined) return checks;
  return [
    ...checks,
    {
      name: `answer ${name}: the error is reported with its verdict`,
      run: () => {
        const { error } = noteOf(body);
        assert(error, 'no error is read');
        assert.equal(adapter.judge({ protocol, status: 200, headers: {}, body: error.body }), verdict);
      },
    },
  ];
}

function failureCheck({ adapter, protocol }: Subject, { status, body, verdict }: RecordedFailure): ConformanceCheck {
  const shown = JSON.stringify(body)?.slice(0, 80) ?? '';
  return {
    name: `failure ${status} ${shown}: the verdict is ${verdict}`,
    run: () => {
      const failure: UpstreamFailure = { protocol, status, headers: {}, body };
      assert.equal(adapter.judge(failure), verdict);
    },
  };
}

function eventChecks({ adapter, protocol }: Subject): ConformanceCheck[] {
  return [
    {
      name: 'comments and unknown events give an empty note',
      run: () => {
        const reader = new NoteReader(protocol);
        assert.deepEqual(reader.event({ name: undefined, data: undefined }), {});
        assert.deepEqual(reader.event({ name: 'later', data: '{"type":"later"}' }), {});
      },
    },
    {
      name: 'reading never throws, whatever the shape of an answer or failure',
      run: () => {
        for (const body of [
          undefined,
          null,
          0,
          '',
          'text',
          [],
          {},
          { error: null },
          { error: 'x' },
          { content: 1, choices: {} },
        ]) {
          assert.deepEqual(countsIn(new NoteReader(protocol).body(body).usage), {});
          adapter.judge({ protocol, status: 500, headers: {}, body });
        }
      },
    },
    ...[401, 402, 403, 404, 408, 409, 425, 429, 500, 502, 503, 504, 529].map((status) => ({
      name: `failure ${status} without a body: the verdict is next`,
      run: () => assert.equal(adapter.judge({ protocol, status, headers: {}, body: undefined }), 'next'),
    })),
    ...[400, 405, 410, 413, 415, 422, 451].map((status) => ({
      name: `failure ${status} without a body: the verdict is relay`,
      run: () => assert.equal(adapter.judge({ protocol, status, headers: {}, body: undefined }), 'relay'),
    })),
  ];
}

const CREDENTIAL = 'credential-of-the-platform';

const SAMPLE = ` {"stream" :true,"seed": 123456789012345678901234567890,
  "mod\\u0065l":"as the client says", "priority":5,"messages":[{"role":"user","content":"\\u00e9\\/ 1.0"}] ,"max_tokens":7} `;

function requestChecks({ adapter, protocol, settings, modelIn }: Subject): ConformanceCheck[] {
  const members = findMembers([Buffer.from(SAMPLE)]) ?? assert.fail('the sample is not JSON');
  const texts = new Map([...members].map(([key, place]) => [key, SAMPLE.slice(place.valueStart, place.end)]));
  const call: ModelCall = {
    protocol,
    model: 'name/at "upstream"',
    stream: true,
    query: '?beta=true',
    headers: { 'content-type': 'application/json', 'anthropic-beta': 'x' },
    members: texts,
    streamUsage: true,
  };
  return [
    {
      name: 'request: the model is in the body or the path, priority is removed, every other byte is kept',
      run: () => {
        const before = { chunks: [Buffer.from(SAMPLE)], byteLength: Buffer.byteLength(SAMPLE), members };
        const { edits, path } = adapter.request(call, settings);
        const edited = applyBodyEdits(before, edits).chunks;
        const after = findMembers(edited) ?? assert.fail('no JSON after the edits');
        const textOf = (key: string): string | undefined => {
          const place = after.get(key);
          return place && sliceChunks(edited, place.valueStart, place.end).toString();
        };
        if (modelIn === 'path') assert(decodeURIComponent(path).includes(call.model), `${path} has no model`);
        else if (modelIn !== 'nowhere') assert.equal(JSON.parse(textOf(modelIn.member) ?? ''), call.model);
        assert(!after.has('priority'));
        const named = new Set(edits.map((edit) => edit.member));
        for (const [key, text] of texts) if (!named.has(key)) assert.equal(textOf(key), text);
      },
    },
    {
      name: 'request: path and query are below the base, and the credential is only where the protocol expects it',
      run: () => {
        const { path, headers } = adapter.request(call, settings);
        assert(path.startsWith('/') && !path.startsWith('//'));
        const { search, searchParams } = new URL(path, 'http://upstream');
        assert(search === '' || searchParams.get('beta') === 'true', 'the query is passed on, or none is there');
        for (const name of Object.keys(headers)) assert.equal(name, name.toLowerCase());
        assert.equal(headers['content-type'], undefined);
        const shown = adapter.authorize(CREDENTIAL, settings);
        assert(adapter.sign !== undefined || Object.values(shown).some((value) => value.includes(CREDENTIAL)));
      },
    },
  ];
}

/** A price in which every rate is different, so that a count under the wrong meter changes the cost. */
const PRICE = plainPrice({
  input: 300_000_000n,
  output: 1_500_000_000n,
  cacheWrite: 375_000_000n,
  cacheWrite1h: 600_000_000n,
  cacheRead: 30_000_000n,
});

function split(whole: Buffer, pieces: readonly Buffer[]): SseFrame[] {
  const frames = splitWhole(pieces);
  assert(Buffer.concat(frames.map((frame) => frame.raw)).equals(whole), 'bytes were lost');
  return frames;
}

/** Returns what the gateway reads from each event of a stream of this protocol. */
function notesOf(protocol: Protocol, frames: readonly SseFrame[]): EventNote[] {
  const reader = new NoteReader(protocol);
  return frames.map((frame) => reader.event(frame));
}

function hasContents(note: EventNote): boolean {
  return Object.keys(note).length > 0;
}

function bytesOf(notes: readonly EventNote[]): number {
  return notes.reduce((sum, note) => sum + (note.contentBytes ?? 0), 0);
}

/** Returns the value with the member at a path changed, or unchanged if the path does not exist. */
function changedAt(value: unknown, path: readonly string[], change: (old: unknown) => unknown): unknown {
  const [name, ...rest] = path;
  if (name === undefined) return change(value);
  if (typeof value !== 'object' || value === null) return value;
  const members = value as Readonly<Record<string, unknown>>;
  return { ...members, [name]: changedAt(members[name], rest, change) };
}

/** Returns the value with every number in it replaced by `by`. */
function spoilNumbers(value: unknown, by: unknown): unknown {
  if (typeof value === 'number') return by;
  if (Array.isArray(value)) return value.map((each) => spoilNumbers(each, by));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, spoilNumbers(each, by)]));
}
