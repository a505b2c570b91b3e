import type { FileEntry, OutputFrame } from '../supplier';

const KIND_BITS = 0xf000;
const KINDS: Readonly<Record<number, FileEntry['type']>> = { 32768: 'file', 16384: 'folder', 40960: 'link' };

/** Yields the entries of output such as `81a4 12 1700000000\n<path>\0`. A path may hold any character but NUL. */
export async function* readEntries(output: AsyncIterable<OutputFrame>): AsyncGenerator<FileEntry> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const { stream, bytes } of output) {
    if (stream !== 'stdout') continue;
    rest = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
    for (let end = rest.indexOf(0); end !== -1; end = rest.indexOf(0)) {
      yield toEntry(rest.subarray(0, end).toString());
      rest = rest.subarray(end + 1);
    }
  }
}

function toEntry(text: string): FileEntry {
  const lineEnd = text.indexOf('\n');
  const [mode = '', size, seconds] = text.slice(0, lineEnd).split(' ');
  return {
    path: text.slice(lineEnd + 1),
    type: KINDS[Number.parseInt(mode, 16) & KIND_BITS] ?? 'other',
    byteLength: Number(size),
    modifiedAt: new Date(Number(seconds) * 1_000),
  };
}
