import type { Knex } from 'knex';

/**
 * Creates the first partition of a table that is partitioned by month, and a default partition for months without one. The first partition
 * takes all rows up to the end of the current month (UTC).
 */
export async function createPartitions(knex: Knex, table: string): Promise<void> {
  const { rows } = await knex.raw<{ rows: { month: string; end: string }[] }>(`
    SELECT to_char(month, 'YYYY_MM') AS month, to_char(month + interval '1 month', 'YYYY-MM-DD') AS end
    FROM (SELECT date_trunc('month', now() AT TIME ZONE 'UTC') AS month) AS current`);
  const [current] = rows;
  if (current === undefined) throw new Error('Postgres returned no row with the current month');
  await knex.raw(
    `CREATE TABLE ${table}_to_${current.month} PARTITION OF ${table} FOR VALUES FROM (MINVALUE) TO ('${current.end} 00:00:00+00')`,
  );
  await knex.raw(`CREATE TABLE ${table}_other PARTITION OF ${table} DEFAULT`);
}
