import { randomBytes } from 'node:crypto';
import type { Knex } from 'knex';
import { newId, timeOfId } from '../../core/base/ids';
import type { ReportedCall } from '../../core/ledger/allowances/reported-calls';
import type { OutboxEntry } from '../../core/ledger/ledger';
import { MemoryLedger } from '../../core/ledger/memory-ledger';
import { shipShards } from '../../core/ledger/outbox/ship';
import { migrate, openPostgres } from '../../core/storage/database';
import { quiet as silent } from '../../test/support/databases';
import { cpuSeconds, quiet } from '../measure';
import { attempt, orderOfRound, type Scenario } from '../scenario';
import type { Metrics, Round } from '../table';

/** The number of calls that the shipper (the thread that moves outbox entries to Postgres) writes in one transaction. */
const CALLS_OF_BATCH = 512;
const CALLS_OF_REPORT = 64;
const ACCOUNTS = 40;
const POSTGRES_MICROS = 25;

const ENTRIES = 'an entry for each call';
const REPORTS = `reports of ${CALLS_OF_REPORT} calls`;
const SUBJECTS: Readonly<Record<string, number>> = { [ENTRIES]: 1, [REPORTS]: CALLS_OF_REPORT };

/** Measures the cost of writing ended calls to Postgres: ledger entries, usage records and attempts. The measurement uses no Redis. */
export const records: Scenario = {
  name: 'records',
  summary: 'CPU of Postgres and of the shipper for each call whose entry and record they write',
  includes: () => false,
  defaults: { rounds: 5, calls: 25_600 },
  layout: () => ({
    columns: [
      { key: 'postgresMicros', title: 'Postgres µs/call', digits: 1 },
      { key: 'shipperMicros', title: 'shipper µs/call', digits: 1 },
      { key: 'diskBytes', title: 'bytes on disk/call', digits: 0 },
      { key: 'logBytes', title: 'WAL bytes/call', digits: 0 },
    ],
    targets: [
      {
        what: `≤ ${POSTGRES_MICROS} µs of Postgres a call`,
        subject: REPORTS,
        column: 'postgresMicros',
        atMost: POSTGRES_MICROS,
      },
    ],
    notes: [
      `Batches of ${CALLS_OF_BATCH} calls of ${ACCOUNTS} accounts. Each call has one attempt at an upstream.`,
      'On disk are tables and indexes of entries, records and attempts.',
      'The records of earlier rounds stay. Sums of usage are added apart, once a minute, and are not in it.',
    ],
  }),
  run: async (rig, _subjects, { rounds, calls }) => {
    const postgres = await rig.postgres();
    const database = openPostgres(await postgres.createDatabase(), { log: silent });
    rig.onStop(() => database.destroy());
    await migrate(database);
    const accounts = Array.from({ length: ACCOUNTS }, () => {
      return { accountId: newId(), keyId: newId(), seq: 0, postedE8: 10n ** 15n };
    });
    const measure = async (size: number, count: number): Promise<Metrics> => {
      const batches = Array.from({ length: Math.ceil(count / CALLS_OF_BATCH) }, () => batchOf(accounts, size));
      await quiet([postgres.pid], 5_000);
      rig.signal.throwIfAborted();
      const before = {
        postgres: cpuSeconds([postgres.pid]),
        shipper: process.cpuUsage(),
        ...(await bytesOf(database)),
      };
      for (const entries of batches) await shipShards({ ledger: new LedgerOf(entries), database, log: silent }, [0]);
      const { user, system } = process.cpuUsage(before.shipper);
      const done = batches.length * CALLS_OF_BATCH;
      const bytes = await bytesOf(database);
      return {
        postgresMicros: ((cpuSeconds([postgres.pid]) - before.postgres) / done) * 1e6,
        shipperMicros: (user + system) / done,
        diskBytes: (bytes.disk - before.disk) / done,
        logBytes: (bytes.log - before.log) / done,
      };
    };
    for (const size of Object.values(SUBJECTS)) await measure(size, calls);
    const done: Round[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const metrics: Record<string, Round[string]> = {};
      for (const [name, size] of orderOfRound(Object.entries(SUBJECTS), round)) {
        const result = await attempt(rig, () => measure(size, calls));
        metrics[name] = 'value' in result ? result.value : { failed: result.failure };
      }
      await database.raw('VACUUM ANALYZE');
      rig.options.progress(`round ${round + 1}/${rounds} done`);
      done.push(metrics);
    }
    return { rounds: done, unavailable: {}, versions: {} };
  },
};

