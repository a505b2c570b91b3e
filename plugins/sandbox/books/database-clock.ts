import type { Knex } from 'knex';

/** How far clocks drift apart between two looks is far below a millisecond. */
export const READ_CLOCK_EVERY_MS = 5_000;

/**
 * The time as the database has it, which all processes share: leases, deadlines and what is billed are written by one of them
 * and compared by another, whatever their own clocks say. Between two looks a clock counts on that nobody can set.
 */
export class DatabaseClock {
  /** Its time less this process's own count. */
  #aheadMs = performance.timeOrigin;

  constructor(
    private readonly database: Knex,
    private readonly countedMs = () => performance.now(),
  ) {}

  readonly now = (): number => Math.round(this.countedMs() + this.#aheadMs);

  /** It was read at some moment between the question and the answer: what is known better than that is kept. */
  readonly read = async (): Promise<void> => {
    const askedMs = this.countedMs();
    const { rows } = await this.database.raw<{ rows: { now: Date }[] }>('SELECT clock_timestamp() AS now');
    const answeredMs = this.countedMs();
    const [row] = rows;
    if (row === undefined) throw new Error('the database returned no time');
    const readMs = row.now.getTime();
    // A time read is cut to whole milliseconds.
    this.#aheadMs = Math.min(Math.max(this.#aheadMs, readMs - answeredMs), readMs + 1 - askedMs);
  };
}
