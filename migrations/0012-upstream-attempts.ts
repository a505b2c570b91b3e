import type { Knex } from 'knex';
import { createPartitions } from './partitions';

/**
 * Creates the attempts: one row for each request that was sent to an upstream, so that the records can be set beside a vendor's
 * invoice. A call that several upstreams were asked for has several rows, and so does one that was mirrored.
 *
 * `passes` has what the upstream used, by meter; it is null where nothing is known. `is_reported` says that the upstream itself
 * reported all of it. `cost_e14` is the cost of the passes at the upstream's price in 1e-14 USD, exact. `account_id` is null for an
 * operator's test.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`CREATE TABLE upstream_attempts (
    request_id text NOT NULL,
    created_at timestamptz(3) NOT NULL,
    number int NOT NULL,
    account_id uuid,
    upstream text NOT NULL,
    credential text NOT NULL,
    model text NOT NULL,
    cause text NOT NULL,
    outcome text NOT NULL,
    status int,
    ms int NOT NULL,
    upstream_request_id text,
    passes jsonb,
    is_reported boolean NOT NULL,
    cost_e14 numeric NOT NULL,
    CONSTRAINT upstream_attempts_once UNIQUE (request_id, number, created_at)
  ) PARTITION BY RANGE (created_at)`);
  await knex.raw('CREATE INDEX upstream_attempts_by_upstream ON upstream_attempts (upstream, created_at)');
  await knex.raw(
    `COMMENT ON TABLE upstream_attempts IS 'Requests to upstreams, with what each used there. For operators.'`,
  );
  await createPartitions(knex, 'upstream_attempts');
  await createInvoiceDays(knex);
}

/**
 * Creates the days of upstreams whose vendor's report was set beside the records. A process claims a day, so that only one of them
 * asks the vendor; `compared_at` is null until it has. `difference_e8` is what the vendor charges more, in 1e-8 USD.
 */
async function createInvoiceDays(knex: Knex): Promise<void> {
  await knex.raw(`CREATE TABLE invoice_days (
    upstream text NOT NULL,
    day date NOT NULL,
    claimed_at timestamptz NOT NULL DEFAULT now(),
    compared_at timestamptz,
    difference_e8 numeric,
    PRIMARY KEY (upstream, day)
  )`);
  await knex.raw(`COMMENT ON TABLE invoice_days IS 'Days of which a vendor''s invoice was compared with the records.'`);
}
