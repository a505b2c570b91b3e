import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RecordedBody, RecordedFailure, RecordedStream } from '../../conformance/upstream';
import type { Protocol } from '../../core/catalog/protocols';

const FIXTURES = join(__dirname, '..', 'fixtures');

type Expected = Omit<RecordedStream, 'name' | 'bytes'>;

/** The recordings of test/fixtures/<protocol>, with what is expected of them. */
export function readRecordings(protocol: Protocol): {
  streams: RecordedStream[];
  bodies: RecordedBody[];
  failures: RecordedFailure[];
} {
  const folder = join(FIXTURES, protocol);
  const { answers, failures } = JSON.parse(readFileSync(join(folder, 'expected.json'), 'utf8')) as {
    answers: Record<string, Expected>;
    failures: RecordedFailure[];
  };
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