async function bytesOf(database: Knex): Promise<{ disk: number; log: number }> {
  const { rows } = await database.raw<{ rows: { disk: number; log: number }[] }>(`
    SELECT (SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree('usage_records'))::float8
      + (SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree('upstream_attempts'))::float8
      + (SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree('ledger_entries'))::float8 AS disk,
      (pg_current_wal_lsn() - '0/0')::float8 AS log`);
  return rows[0] ?? { disk: 0, log: 0 };
}

/** A ledger in memory. Its outbox has one batch of entries until the shipper has written the batch to Postgres. */
class LedgerOf extends MemoryLedger {
  #entries: readonly OutboxEntry[];

  constructor(entries: readonly OutboxEntry[]) {
    super();
    this.#entries = entries;
  }

  override async readOutbox(shards: readonly number[]) {
    return new Map(shards.map((shard) => [shard, this.#entries]));
  }

  override async trimOutbox() {
    this.#entries = [];
  }
}

interface Account {
  readonly accountId: string;
  readonly keyId: string;
  seq: number;
  postedE8: bigint;
}

const COST_E8 = 1_234n;

function batchOf(accounts: readonly Account[], callsOfEntry: number): OutboxEntry[] {
  return Array.from({ length: CALLS_OF_BATCH / callsOfEntry }, () => entryOf(anyOf(accounts), callsOfEntry));
}

function entryOf(account: Account, count: number): OutboxEntry {
  const { accountId, keyId } = account;
  const calls = Array.from({ length: count }, () => callOf(account));
  const amountE8 = -COST_E8 * BigInt(count);
  account.seq += 1;
  account.postedE8 += amountE8;
  const entry = { id: `${Date.now()}-0`, kind: 'charge', accountId, keyId, seq: account.seq, amountE8 } as const;
  const more = { postedE8: account.postedE8, shortfallE8: 0n };
  return count === 1
    ? { ...entry, ...more, rid: calls[0]?.rid ?? '', record: calls[0]?.record }
    : { ...entry, ...more, rid: newId(), record: undefined, calls };
}

function callOf({ accountId, keyId }: Account): ReportedCall {
  const rid = newId();
  const startedAtMs = timeOfId(rid);
  const passes = [{ input: 100, output: 20, cacheRead: 0, cacheWrite: 0 }];
  const record = {
    requestId: `req_${randomBytes(12).toString('hex')}`,
    createdAt: new Date(startedAtMs).toISOString(),
    accountId,
    keyId,
    protocol: 'chat',
    path: '/v1/chat/completions',
    strategy: 'cost',
    modelRequested: `acme/model-${startedAtMs % 20}`,
    model: `model-${startedAtMs % 20}`,
    upstream: `upstream-${startedAtMs % 8}`,
    attempts: 1,
    fallback: false,
    stream: true,
    status: 200,
    source: 'provider',
    inputTokens: 100,
    outputTokens: 20,
    totalTokens: 120,
    cacheCreationTokens: 0,
    cacheReadTokens: 0,
    upstreamCostE8: String(COST_E8),
    billing: 'actual',
    responseTimeMs: 900,
    firstTokenMs: 300,
    configRevision: '3f2a9c0d1e',
    made: [
      {
        startedAtMs,
        upstream: `upstream-${startedAtMs % 8}`,
        credential: 'main',
        model: `model-${startedAtMs % 20}`,
        status: 200,
        ms: 890,
        upstreamRequestId: `req-${randomBytes(12).toString('hex')}`,
        passes,
        isReported: true,
        costE14: '1234000000',
      },
    ],
  };
  return { rid, ending: 'settled', costE8: COST_E8, shortfallE8: 0n, record: JSON.stringify(record) };
}

function anyOf<T>(all: readonly T[]): T {
  return all[Math.floor(Math.random() * all.length)] as T;
}
