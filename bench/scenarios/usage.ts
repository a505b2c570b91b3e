import type { Knex } from 'knex';
import { newId } from '../../core/base/ids';
import { insertUsage, type UsageRow } from '../../core/ledger/outbox/rows';
import { sumSomeUntil } from '../../core/records/usage-roll-up';
import { until } from '../../test/support/until';
import { CHAT_BODY, CHAT_PATH } from '../bodies';
import { cpuSeconds, peakResidentBytes, quiet, resetPeak, residentBytes } from '../measure';
import { startUpstreamNginx } from '../nginx';
import type { Rig } from '../rig';
import { attempt, type Scenario } from '../scenario';
import { type RunningTollgate, runTollgate } from '../subjects/tollgate';
import type { Metrics, Round } from '../table';
import { fillUsageRecords, patientDatabase, RARE_KEY, RARE_MODEL, RARE_UPSTREAM } from '../usage-records';
import { runWrk } from '../wrk';

const PAGE_MS = 50;
const CSV = 'CSV';
const CSV_QUARTER = 'CSV of a quarter of it';
const FOUND = 'record of a call that has just ended';
const INSERT = 'insert';
const INSERT_UNSUMMED = 'insert, without sums';
const INSERT_FEW = 'insert, without sums and the indexes of filters';

/** Queries for pages of 100 records, newest first, by the name of the filter. Those with `admin:` are operator queries over all accounts. */
const PAGES: Readonly<Record<string, string>> = {
  'no filter': '',
  key: 'key={key}',
  'rare key': `key=${RARE_KEY}`,
  model: 'model=model-3',
  'rare model': `model=${RARE_MODEL}`,
  'model nobody called': 'model=nobody',
  upstream: 'upstream=upstream-2',
  'rare upstream': `upstream=${RARE_UPSTREAM}`,
  'status 200': 'status=200',
  'status 429': 'status=429',
  'status nobody got': 'status=418',
  'one day': 'from={day}&to={nextDay}',
  'key, model, one day': 'key={key}&model=model-3&from={day}&to={nextDay}',
  'model, status 502': 'model=model-3&status=502',
  'rare model, status 429': `model=${RARE_MODEL}&status=429`,
  'upstream, status 502': 'upstream=upstream-2&status=502',
  'rare model, rare upstream': `model=${RARE_MODEL}&upstream=${RARE_UPSTREAM}`,
  'deep page': 'to={day}&cursor={cursor}',
  'operator: no filter': 'admin:',
  'operator: account': 'admin:account={account}',
  'operator: upstream': 'admin:upstream=upstream-2',
  'operator: rare upstream': `admin:upstream=${RARE_UPSTREAM}`,
  'operator: model': 'admin:model=model-3',
  'operator: rare model': `admin:model=${RARE_MODEL}`,
  'operator: status 429': 'admin:status=429',
  'operator: upstream, status 502': 'admin:upstream=upstream-2&status=502',
};

