import { expect } from 'chai';
import { FINISH, FINISH_WITH_USAGE, relayStream, Sent, said, USAGE } from '../../support/relayed-stream';

describe('a Chat stream whose client did not request usage', () => {
  it('has the usage in the finish chunk, however long the settlement takes', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((each) => each === 'Timeout').length;
    // Mocha's own timer starts only after this turn.
    await new Promise(setImmediate);
    const before = timers();
    const sent = new Sent();
    let settle: () => void = () => undefined;
    const settled = new Promise<void>((resolve) => {
      settle = resolve;
    });
    const { response, endings, done } = relayStream(sent, said('1234') + FINISH + USAGE, {
      onClientAbort: 'settle',
      settled,
    });
    const written: string[] = [];
    response.write = (chunk: Buffer) => written.push(String(chunk)) > 0;
    await new Promise(setImmediate);
    expect(endings, 'it is being settled').to.have.length(1);
    expect(written, 'nothing is given before').to.deep.equal([]);
    expect(timers(), 'nothing ends the waiting').to.equal(before);
    settle();
    sent.end();
    await done;
    expect(written.join('').replace(',"cost":0.00000000', '')).to.equal(FINISH_WITH_USAGE);
  });
});

describe('one read from the upstream', () => {
  /** Returns what the client receives for these pieces, which arrive together after the stream's first event. */
  async function written(pieces: readonly string[]): Promise<readonly string[]> {
    const sent = new Sent();
    const { response, done } = relayStream(sent, said('first'), { onClientAbort: 'settle' });
    const writes: string[] = [];
    response.write = (chunk: Buffer) => writes.push(String(chunk)) > 0;
    sent.add(...pieces);
    await new Promise(setImmediate);
    sent.end();
    await done;
    const [, ...rest] = writes;
    return rest;
  }

  it('becomes one write to the client', async () => {
    const pieces = ['one', 'two', 'three'].map(said);
    expect(await written(pieces)).to.deep.equal([pieces.join('')]);
  });

  it('is written up to the malformed event', async () => {
    const broken = `data: {"choices":[\n\n`;
    expect(await written([said('one'), said('two') + broken + said('three')])).to.deep.equal([
      said('one') + said('two'),
    ]);
  });

  it('becomes several writes if it is large, so that the relay notices a client that does not read', async () => {
    const piece = said('x'.repeat(10_000));
    expect(await written([piece, piece, piece])).to.deep.equal([piece + piece, piece]);
  });
});
