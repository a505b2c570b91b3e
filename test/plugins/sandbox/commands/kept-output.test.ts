import { expect } from 'chai';
import { KeptOutput, MAX_KEPT_BYTES, textOf } from '../../../../plugins/sandbox/commands/kept-output';

const out = (text: string | Buffer) => ({ stream: 'stdout' as const, bytes: Buffer.from(text) });
const err = (text: string) => ({ stream: 'stderr' as const, bytes: Buffer.from(text) });

describe('the stored output of a sandbox command', () => {
  it('is numbered in the order of arrival, in pieces that each belong to one stream', () => {
    const kept = new KeptOutput();
    for (const frame of [out('a'), out('b'), err('c'), out('d')]) kept.add(frame);
    const { added } = kept.take();
    expect(added.map(({ sequence, stream, bytes }) => `${sequence} ${stream} ${bytes}`)).to.deep.equal([
      '1 stdout ab',
      '2 stderr c',
      '3 stdout d',
    ]);
    expect([kept.text('stdout'), kept.text('stderr')]).to.deep.equal(['abd', 'c']);
  });

  it('is never changed in a piece that was already read', () => {
    const kept = new KeptOutput();
    kept.add(out('a'));
    const first = kept.take().added;
    kept.add(out('b'));
    expect(first.map(({ bytes }) => String(bytes))).to.deep.equal(['a']);
    expect(kept.take().added.map(({ sequence, bytes }) => `${sequence} ${bytes}`)).to.deep.equal(['2 b']);
    expect(kept.take().added).to.deep.equal([]);
  });

  it('loses the beginning of a stream that exceeds a mebibyte, and marks that stream as truncated', () => {
    const kept = new KeptOutput();
    kept.add(err('kept'));
    for (let index = 0; index < 200; index += 1) kept.add(out(String(index % 10).repeat(10_000)));
    const text = kept.text('stdout');
    expect(text.length).to.equal(MAX_KEPT_BYTES);
    expect(text.endsWith('9'.repeat(10_000))).to.equal(true);
    expect(kept.truncated).to.deep.equal({ stdout: true, stderr: false });
    const { added, oldest } = kept.take();
    expect(added.filter(({ stream }) => stream === 'stdout')[0]?.sequence).to.equal(oldest.stdout);
    expect(oldest.stderr).to.equal(1);
  });

  it('keeps a stream of exactly one mebibyte whole', () => {
    const kept = new KeptOutput();
    kept.add(out('x'.repeat(MAX_KEPT_BYTES)));
    expect([kept.text('stdout').length, kept.truncated.stdout]).to.deep.equal([MAX_KEPT_BYTES, false]);
  });

  it('has a maximum size, even if the command prints without end', () => {
    const kept = new KeptOutput();
    for (let index = 0; index < 2_000; index += 1) kept.add(out(Buffer.alloc(65_536, 'y')));
    const bytes = kept.take().added.reduce((sum, piece) => sum + piece.bytes.length, 0);
    expect(bytes).to.be.lessThan(MAX_KEPT_BYTES + 70_000);
  });

  it('has a maximum number of pieces, even if single bytes arrive without end', () => {
    const kept = new KeptOutput();
    const pieces = [];
    for (let time = 0; time < 20_000; time += 1) {
      kept.add(out(Buffer.from('x')));
      if (time > 19_900) pieces.push(...kept.take().added);
      else kept.take();
    }
    expect(kept.truncated.stdout).to.equal(true);
    expect(kept.text('stdout').length).to.be.within(16_000, 17_000);
    expect(pieces.at(-1)?.sequence).to.equal(20_000);
  }).timeout(20_000);

  it('never splits a character, however its bytes arrive', () => {
    const text = 'aä€😀z';
    const bytes = Buffer.from(text.repeat(5_000));
    for (const size of [1, 2, 3, 5, 7, 16_383]) {
      const kept = new KeptOutput();
      const pieces = [];
      for (let at = 0; at < bytes.length; at += size) {
        kept.add(out(bytes.subarray(at, at + size)));
        if (at % (size * 100) === 0) pieces.push(...kept.take().added);
      }
      kept.end();
      pieces.push(...kept.take().added);
      expect(pieces.map((piece) => piece.bytes.toString()).join('')).to.equal(text.repeat(5_000));
      expect(textOf(pieces, 'stdout')).to.equal(text.repeat(5_000));
    }
  });

  it('keeps bytes that are not text unchanged', () => {
    const kept = new KeptOutput();
    kept.add(out(Buffer.from([0xff, 0xfe, 0x80, 0xe2])));
    kept.end();
    expect(Buffer.concat(kept.take().added.map(({ bytes }) => bytes))).to.deep.equal(
      Buffer.from([0xff, 0xfe, 0x80, 0xe2]),
    );
  });
});
