import { strict as assert } from 'node:assert';
import type { Knex } from 'knex';
import { DatabaseClock } from '../../../../plugins/sandbox/store/database-clock';
import { filesUnder, textOf } from '../../../support/sources';

const NOW_MS = Date.UTC(2026, 10, 21, 8);

/** Simulates a database whose clock is `NOW_MS` at count 1,000, and whose answers take time. */
function world() {
  let countedMs = 1_000;
  const takes = { thereMs: 0, backMs: 0 };
  const raw = async () => {
    countedMs += takes.thereMs;
    const now = new Date(Math.floor(NOW_MS + countedMs - 1_000));
    countedMs += takes.backMs;
    return { rows: [{ now }] };
  };
  const clock = new DatabaseClock({ raw } as unknown as Knex, () => countedMs);
  return { clock, takes, pass: (ms: number) => (countedMs += ms), trueMs: () => NOW_MS + countedMs - 1_000 };
}

describe('the clock of the database', () => {
  it('is known with the precision of the fastest answer, and a slow answer does not reduce that precision', async () => {
    const { clock, takes, pass, trueMs } = world();
    takes.backMs = 300;
    await clock.read();
    assert.ok(Math.abs(clock.now() - trueMs()) <= 301);
    Object.assign(takes, { thereMs: 0.25, backMs: 0.25 });
    await clock.read();
    assert.ok(Math.abs(clock.now() - trueMs()) <= 2);
    pass(60_000);
    for (const slow of [
      { thereMs: 5_000, backMs: 0 },
      { thereMs: 0, backMs: 5_000 },
    ]) {
      Object.assign(takes, slow);
      await clock.read();
      assert.ok(Math.abs(clock.now() - trueMs()) <= 2);
    }
  });

  it('is the only clock of the sandbox plugin, because processes compare times that other processes wrote', () => {
    // Excludes drivers, which report the times of their machines, and unpacked files, which have times of their own.
    const own = filesUnder('plugins/sandbox').filter((path) => !path.includes('/suppliers/'));
    assert.deepEqual(
      own.filter((path) => /Date\.now\b|new Date\(\)/.test(textOf(path))),
      [],
    );
  });
});
