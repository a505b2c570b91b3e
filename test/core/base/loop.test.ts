import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { beginRest, endRest, onFirstFailure, pauseAtRest, startLoop } from '../../../core/base/loop';
import { until } from '../../support/until';

const LONG_MS = 60_000;
const ignore = () => undefined;

describe('a background loop', () => {
  it('runs its work at once, and again after each pause', async () => {
    let times = 0;
    const loop = startLoop(
      async () => {
        times += 1;
      },
      { everyMs: 1, whenFailed: ignore },
    );
    expect(times).to.equal(1);
    await until('it has worked three times', () => times >= 3);
    await loop.stop();
    const before = times;
    await sleep(20);
    expect(times).to.equal(before);
  });

  it('runs again when it is woken during a pause', async () => {
    let times = 0;
    const loop = startLoop(
      async () => {
        times += 1;
      },
      { everyMs: LONG_MS, whenFailed: ignore },
    );
    await until('it pauses', () => times === 1);
    loop.wake();
    await until('it has worked again', () => times === 2);
    await loop.stop();
  });

  it('never pauses more than 50 ms longer than configured while the process is idle, and never skips the pause', () => {
    for (const ms of [1, 125, 4_999, 5_000, 30_000])
      for (let nowMs = 0; nowMs < 12_000; nowMs += 7.5) {
        const pauseMs = pauseAtRest(ms, nowMs);
        expect(pauseMs).to.be.within(Math.min(ms, 50), ms + 50);
        if (ms >= 5_000) expect((nowMs + pauseMs) % 5_000).to.be.closeTo(0, 1e-6);
      }
  });

  it('pauses longer while the process is idle, and runs at once when the process becomes busy', async () => {
    const times = { resting: 0, usual: 0 };
    const begin = (of: keyof typeof times, atRestMs?: number) => {
      const work = async () => {
        times[of] += 1;
      };
      return startLoop(work, { everyMs: 1, whenFailed: ignore, ...(atRestMs !== undefined && { atRestMs }) });
    };
    beginRest();
    const loops = [begin('resting', LONG_MS), begin('usual')];
    await until('the other loop has worked often', () => times.usual > 20);
    expect(times.resting).to.equal(1);
    endRest();
    await until('it works as usual', () => times.resting > 5);
    await Promise.all(loops.map((loop) => loop.stop()));
  });

  it('treats several wake-ups within a short time as one', async () => {
    let times = 0;
    const loop = startLoop(
      async () => {
        times += 1;
      },
      { everyMs: LONG_MS, collectMs: 30, whenFailed: ignore },
    );
    await sleep(1);
    for (let wake = 0; wake < 10; wake += 1) {
      loop.wake();
      // Waits for one turn, not a pause: on a busy machine ten pauses may outlast the time in which wakes are joined.
      await Promise.resolve();
    }
    await until('it has worked again', () => times === 2);
    await sleep(60);
    await loop.stop();
    expect(times).to.equal(2);
  });

  it('continues after a failure, reports the number of consecutive failures, and drops wake-ups from a failed run', async () => {
    const told: number[] = [];
    let times = 0;
    const loop = startLoop(
      async () => {
        times += 1;
        loop.wake();
        if (times !== 3) throw new Error('away');
      },
      { everyMs: () => (times < 5 ? 5 : LONG_MS), firstAfterMs: 1, whenFailed: (_, failures) => told.push(failures) },
    );
    await until('it has failed four times', () => told.length === 4);
    await sleep(20);
    await loop.stop();
    expect(told).to.deep.equal([1, 2, 1, 2]);
  });

  it('reports only the first of several consecutive failures', async () => {
    const told: string[] = [];
    const tell = onFirstFailure((error) => told.push(String(error)));
    for (const [message, times] of [
      ['one', 1],
      ['two', 2],
      ['three', 1],
    ] as const)
      tell(new Error(message), times);
    expect(told).to.deep.equal(['Error: one', 'Error: three']);
  });

  it('aborts the signal of its current run when it is stopped, and waits for that run to end', async () => {
    const seen: boolean[] = [];
    const work = async (signal: AbortSignal) => {
      await sleep(LONG_MS, undefined, { signal }).catch(ignore);
      seen.push(signal.aborted);
    };
    const loop = startLoop(work, { everyMs: LONG_MS, whenFailed: ignore });
    await loop.stop();
    expect(seen).to.deep.equal([true]);
  });
});
