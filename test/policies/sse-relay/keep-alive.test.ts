import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { KeepAlive, type QuietStream } from '../../../policies/sse-relay/keep-alive';

const AFTER_MS = 60;

class Quiet implements QuietStream {
  signs = 0;

  constructor(public silentSinceMs: number | undefined) {}

  giveSign(nowMs: number): void {
    this.signs += 1;
    this.silentSinceMs = nowMs;
  }
}

function timers(): number {
  return process.getActiveResourcesInfo().filter((each) => each === 'Timeout').length;
}

describe('the keep-alive comments of streams', () => {
  it('are sent to silent streams only, again and again', async () => {
    const keepAlive = new KeepAlive(AFTER_MS);
    const [silent, speaking] = [new Quiet(performance.now()), new Quiet(undefined)];
    keepAlive.watch(silent);
    keepAlive.watch(speaking);
    await sleep(AFTER_MS * 5);
    keepAlive.forget(silent);
    keepAlive.forget(speaking);
    expect(silent.signs).to.be.within(2, 5);
    expect(speaking.signs).to.equal(0);
  });

  it('need one timer for any number of streams, which stops with the last one and does not keep the process running', () => {
    const before = timers();
    const keepAlive = new KeepAlive(AFTER_MS);
    const streams = Array.from({ length: 100 }, () => new Quiet(undefined));
    for (const each of streams) keepAlive.watch(each);
    expect(keepAlive.hasTimer).to.equal(true);
    // An unreferenced timer is not counted among the active resources.
    expect(timers()).to.equal(before);
    for (const each of streams) keepAlive.forget(each);
    expect(keepAlive.hasTimer).to.equal(false);
  });
});
