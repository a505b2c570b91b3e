import { Readable } from 'node:stream';
import { expect } from 'chai';
import { AnswerRoom, BufferedBytes } from '../../../core/http/buffered-bytes';
import { type ChunkReader, IteratedChunks, NO_CHUNKS } from '../../../core/wire/chunk-reader';
import { readAnswer, type WholeAnswer } from '../../../core/wire/read-answer';

const MB = 1_048_576;
const USAGE = { prompt_tokens: 5, total_tokens: 5 };
const ITEM = { type: 'web_search_call', id: 'ws_1', action: { type: 'search', query: 'x', container_id: 'c_1' } };

function textOf(dataBytes: number): string {
  const output = [ITEM, { type: 'message', content: [{ type: 'text', text: 'x'.repeat(dataBytes) }] }];
  return JSON.stringify({ id: 'resp_1', output, note: 'not read', error: null, usage: USAGE, model: 'acme' });
}

/** Returns the text in pieces of this length. */
function piecesOf(text: string, length: number): IteratedChunks {
  const bytes = Buffer.from(text);
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += length) pieces.push(bytes.subarray(at, at + length));
  return new IteratedChunks(Readable.from(pieces).iterator(), NO_CHUNKS);
}

describe('an unstreamed answer', () => {
  const reading = { maxBytes: 4 * MB, needsContent: false };
  const read = (chunks: ChunkReader, how: Parameters<typeof readAnswer>[1]) =>
    new Promise<WholeAnswer>((resolve, reject) => readAnswer(chunks, how, resolve, reject));
  const roomy = () => new AnswerRoom('account', new BufferedBytes({ maxBytes: 16 * MB, maxBytesPerAccount: 16 * MB }));
  /** A room in which the account's own clients leave nothing. */
  const full = () => {
    const budget = new BufferedBytes({ maxBytes: 4 * MB, maxBytesPerAccount: 4 * MB });
    new AnswerRoom('account', budget).wait(4 * MB);
    return new AnswerRoom('account', budget);
  };

  for (const length of [1_000, 65_536, 3 * MB])
    it(`of more than 1 MB is read without keeping its content, in chunks of ${length} bytes`, async () => {
      const text = textOf(MB);
      const whole = await read(piecesOf(text, length), { ...reading, room: roomy() });
      expect(whole.bytes?.toString()).to.equal(text);
      expect(whole).to.deep.include({ byteLength: text.length, isPart: true });
      const { query: _, ...action } = ITEM.action;
      const output = [{ ...ITEM, action }, { type: 'message' }];
      expect(whole.body).to.deep.equal({ id: 'resp_1', output, error: null, usage: USAGE, model: 'acme' });
    });

  for (const length of [1, 7, 64])
    it(`is read without keeping its content if it has no memory space, in chunks of ${length} bytes`, async () => {
      const room = full();
      room.close();
      const whole = await read(piecesOf(textOf(70_000), length), { ...reading, room });
      expect(whole.bytes).to.equal(undefined);
      expect(whole.body).to.deep.include({ id: 'resp_1', usage: USAGE, model: 'acme' });
    });

  it('is parsed completely up to 1 MB if the protocol needs its content, with memory space or without', async () => {
    for (const room of [roomy(), undefined]) {
      const text = textOf(70_000);
      const whole = await read(piecesOf(text, 10_000), { ...reading, room, needsContent: true });
      expect(whole.bytes?.toString()).to.equal(room && text);
      expect(whole.body).to.deep.equal(JSON.parse(text));
    }
  });

  it('is reported as unusable if the body is not JSON or not an object', async () => {
    for (const text of [`${'x'.repeat(2 * MB)}`, JSON.stringify(['x'.repeat(2 * MB)]), textOf(MB).slice(0, -1)])
      expect((await read(piecesOf(text, 65_536), { ...reading, room: undefined })).body).to.equal(undefined);
  });
});
