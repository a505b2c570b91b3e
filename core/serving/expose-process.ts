import type { Knex } from 'knex';
import { Gauge } from 'prom-client';
import { metrics } from '../base/metrics';
import type { OpenCalls } from '../calls/open-calls';
import { BUFFERED } from '../http/buffered-bytes';
import type { Leases } from '../ledger/leases';

interface Exposed {
  readonly openCalls: Pick<OpenCalls, 'count'>;
  readonly leases: Pick<Leases, 'count' | 'heldE8'>;
  readonly database: Knex;
}

interface Pool {
  numUsed(): number;
  numFree(): number;
  numPendingAcquires(): number;
}

/** Exposes metrics of the process's open calls, holds and connections, read at each scrape. */
export function exposeProcess({ openCalls, leases, database }: Exposed): void {
  gauge(
    'tollgate_calls_in_flight',
    'Calls that have not ended, including those that are read to their end after the client disconnected.',
    () => openCalls.count().calls,
  );
  gauge('tollgate_streams_open', 'Open calls whose answer is a stream.', () => openCalls.count().streams);
  gauge(
    'tollgate_buffered_bytes',
    'Bytes in memory of large bodies and of answers that clients have not read yet.',
    () => BUFFERED.bytes,
  );
  gauge('tollgate_ledger_holds', 'Holds of calls that have not ended.', () => leases.count());
  gauge('tollgate_ledger_held_usd', 'What those hold together.', () => Number(leases.heldE8()) / 1e8);
  const pool: Partial<Pool> | undefined = database.client.pool;
  new Gauge({
    name: 'tollgate_database_connections',
    help: 'Connections of the Postgres pool: `used`, `free`, and `awaited` for queries that wait for one.',
    labelNames: ['state'],
    aggregator: 'sum',
    registers: [metrics],
    collect() {
      this.set({ state: 'used' }, pool?.numUsed?.() ?? 0);
      this.set({ state: 'free' }, pool?.numFree?.() ?? 0);
      this.set({ state: 'awaited' }, pool?.numPendingAcquires?.() ?? 0);
    },
  });
}

function gauge(name: string, help: string, read: () => number): void {
  new Gauge({
    name,
    help,
    aggregator: 'sum',
    registers: [metrics],
    collect() {
      this.set(read());
    },
  });
}
