import type { Knex } from 'knex';
import { divideRoundingUp, formatUsd } from '../../core/base/money';
import { type Entry, entryOf } from '../../core/catalog/catalog';
import type { PriceOf } from '../../core/catalog/customer-prices';
import { chargeOf } from '../../core/catalog/price';
import { countsOf, type Pass, type Usage, usageOf } from '../../core/catalog/usage';
import type { UsageRecordRow } from '../../core/catalog/usage-fields';
import type { Configuration } from '../../core/configuration/configuration';
import { upstreamsWithRows } from '../../core/configuration/proposals/apply-rows';
import type { ProposalRow } from '../../core/configuration/proposals/rows';
import { narrow, type UsageFilters } from '../../core/records/usage-filters';

/** The columns of a usage record that its cost at other prices depends on. */
const COLUMNS = [
  'request_id',
  'created_at',
  'account_id',
  'model',
  'upstream',
  'passes',
  'input_tokens',
  'output_tokens',
  'cache_creation_tokens',
  'cache_read_tokens',
  'cost_e8',
  'excess_e8',
] as const satisfies readonly (keyof UsageRecordRow)[];

type ChargedRecord = Pick<UsageRecordRow, (typeof COLUMNS)[number]> & { readonly markup: string | null };

/** What the calls of an account and model cost, and would have cost, in E8 (1e-8 USD). */
interface Sums {
  calls: number;
  costE8: bigint;
  replayedE8: bigint;
}

interface ReplayedItem extends Sums {
  readonly accountId: string;
  readonly model: string;
}

/** The records with charged usage. Calls that were refused or released cost nothing at any price. */
const CHARGED = ['actual', 'estimated', 'partial'];

const BATCH_ROWS = 1_000;

/** Sums what the charged calls cost, and what they would have cost with the prices of these rows. Nothing is charged. */
export async function replay(
  database: Knex,
  configuration: Configuration,
  rows: readonly ProposalRow[],
  filters: UsageFilters,
): Promise<readonly ReplayedItem[]> {
  const costOf = replayer(configuration, rows);
  const items = new Map<string, ReplayedItem>();
  for await (const record of chargedRecords(database, filters)) {
    const { account_id: accountId, cost_e8: costE8 } = record;
    const model = record.model ?? '';
    const key = `${accountId} ${model}`;
    const item = items.get(key) ?? { accountId, model, calls: 0, costE8: 0n, replayedE8: 0n };
    item.calls += 1;
    item.costE8 += costE8;
    item.replayedE8 += costOf(record) ?? costE8;
    items.set(key, item);
  }
  return [...items].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, item]) => item);
}

async function* chargedRecords(database: Knex, filters: UsageFilters): AsyncGenerator<ChargedRecord> {
  for (let last: ChargedRecord | undefined; ; ) {
    const query = database('usage_records as usage')
      .leftJoin('api_keys as key', 'key.id', 'usage.key_id')
      .leftJoin('accounts as account', 'account.id', 'usage.account_id')
      .select(COLUMNS.map((name) => `usage.${name}`))
      .select(database.raw('coalesce(key.markup, account.markup) AS markup'))
      .whereIn('usage.billing', CHARGED)
      .orderBy(['usage.created_at', 'usage.request_id'])
      .limit(BATCH_ROWS);
    narrow(query, filters);
    if (last !== undefined)
      query.whereRaw('(usage.created_at, usage.request_id) > (?::timestamptz, ?::text)', [
        last.created_at.toISOString(),
        last.request_id,
      ]);
    const batch: ChargedRecord[] = await query;
    yield* batch;
    last = batch.at(-1);
    if (batch.length < BATCH_ROWS) return;
  }
}

/**
 * Returns a function that returns what a record would have cost; undefined if the configuration has no price for it any more. The markups
 * of keys and accounts are the current ones.
 */
function replayer(configuration: Configuration, rows: readonly ProposalRow[]) {
  const { catalog } = configuration;
  const upstreams = upstreamsWithRows(configuration, rows);
  const entries = new Map<string, Entry>();
  for (const { name, entries: all } of catalog.models)
    for (const { upstream, model } of all) {
      const entry = upstreams.get(upstream.name)?.get(model.name);
      if (entry !== undefined) entries.set(`${upstream.name} ${name}`, entry);
    }
  const markups = new Map<string | undefined, PriceOf>();
  const priceOf = (markup: string | undefined) => {
    const known = markups.get(markup) ?? catalog.customerPrices.priceOf(markup);
    markups.set(markup, known);
    return known;
  };
  return (record: ChargedRecord): bigint | undefined => {
    const entry = entries.get(`${record.upstream} ${record.model}`);
    const markup = record.markup ?? undefined;
    if (entry === undefined || !catalog.customerPrices.has(markup)) return undefined;
    const { costE8 } = chargeOf(usageIn(record), (pass) => priceOf(markup)(entryOf(entry, pass)));
    return cappedAsBefore(record, costE8);
  };
}

/** A call that cost more than its hold paid a part of its cost, and would have paid the same part. */
function cappedAsBefore({ cost_e8: paidE8, excess_e8: excessE8 }: ChargedRecord, costE8: bigint): bigint {
  if (excessE8 === null || excessE8 === 0n) return costE8;
  return divideRoundingUp(costE8 * paidE8, paidE8 + excessE8);
}

function usageIn({ passes, ...record }: ChargedRecord): Usage {
  if (passes !== null) return { passes: (passes as readonly RecordedPass[]).map(toPass) };
  return usageOf({
    input: countIn(record.input_tokens),
    output: countIn(record.output_tokens),
    cacheWrite: countIn(record.cache_creation_tokens),
    cacheRead: countIn(record.cache_read_tokens),
  });
}

function countIn(count: bigint | null): number | undefined {
  return count === null ? undefined : Number(count);
}

type RecordedPass = Omit<Pass, 'counts'> & Readonly<Record<string, number>>;

function toPass({ model, tier, speed, geo, ...counts }: RecordedPass): Pass {
  return { model, tier, speed, geo, counts: countsOf(counts) };
}

/** Shows sums with their amounts in USD. */
export function showSums({ calls, costE8, replayedE8 }: Sums) {
  return { calls, costUsd: formatUsd(costE8), replayedUsd: formatUsd(replayedE8) };
}
