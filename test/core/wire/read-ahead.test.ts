import { expect } from 'chai';
import type { Dispatcher } from 'undici';
import { BufferedBytes, ReadAhead } from '../../../core/http/buffered-bytes';
import { Exchange } from '../../../core/wire/exchange';

const CHUNK = Buffer.alloc(16_384);
/** Limits of which half is 1.25 MB. */
const LIMITS = { mostBytes: 2_621_440, mostBytesOfAccount: 2_621_440 };

/** An exchange whose upstream sends when the test says, until it is told to wait. */
class Sending {
  readonly exchange: Exchange;
  isPaused = false;

  constructor(ahead?: ReadAhead) {
    const dispatch = () => true;
    this.exchange = new Exchange({ dispatch } as unknown as Dispatcher, { method: 'POST', path: '/' });
    this.exchange.head.catch(() => undefined);
    if (ahead !== undefined) this.exchange.ahead = ahead;
    this.exchange.onRequestStart(this.#controller);
    this.exchange.onResponseStart(this.#controller, 200, {});
  }

  /** Sends chunks until it must wait, at most this many. Returns their number. */
  send(atMost = 1_000): number {
    let sent = 0;
    for (; sent < atMost && !this.isPaused; sent += 1) this.exchange.onResponseData(this.#controller, CHUNK);
    return sent;
  }

  /** Lets the client take everything that waits. */
  takeAll(): void {
    while (this.exchange.isReady) this.exchange.take();
  }

  get #controller(): Dispatcher.DispatchController {
    const sending = this;
    return {
      get paused() {
        return sending.isPaused;
      },
      pause: () => (this.isPaused = true),
      resume: () => (this.isPaused = false),
      abort: () => undefined,
    } as unknown as Dispatcher.DispatchController;
  }
}

describe('reading ahead of a slow client', () => {
  it('buffers up to 1 MB of a stream whose client does not read', () => {
    const sending = new Sending(new ReadAhead('account', new BufferedBytes(LIMITS)));
    expect(sending.send() * CHUNK.length).to.be.within(1_048_576, 1_048_576 + CHUNK.length);
    sending.takeAll();
    expect(sending.isPaused).to.equal(false);
  });

  it('buffers one large read if no budget is left for reading ahead', () => {
    expect(new Sending().send()).to.equal(1);
  });

  it('stops when the budget is used up, and continues when another stream has freed its part', () => {
    const budget = new BufferedBytes(LIMITS);
    const [one, two] = [new Sending(new ReadAhead('one', budget)), new Sending(new ReadAhead('two', budget))];
    one.send();
    expect(two.send() * CHUNK.length).to.be.below(300_000);
    two.takeAll();
    one.exchange.cancel();
    expect(two.send() * CHUNK.length).to.be.at.least(1_048_576);
  });

  it('leaves half of the budget to request bodies', () => {
    const budget = new BufferedBytes(LIMITS);
    for (let stream = 0; stream < 4; stream += 1) new Sending(new ReadAhead('account', budget)).send();
    expect(() => budget.take(LIMITS.mostBytes / 2)).not.to.throw();
  });

  it('frees everything once its client has taken everything', () => {
    const budget = new BufferedBytes(LIMITS);
    for (let round = 0; round < 5; round += 1) {
      const sending = new Sending(new ReadAhead('account', budget));
      sending.send();
      sending.takeAll();
    }
    expect(budget.tryHold('account', LIMITS.mostBytes / 2)).to.equal(true);
  });
});
