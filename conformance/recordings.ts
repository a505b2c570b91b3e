import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Protocol } from '../core/catalog/protocols';
import type { Verdict } from '../core/catalog/upstream';
import type { Meter } from '../core/catalog/usage';

/** The expected token counts by meter, over all passes (runs of the model in one answer). A meter that is absent here must stay unknown. */
export type ExpectedCounts = Readonly<Partial<Record<Meter, number>>>;

/** A recorded stream, and what an adapter must read from it. */
export interface RecordedStream {
  readonly name: string;
  readonly bytes: Buffer;
  /** The same stream in the vendor's framing. An adapter with `framing` decodes it to `bytes`. */
  readonly framed?: Buffer;
  readonly usage: ExpectedCounts;
  /** The number of UTF-8 bytes of text, reasoning and tool arguments in the answer. */
  readonly contentBytes: number;
  readonly ends: 'done' | 'error';
  /** The expected verdict (such as: try the next candidate) on an error that ends the stream before any content. */
  readonly verdict?: Verdict;
  /** The number of choices in the answer; absent for one. */
  readonly choices?: number;
}

/** A recorded answer without streaming, and what an adapter must read from it. */
export interface RecordedBody {
  readonly name: string;
  readonly bytes: Buffer;
  readonly usage: ExpectedCounts;
  readonly contentBytes: number;
  /** The expected verdict (such as: try the next candidate) on an answer that reports an error in spite of a success status. */
  readonly verdict?: Verdict;
}

/** A recorded answer with an error status, and the expected verdict on it (such as: try the next candidate). */
export interface RecordedFailure {
  readonly status: number;
  readonly body: unknown;
  readonly verdict: Verdict;
}

/** All recordings of one upstream. */
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
 * Reads a folder of recordings from `tollgate upstreams record`. `expected.json` states what an adapter must read from each `<name>.sse` (a
 * stream), each `<name>.json` (an unstreamed answer), and from failures.
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

/** The folder of recordings, which the build copies beside this file. */
const SAMPLES = join(__dirname, __filename.endsWith('.ts') ? '../test/fixtures' : 'recordings');

/** Returns the repository's own recordings of a protocol. */
export function sampleRecordings(protocol: Protocol): Recordings {
  return readRecordings(join(SAMPLES, protocol));
}