/** Measures queries over many usage records (list pages and the CSV export), and how much the search indexes slow down writes. */
export const usage: Scenario = {
  name: 'usage',
  summary: 'pages of 100 and the CSV of many usage records, over HTTP, and the price of writing them',
  includes: () => false,
  defaults: { rounds: 3, records: 1_000_000, pages: 20, seconds: 10, connections: 8 },
  layout: ({ records, connections }) => ({
    columns: [
      { key: 'p50Ms', title: 'p50 ms', digits: 1 },
      { key: 'p99Ms', title: 'p99 ms', digits: 1 },
      { key: 'worstMs', title: 'worst ms', digits: 1 },
      { key: 'callsPerSecond', title: 'calls/s', digits: 0 },
      { key: 'rowsPerSecond', title: 'rows/s', digits: 0 },
      { key: 'growthMebibytes', title: 'MiB more', digits: 1 },
      {
        key: 'moreThanQuarter',
        title: 'MiB more than a quarter',
        digits: 1,
        of: 'growthMebibytes',
        against: CSV_QUARTER,
        how: 'difference',
      },
      { key: 'databaseMicros', title: 'Postgres µs/row', digits: 1 },
    ],
    targets: [
      ...Object.keys(PAGES).map((subject) => ({
        what: `a page in ≤ ${PAGE_MS} ms`,
        subject,
        column: 'p50Ms',
        atMost: PAGE_MS,
      })),
      { what: 'memory that does not grow with the file', subject: CSV, column: 'moreThanQuarter', atMost: 16 },
      { what: 'found within 1 s', subject: FOUND, column: 'p99Ms', atMost: 1_000 },
    ],
    notes: [
      `${records} records in several partitions, 6 of 10 of the account that asks; see bench/usage-records.ts.`,
      'MiB more: highest resident memory of the gateway during the export less that before it.',
      `${FOUND}: from the last byte of its answer until GET /v1/usage/{requestId} has it, with ${connections} other connections calling without a pause.`,
      'Postgres µs/row: CPU of the database for batches of 4,096 as the shipper writes them, into tables of their own, and for adding them up afterwards.',
    ],
  }),
  run: async (rig, _subjects, { rounds, records, pages, seconds, connections }) => {
    const upstream = await startUpstreamNginx(rig);
    const tollgate = await runTollgate(rig, { upstreamUrl: upstream.url, fastLane: true });
    const database = patientDatabase(tollgate.databaseUrl);
    rig.onStop(() => database.destroy());
    rig.options.progress(`usage: making ${records} records`);
    await fillUsageRecords(database, records, tollgate.customer);
    const values = await placeholders(tollgate);
    const done: Round[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const metrics: Record<string, Round[string]> = {};
      const measure = async (name: string, work: () => Promise<Metrics>) => {
        const result = await attempt(rig, work);
        metrics[name] = 'value' in result ? result.value : { failed: result.failure };
      };
      for (const [name, asked] of Object.entries(PAGES))
        await measure(name, () => askPages(tollgate, fill(asked, values), pages));
      await measure(CSV_QUARTER, () => exportAll(tollgate, database, firstQuarter()));
      await measure(CSV, () => exportAll(tollgate, database));
      await measure(FOUND, () => findRecords(rig, tollgate, { seconds, connections }));
      for (const name of [INSERT, INSERT_UNSUMMED, INSERT_FEW])
        await measure(name, () =>
          writeRows(rig, tollgate, { isIndexed: name !== INSERT_FEW, isSummed: name === INSERT }),
        );
      rig.options.progress(`round ${round + 1}/${rounds} done`);
      done.push(metrics);
    }
    return { rounds: done, unavailable: {}, versions: {} };
  },
};

type Values = Readonly<Record<string, string>>;

/** Returns a day in the middle of the records, and the cursor of a list page on that day. */
async function placeholders(tollgate: RunningTollgate): Promise<Values> {
  const now = new Date();
  const day = (offset: number) =>
    new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 46 + offset)).toISOString();
  const values = { key: tollgate.customer.keyId, account: tollgate.customer.accountId, day: day(0), nextDay: day(1) };
  const { nextCursor } = (await (await ask(tollgate, fill('to={day}', values))).json()) as { nextCursor: string };
  return { ...values, cursor: nextCursor };
}

function fill(asked: string, values: Values): string {
  return asked.replace(/\{(\w+)\}/g, (_, name: string) => values[name] ?? '');
}

async function ask(tollgate: RunningTollgate, asked: string): Promise<Response> {
  const isAdmin = asked.startsWith('admin:');
  const query = `/usage?limit=100&${isAdmin ? asked.slice(6) : asked}`;
  const response = isAdmin
    ? await fetch(tollgate.adminUrl + query, { headers: { authorization: `Bearer ${tollgate.adminToken}` } })
    : await fetch(`${tollgate.url}/v1${query}`, { headers: { 'x-api-key': tollgate.customer.key } });
  if (!response.ok) throw new Error(`${query} responded with ${response.status}: ${await response.text()}`);
  return response;
}

