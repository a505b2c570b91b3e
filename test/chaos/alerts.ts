import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Knex } from 'knex';
import type { TestGateway } from '../support/gateway';
import type { Random } from '../support/random';
import { until } from '../support/until';
import { pause } from './faults';

/** One request in this many is answered with an error, and one late. */
const BAD = 8;
const LATE_MS = 2_000;
/** How long deliveries may take at the end; longer than the pauses after two failures. */
const DELIVERED_WITHIN_MS = 300_000;

/** The share of its first balance below which an account is told. Credits let poor accounts pass it often. */
const LOW_SHARE = 0.999;

/** A receiver of webhooks that is slow, answers errors, and can be killed. */
export interface Receiver {
  readonly url: string;
  /** The events in the order in which each account's were first received, as `sequence`. */
  readonly received: ReadonlyMap<string, readonly number[]>;
  kill(): Promise<void>;
  start(): Promise<void>;
  /** From now on it answers each request at once. */
  behave(): void;
}

export async function startReceiver(random: Random): Promise<Receiver> {
  const received = new Map<string, number[]>();
  const seen = new Set<string>();
  let isBad = true;
  let server: Server | undefined;
  let port = 0;
  const start = async () => {
    server = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      if (isBad && random.below(BAD) === 0) return void response.writeHead(500).end();
      const { id, accountId, sequence } = JSON.parse(Buffer.concat(chunks).toString());
      if (!seen.has(id)) {
        seen.add(id);
        received.set(accountId, [...(received.get(accountId) ?? []), sequence]);
      }
      // The event counts as received, although the sender may never see the answer.
      if (isBad && random.below(BAD) === 0) await pause(LATE_MS);
      response.writeHead(204).end();
    });
    server.on('clientError', (_error, socket) => socket.destroy());
    await new Promise<void>((listening) => server?.listen(port, '127.0.0.1', listening));
    port = (server.address() as AddressInfo).port;
  };
  await start();
  return {
    url: `http://127.0.0.1:${port}/`,
    received,
    start,
    kill: async () => {
      const killed = server;
      server = undefined;
      killed?.closeAllConnections();
      await new Promise<void>((closed) => (killed === undefined ? closed() : killed.close(() => closed())));
    },
    behave: () => {
      isBad = false;
    },
  };
}

/** Lets an account be told of its money by the receiver. */
export async function alertAccount(gateway: TestGateway, accountId: string, { url }: Receiver): Promise<void> {
  const path = `/admin/v1/accounts/${accountId}`;
  const { balanceUsd } = (await gateway.admin('GET', path)).json;
  const low = await gateway.admin('PATCH', path, { balanceLowUsd: (Number(balanceUsd) * LOW_SHARE).toFixed(8) });
  if (low.status !== 200) throw new Error(`PATCH ${path} answered ${low.status}`);
  const webhook = await gateway.admin('POST', `${path}/webhooks`, { url });
  if (webhook.status !== 201) throw new Error(`POST ${path}/webhooks answered ${webhook.status}`);
}

export interface Alerts {
  readonly events: number;
  /** Descriptions of events that are missing, too many, not numbered without gaps, not received, or received in another order. */
  readonly wrong: readonly string[];
}

/** Compares the events of money with what the tables of money say, and with what the receiver got. */
export async function accountForAlerts(database: Knex, receiver: Receiver): Promise<Alerts> {
  receiver.behave();
  // What has failed several times would wait for minutes.
  await database('webhook_deliveries').where({ status: 'pending' }).update({ next_at: database.fn.now() });
  await until(
    'all events are delivered',
    async () =>
      (await namesOf(database, `SELECT id::text AS name FROM webhook_deliveries WHERE status <> 'delivered'`)).size ===
      0,
    DELIVERED_WITHIN_MS,
  );
  const found = await namesOf(
    database,
    `SELECT once AS name FROM events WHERE type IN ('budget.reached', 'balance.low')`,
  );
  const expected = await namesOf(database, EXPECTED);
  const wrong = [
    ...[...expected].filter((name) => !found.has(name)).map((name) => `no event of ${name}`),
    ...[...found].filter((name) => !expected.has(name)).map((name) => `an event of ${name}, which is not so`),
  ];
  const feeds = await database.raw<{ rows: { accountId: string; sequences: number[] }[] }>(
    `SELECT account_id::text AS "accountId", json_agg(sequence ORDER BY sequence) AS sequences
     FROM events WHERE account_id IS NOT NULL GROUP BY 1`,
  );
  for (const { accountId, sequences } of feeds.rows) {
    if (sequences.some((sequence, place) => sequence !== place + 1)) wrong.push(`gaps in the feed of ${accountId}`);
    if (JSON.stringify(receiver.received.get(accountId)) !== JSON.stringify(sequences))
      wrong.push(`${accountId} was told ${receiver.received.get(accountId)?.join()} instead of ${sequences.join()}`);
  }
  return { events: found.size, wrong };
}

async function namesOf(database: Knex, sql: string): Promise<ReadonlySet<string>> {
  const { rows } = await database.raw<{ rows: { name: string }[] }>(sql);
  return new Set(rows.map(({ name }) => name));
}

/** The events that must exist, by their names: thresholds that scopes have spent, and entries after which a balance was low. Budgets did not change. */
const EXPECTED = `
  WITH spent AS (
    SELECT scope, kind."window", CASE kind."window" WHEN 'total' THEN '-infinity' ELSE date_trunc(kind."window", day::timestamp) END AS starts,
      sum(spent_e8) AS spent_e8
    FROM scope_spending CROSS JOIN (VALUES ('total'), ('day'), ('week'), ('month')) AS kind ("window") GROUP BY 1, 2, 3),
  limited AS (
    SELECT spent.*, coalesce(own.limit_e8, named.limit_e8) AS limit_e8, coalesce(own.thresholds, named.thresholds) AS thresholds
    FROM spent
    LEFT JOIN budgets AS own ON own.scope = spent.scope AND own."window" = spent."window"
    LEFT JOIN budgets AS named ON spent.scope LIKE 'g:%' AND named.scope = split_part(spent.scope, '=', 1) AND named."window" = spent."window")
  SELECT 'budget.reached ' || concat_ws(' ', scope, "window", starts::date, threshold) AS name
  FROM limited CROSS JOIN LATERAL jsonb_array_elements_text(thresholds) AS threshold
  WHERE limit_e8 IS NOT NULL AND spent_e8 * 100 >= limit_e8 * threshold::bigint
  UNION ALL
  SELECT 'balance.low ' || concat_ws(' ', entry.rid, entry.kind)
  FROM ledger_entries AS entry JOIN accounts AS account ON account.id = entry.account_id
  WHERE entry.amount_e8 < 0 AND posted_e8 < balance_low_e8 AND posted_e8 - amount_e8 >= balance_low_e8`;
