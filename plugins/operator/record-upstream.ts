import { parseJson } from '../../core/base/parse-json';
import type { MadeAttempt } from '../../core/calls/made-attempt';
import type { ModelEntry, Upstream } from '../../core/catalog/catalog';
import { hasOutput } from '../../core/catalog/protocols';
import type { Verdict } from '../../core/catalog/upstream';
import { countsIn, type Usage } from '../../core/catalog/usage';
import { NoteReader, usageIn } from '../../core/protocols/notes';
import type { Egress } from '../../core/wire/egress';
import { splitWhole } from '../../core/wire/sse';
import { type CalledOnce, callOnce, noteUsage, problemOf, question, type Speaking } from './call-upstream';

/** Recordings in the form that `readRecordings` of tollgate/conformance reads. */
interface UpstreamRecording {
  readonly made: readonly MadeAttempt[];
  readonly files: readonly { readonly name: string; readonly content: string }[];
  /** Why there are no recordings; null when there are. */
  readonly problem: string | null;
}

interface Read {
  readonly usage: Usage;
  readonly contentBytes: number;
  readonly ends?: 'done' | 'error';
  readonly verdict?: Verdict | undefined;
}

/** A model name that no upstream knows. */
const NO_MODEL = 'there-is-no-such-model';

/** Makes three real calls to an upstream: an unstreamed one, a streamed one, and one that the upstream has to reject. */
export async function recordUpstream(
  egress: Egress,
  upstream: Upstream,
  model: ModelEntry,
  speaking: Speaking,
): Promise<UpstreamRecording> {
  const { adapter, protocol } = speaking;
  // A stream in a vendor's own framing is binary. Do not record it, because only text can be sanitised (freed of ids and names).
  const isStreamed = hasOutput(protocol) && adapter.framing === undefined;
  const ask = (named: ModelEntry, stream: boolean) =>
    callOnce(egress, { upstream, model: named, adapter }, question(protocol, named.name, stream));
  const answers = [await ask(model, false), ...(isStreamed ? [await ask(model, true)] : [])];
  const failed = answers.find(({ status }) => status === null || status >= 300);
  const made = answers.map((each) => each.made);
  if (failed !== undefined) return { made, files: [], problem: problemOf(failed) };
  const refused = await ask({ ...model, name: NO_MODEL }, false);
  const [body = '', ...rest] = sanitise([...answers, refused].map(({ text }) => text));
  const stream = rest.length === 2 ? rest[0] : undefined;
  const files = [
    { name: 'answer.json', content: body, read: readBody(body, speaking) },
    ...(stream === undefined ? [] : [{ name: 'stream.sse', content: stream, read: readStream(stream, speaking) }]),
  ];
  for (const [index, { read }] of files.entries()) if (made[index] !== undefined) noteUsage(made[index], read.usage);
  const expected = {
    answers: Object.fromEntries(files.map(({ name, read }) => [name, { ...read, usage: countsIn(read.usage) }])),
    failures: failureOf(refused, rest.at(-1) ?? '', speaking),
  };
  return {
    made: [...made, refused.made],
    files: [
      ...files.map(({ name, content }) => ({ name, content })),
      { name: 'expected.json', content: `${JSON.stringify(expected, null, 2)}\n` },
    ],
    problem: null,
  };
}

function readBody(text: string, { adapter, protocol }: Speaking): Read {
  const { usage, contentBytes, error } = new NoteReader(protocol).body(parseJson(text));
  return { usage, contentBytes, ...(error && { verdict: judged(error.body, { adapter, protocol }) }) };
}

function readStream(text: string, { adapter, protocol }: Speaking): Read {
  const reader = new NoteReader(protocol);
  const notes = splitWhole([Buffer.from(text)]).map((frame) => reader.event(frame));
  const { error } = notes.at(-1) ?? {};
  return {
    usage: usageIn(notes),
    contentBytes: notes.reduce((sum, note) => sum + (note.contentBytes ?? 0), 0),
    ends: error === undefined ? 'done' : 'error',
    ...(error && { verdict: judged(error.body, { adapter, protocol }) }),
  };
}

function judged(body: unknown, { adapter, protocol }: Speaking): Verdict {
  return adapter.judge({ protocol, status: 200, headers: {}, body });
}

/** Returns the recorded rejection; empty if the upstream answered with another model instead of rejecting the call. */
function failureOf({ status }: CalledOnce, text: string, { adapter, protocol }: Speaking): readonly object[] {
  if (status === null || status < 300) return [];
  const body = parseJson(text);
  return [{ status, body, verdict: adapter.judge({ protocol, status, headers: {}, body }) }];
}

/** The names of JSON members whose texts identify an account or an answer. */
const PRIVATE =
  /(^|_)(id|key|user|account|organization|org|project|workspace|fingerprint|signature|encrypted_content)$|Id$/;

/** Matches a JSON member with a text: its name and its value. */
const MEMBER = /"([^"\\]*)"(\s*:\s*)"((?:[^"\\]|\\.)*)"/g;

/** The minimum length of a private value that is also replaced outside its own member. Shorter values could occur elsewhere by chance. */
const TELLING_CHARACTERS = 12;

/**
 * Replaces each id, and each value that names an account, with an invented one, in JSON and in events of JSON. Equal values get
 * equal replacements, so calls and their results still belong together. Every other byte stays.
 */
export function sanitise(texts: readonly string[]): string[] {
  const invented = new Map<string, string>();
  const replaced = texts.map((text) =>
    text.replaceAll(MEMBER, (member, name: string, colon: string, value: string) => {
      if (value === '' || !PRIVATE.test(name)) return member;
      const known = invented.get(value) ?? `recorded-${invented.size + 1}`;
      invented.set(value, known);
      return `"${name}"${colon}"${known}"`;
    }),
  );
  const replacements = [...invented].filter(([value]) => value.length >= TELLING_CHARACTERS);
  return replaced.map((text) => replacements.reduce((whole, [value, known]) => whole.replaceAll(value, known), text));
}