async function askPages(tollgate: RunningTollgate, asked: string, pages: number): Promise<Metrics> {
  const times: number[] = [];
  for (let page = 0; page < pages; page += 1) {
    const startedMs = performance.now();
    await (await ask(tollgate, asked)).arrayBuffer();
    times.push(performance.now() - startedMs);
  }
  times.sort((one, two) => one - two);
  return { p50Ms: times[Math.floor(times.length / 2)] ?? 0, worstMs: times.at(-1) ?? 0 };
}

/** Returns the first quarter of the 90 days that the usage records cover. */
function firstQuarter(): Period {
  const now = new Date();
  const from = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1);
  return { from: new Date(from), to: new Date(from + 22.5 * 86_400_000) };
}

interface Period {
  readonly from: Date;
  readonly to: Date;
}

/** Exports the account's records as CSV. Throws if their costs do not add up to the sum in the database. */
async function exportAll(tollgate: RunningTollgate, database: Knex, period?: Period): Promise<Metrics> {
  const { accountId, key } = tollgate.customer;
  const pids = [tollgate.program.pid];
  const before = residentBytes(pids);
  resetPeak(pids);
  const startedMs = performance.now();
  const query = period === undefined ? '' : `?from=${period.from.toISOString()}&to=${period.to.toISOString()}`;
  const response = await fetch(`${tollgate.url}/v1/usage.csv${query}`, { headers: { 'x-api-key': key } });
  const { rows, costE8 } = await addUp(response);
  const seconds = (performance.now() - startedMs) / 1_000;
  const there = await database('usage_records')
    .where({ account_id: accountId })
    .modify((rows) => {
      if (period !== undefined) rows.where('created_at', '>=', period.from).where('created_at', '<', period.to);
    })
    .count('* as rows')
    .sum('cost_e8 as cost')
    .first();
  if (String(rows) !== String(there?.['rows']) || costE8 !== BigInt(String(there?.['cost'])))
    throw new Error(
      `the CSV has ${rows} rows with a total cost of ${costE8} E8, but the database has ${there?.['rows']} rows with ${there?.['cost']} E8`,
    );
  const growthMebibytes = Math.max(0, peakResidentBytes(pids) - before) / 2 ** 20;
  return { rowsPerSecond: rows / seconds, growthMebibytes };
}

/** Makes one call after the other while other calls load the gateway, and waits for the usage record of each call. */
async function findRecords(
  rig: Rig,
  { url, customer }: RunningTollgate,
  load: { readonly seconds: number; readonly connections: number },
): Promise<Metrics> {
  const headers = { 'x-api-key': customer.key, 'content-type': 'application/json' };
  const call = { url: url + CHAT_PATH, headers };
  let isOver = false;
  const loaded = runWrk(rig, { ...call, bodies: [CHAT_BODY], ...load }).finally(() => {
    isOver = true;
  });
  const sample = async (): Promise<number[]> => {
    const times: number[] = [];
    while (!isOver) {
      const answer = await fetch(call.url, { method: 'POST', headers, body: CHAT_BODY });
      await answer.arrayBuffer();
      const endedMs = performance.now();
      const record = `${url}/v1/usage/${answer.headers.get('x-svc-request-id')}`;
      await until('the record is there', async () => (await fetch(record, { headers })).ok);
      times.push(performance.now() - endedMs);
    }
    return times.sort((one, two) => one - two);
  };
  const [{ callsPerSecond }, times] = await Promise.all([loaded, sample()]);
  const at = (share: number) => times[Math.floor(times.length * share)] ?? 0;
  return { p50Ms: at(0.5), p99Ms: at(0.99), worstMs: times.at(-1) ?? 0, callsPerSecond };
}

