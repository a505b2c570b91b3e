import type { Knex } from 'knex';

/** How often a process reads the database's clock. Between two readings, the clocks of process and database drift apart by far less than 1 ms. */
export const READ_CLOCK_EVERY_MS = 5_000;
export const READ_CLOCK_AT_REST_EVERY_MS = 30_000;

/**
 * The database's time, which all processes share. One process writes claims, deadlines and billed times, and another compares
 * them, so the processes' own clocks must not matter. Between two readings it adds the time of a monotonic clock.
 */
export class DatabaseClock {
  /** The database's time minus this process's monotonic time. */
  #aheadMs = performance.timeOrigin;

  constructor(
    private readonly database: Knex,
    private readonly countedMs = () => performance.now(),
  ) {}

  readonly now = (): number => Math.round(this.countedMs() + this.#aheadMs);

  /** Reads the database's clock, at an unknown moment between query and answer. An earlier offset that the reading does not contradict is kept. */
  readonly read = async (): Promise<void> => {
    const askedMs = this.countedMs();
    const { rows } = await this.database.raw<{ rows: { now: Date }[] }>('SELECT clock_timestamp() AS now');
    const answeredMs = this.countedMs();
    const [row] = rows;
    if (row === undefined) throw new Error('the database returned no time');
    const readMs = row.now.getTime();
    // Postgres answers in whole milliseconds, rounded down.
    this.#aheadMs = Math.min(Math.max(this.#aheadMs, readMs - answeredMs), readMs + 1 - askedMs);
  };
}
