import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Protocol } from '../core/catalog/protocols';
import type { Verdict } from '../core/catalog/upstream';
import type { Meter } from '../core/catalog/usage';

/** The known counts of all passes, by meter; what is left out must stay unknown. */
export type ExpectedCounts = Readonly<Partial<Record<Meter, number>>>;

/** A recorded stream and what the adapter has to make of it. */
export interface RecordedStream {
  readonly name: string;
  readonly bytes: Buffer;
  /** The same stream as the vendor frames it, for an adapter with `framing`; `bytes` are what becomes of it. */
  readonly framed?: Buffer;
  readonly usage: ExpectedCounts;
  /** UTF-8 bytes of text, reasoning and tool arguments. */
  readonly contentBytes: number;
  readonly ends: 'done' | 'error';
  /** What is to be done about the error it ends with, had nothing been said before. */
  readonly verdict?: Verdict;
  /** How many answers it has, where there are several. */
  readonly choices?: number;
}

/** A recorded answer in one piece and what the adapter has to make of it. */
export interface RecordedBody {
  readonly name: string;
  readonly bytes: Buffer;
  readonly usage: ExpectedCounts;
  readonly contentBytes: number;
  /** It is an error although its status is a success, and this is to be done about it. */
  readonly verdict?: Verdict;
}

/** An answer that is no success, and what is to be done about it. */
export interface RecordedFailure {
  readonly status: number;
  readonly body: unknown;
  readonly verdict: Verdict;
}

/** Everything that was recorded of one upstream. */
export interface Recordings {
  readonly streams: readonly RecordedStream[];
  readonly bodies: readonly RecordedBody[];
  readonly failures: readonly RecordedFailure[];
}

interface Expectations {
  readonly answers: Readonly<Record<string, Omit<RecordedStream, 'name' | 'bytes' | 'framed'>>>;
  readonly failures?: readonly RecordedFailure[];
}

/**
 * Reads a folder of recordings, as `tollgate upstreams record` makes one: `expected.json` says what the adapter has to make of each
 * `<name>.sse` (a stream) and `<name>.json` (an answer in one piece), and of failures.
 */
export function readRecordings(folder: string): Recordings {
  const { answers, failures = [] } = JSON.parse(readFileSync(join(folder, 'expected.json'), 'utf8')) as Expectations;
  const recorded = Object.entries(answers).map(([name, expected]) => ({
    name,
    bytes: readFileSync(join(folder, name)),
    ...expected,
  }));
  return {
    streams: recorded.filter(({ name }) => name.endsWith('.sse')),
    bodies: recorded.filter(({ name }) => name.endsWith('.json')),
    failures,
  };
}

/** The build puts a copy beside this file. */
const SAMPLES = join(__dirname, __filename.endsWith('.ts') ? '../test/fixtures' : 'recordings');

/** What the shipped adapter of a protocol is held to: a dialect like it has to read the same. */
export function sampleRecordings(protocol: Protocol): Recordings {
  return readRecordings(join(SAMPLES, protocol));
}
