import assert from 'node:assert/strict';
import fc from 'fast-check';
import { type SseFrame, SseSplitter } from '../../../core/wire/sse';

function split(bytes: Buffer, pieceBytes: number): SseFrame[] {
  const splitter = new SseSplitter();
  const frames: SseFrame[] = [];
  for (let at = 0; at < bytes.length; at += pieceBytes)
    frames.push(...splitter.push(bytes.subarray(at, at + pieceBytes)));
  const rest = splitter.end();
  return rest === undefined ? frames : [...frames, rest];
}

/** Returns name and data of each frame, without frames that hold only the late LF of a CRLF. */
function events(frames: readonly SseFrame[]): (string | undefined)[][] {
  return frames
    .filter((frame) => frame.name !== undefined || frame.data !== undefined)
    .map((frame) => [frame.name, frame.data]);
}

const STREAM = [
  ': a comment, then a ping',
  '',
  'event: ping',
  'data: {}',
  '',
  'event:delta',
  'id: 7',
  'data: {"text":"höher, 日本, 😀",',
  'data:  "more": 1}',
  '',
  'data',
  '',
  'dataset: not ours',
  '',
  '',
  'data: [DONE]',
  '',
  '',
];
const EVENTS = [
  ['ping', '{}'],
  ['delta', '{"text":"höher, 日本, 😀",\n "more": 1}'],
  [undefined, ''],
  [undefined, '[DONE]'],
];

describe('the event splitter', () => {
  for (const [name, lineEnd] of [
    ['LF', '\n'],
    ['CRLF', '\r\n'],
    ['CR', '\r'],
  ] as const) {
    for (const mark of ['', '\ufeff']) {
      it(`splits ${name} streams ${mark && 'with a byte order mark '}into the same events at every byte split`, () => {
        const bytes = Buffer.from(mark + STREAM.join(lineEnd));
        for (let pieceBytes = 1; pieceBytes <= bytes.length; pieceBytes += 1) {
          const frames = split(bytes, pieceBytes);
          assert.deepEqual(events(frames), EVENTS, `pieces of ${pieceBytes} bytes`);
          assert(Buffer.concat(frames.map((frame) => frame.raw)).equals(bytes));
        }
        for (let at = 0; at <= bytes.length; at += 1) {
          const splitter = new SseSplitter();
          const frames = [...splitter.push(bytes.subarray(0, at)), ...splitter.push(bytes.subarray(at))];
          assert.deepEqual(events(frames), EVENTS, `cut at ${at}`);
        }
      });
    }
  }

  it('neither loses nor adds a byte, whatever bytes the stream has', () => {
    const bytes = fc.array(fc.constantFrom('\n', '\r', 'd', 'data:', ':', ' ', '\ufeff', 'é'), { maxLength: 40 });
    fc.assert(
      fc.property(bytes, fc.integer({ min: 1, max: 5 }), (parts, pieceBytes) => {
        const stream = Buffer.from(parts.join(''));
        const frames = split(stream, pieceBytes);
        assert(Buffer.concat(frames.map((frame) => frame.raw)).equals(stream));
        assert.deepEqual(events(frames), events(split(stream, stream.length + 1)));
      }),
      { numRuns: 2_000 },
    );
  });

  it('emits an event as soon as its blank line arrives, not with the next event', () => {
    const splitter = new SseSplitter();
    assert.equal(splitter.push(Buffer.from('data: 1\r')).length, 0);
    assert.equal(splitter.push(Buffer.from('\n\r')).length, 1);
    assert.equal(splitter.push(Buffer.from('\ndata: 2\n')).length, 0);
    assert.equal(splitter.push(Buffer.from('\n'))[0]?.data, '2');
  });

  it('does not copy an event that arrived in one chunk', () => {
    const chunk = Buffer.from('data: 1\n\ndata: 2\n\n');
    const [first, second] = new SseSplitter().push(chunk);
    assert.equal(first?.raw.buffer, chunk.buffer);
    assert.equal(second?.raw.byteOffset, chunk.byteOffset + 9);
  });

  it('refuses an event larger than its limit, in one chunk or in many', () => {
    for (const pieceBytes of [7, 5_000]) {
      const splitter = new SseSplitter(1_000);
      const bytes = Buffer.from(`data: ${'x'.repeat(1_200)}\n\n`);
      assert.throws(() => {
        for (let at = 0; at < bytes.length; at += pieceBytes) splitter.push(bytes.subarray(at, at + pieceBytes));
      }, /more than 1000 bytes/);
    }
  });
});