async function addUp(response: Response): Promise<{ rows: number; costE8: bigint }> {
  let rest = '';
  let lines = 0;
  let costE8 = 0n;
  let column = -1;
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const parts = (rest + chunk).split('\r\n');
    rest = parts.pop() ?? '';
    for (const line of parts) {
      const cells = line.split(',');
      if (lines === 0) column = cells.indexOf('cost');
      else costE8 += BigInt((cells[column] ?? '').replace('.', ''));
      lines += 1;
    }
  }
  return { rows: lines - 1, costE8 };
}

const BATCHES = 25;
const ROWS_OF_BATCH = 4_096;

/** Writes rows into tables of the same form in a separate schema, so that the measured tables do not change. */
async function writeRows(
  rig: Rig,
  { databaseUrl, storePids }: Pick<RunningTollgate, 'databaseUrl' | 'storePids'>,
  { isIndexed, isSummed }: { readonly isIndexed: boolean; readonly isSummed: boolean },
): Promise<Metrics> {
  const admin = patientDatabase(databaseUrl);
  await admin.raw('DROP SCHEMA IF EXISTS measured CASCADE');
  await admin.raw('CREATE SCHEMA measured');
  await admin.raw(
    `CREATE TABLE measured.usage_records (LIKE public.usage_records INCLUDING DEFAULTS INCLUDING ${isIndexed ? 'INDEXES' : 'CONSTRAINTS'})`,
  );
  if (!isIndexed) {
    await admin.raw('CREATE UNIQUE INDEX ON measured.usage_records (request_id, created_at)');
    await admin.raw('CREATE INDEX ON measured.usage_records (account_id, created_at, request_id)');
  }
  if (isSummed) {
    await admin.raw('CREATE TABLE measured.usage_sums (LIKE public.usage_sums INCLUDING ALL) WITH (fillfactor = 80)');
    await admin.raw('CREATE TABLE measured.usage_summed AS SELECT now() AS until');
    await admin.raw(`CREATE TRIGGER sum AFTER INSERT ON measured.usage_records REFERENCING NEW TABLE AS added
      FOR EACH STATEMENT EXECUTE FUNCTION public.sum_usage_after_insert()`);
  }
  await admin.raw('SET search_path = measured, public');
  try {
    await quiet(storePids, 5_000);
    rig.signal.throwIfAborted();
    const before = cpuSeconds(storePids);
    for (let batch = 0; batch < BATCHES; batch += 1) await insertUsage(admin, rowsOf(batch));
    if (isSummed) while (await sumSomeUntil(admin, new Date(Date.now() + 3_600_000)));
    return { databaseMicros: ((cpuSeconds(storePids) - before) / (BATCHES * ROWS_OF_BATCH)) * 1e6 };
  } finally {
    await admin.raw('SET search_path = public');
    await admin.raw('DROP SCHEMA measured CASCADE');
    await admin.destroy();
  }
}

function rowsOf(batch: number): UsageRow[] {
  return Array.from({ length: ROWS_OF_BATCH }, (_, index) => {
    const n = batch * ROWS_OF_BATCH + index;
    const record = {
      requestId: `req_${newId().replaceAll('-', '').slice(8)}`,
      createdAt: new Date(Date.now() + n).toISOString(),
      accountId: `00000000-0000-7000-8000-${String(n % 500).padStart(12, '0')}`,
      keyId: `00000000-0000-7000-9000-${String(n % 2_000).padStart(12, '0')}`,
      protocol: 'chat',
      path: '/v1/chat/completions',
      strategy: 'quality',
      modelRequested: `acme/model-${n % 20}`,
      model: `model-${n % 20}`,
      upstream: `upstream-${n % 8}`,
      attempts: 1,
      fallback: false,
      stream: true,
      status: n % 33 === 0 ? 429 : 200,
      source: 'provider',
      errorCode: null,
      inputTokens: 100,
      outputTokens: 20,
      totalTokens: 120,
      cacheCreationTokens: 0,
      cacheReadTokens: 0,
      billing: 'actual',
      responseTimeMs: 900,
      firstTokenMs: 300,
      configRevision: '3f2a9c0d1e',
    };
    return { record: JSON.stringify(record), rid: newId(), costE8: 12_345n };
  });
}
