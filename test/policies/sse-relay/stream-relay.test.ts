import { expect } from 'chai';
import type { Counted } from '../../../core/calls/call';
import { outputTokens } from '../../../core/catalog/usage';
import { cut } from '../../fuzz/mutate';
import { seeded } from '../../support/random';
import { FINISH, relayStream, Sent, said, USAGE } from '../../support/relayed-stream';

/** Resolves when all that has arrived is relayed. */
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('a stream that is relayed to a client', () => {
  /** Relays a stream that begins with `head`, and records what is written. */
  function relay(head: string) {
    const sent = new Sent();
    const relayed = relayStream(sent, head, { onClientAbort: 'drain', isUnchanged: true });
    const written: string[] = [];
    relayed.response.write = (chunk: Buffer) => written.push(String(chunk)) > 0;
    return { sent, written, ...relayed };
  }

  const TEXTS = Array.from({ length: 8 }, (_, at) => said(`word ${at}`));

  for (const [what, pieces] of [
    ['of one piece', [TEXTS.join('')]],
    ['of several pieces', TEXTS],
    ['that ends inside an event', [TEXTS.join('').slice(0, -9), TEXTS.join('').slice(-9)]],
  ] as const) {
    it(`is written once for each read ${what}`, async () => {
      const { sent, written, done } = relay(said('first'));
      await turn();
      const before = written.length;
      sent.add(...pieces);
      await turn();
      expect(written.slice(before)).to.deep.equal([TEXTS.join('')]);
      sent.add(FINISH, USAGE);
      sent.end();
      await done;
    });
  }

  it('keeps every byte and every token count, however the bytes are split into reads', async () => {
    for (let seed = 1; seed <= 100; seed += 1) {
      const random = seeded(seed);
      const texts = Array.from({ length: 30 }, () => random.pick(['a', ' wörld', '\n"', '日本', ' ', ': x\n\n']));
      const usage = seed % 2 === 0 ? USAGE : '';
      const stream = Buffer.from([...texts.map(said), FINISH, usage, 'data: [DONE]\n\n'].join(''));
      const { sent, written, done, response, endings } = relay(said('first'));
      for (const piece of cut(random, stream)) {
        sent.add(piece);
        if (random.below(2) === 0) await turn();
      }
      sent.end();
      await done;
      expect(written.join('') + response.body, `seed ${seed}`).to.equal(said('first') + String(stream));
      const output = usage !== '' ? 7 : Math.ceil(Buffer.byteLength(`first${texts.join('')}`) / 4);
      expect(outputTokens((endings[0] as Counted).usage), `seed ${seed}`).to.equal(output);
    }
  });

  it('is not read further from the upstream while the client does not read', async () => {
    const { sent, written, done, response } = relay(said('first'));
    await turn();
    let isFull = true;
    Object.defineProperty(response, 'writableNeedDrain', { get: () => isFull });
    sent.add(said('one'));
    await turn();
    const before = written.length;
    sent.add(said('two'), said('three'));
    await turn();
    expect(written).to.have.length(before);
    expect(sent.isReady).to.equal(true);
    isFull = false;
    response.emit('drain');
    await turn();
    expect(written.slice(before)).to.deep.equal([said('two') + said('three')]);
    sent.end();
    await done;
  });
});
