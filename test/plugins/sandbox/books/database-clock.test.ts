import { strict as assert } from 'node:assert';
import type { Knex } from 'knex';
import { DatabaseClock } from '../../../../plugins/sandbox/books/database-clock';
import { filesUnder, textOf } from '../../../support/sources';

const NOW_MS = Date.UTC(2026, 10, 21, 8);

/** A database whose clock says `NOW_MS` when the count is at 1,000, and whose answers take their time. */
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

describe("the database's clock", () => {
  it('is known as well as its answers are fast, and what is known is not unlearned', async () => {
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

  it('is the only one that the plugin reads: what one process writes, another compares', () => {
    // Drivers tell of their own machines, and what is unpacked there has a time.
    const own = filesUnder('plugins/sandbox').filter((path) => !path.includes('/suppliers/'));
    assert.deepEqual(
      own.filter((path) => /Date\.now\b|new Date\(\)/.test(textOf(path))),
      [],
    );
  });
});
