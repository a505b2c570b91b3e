import type { Knex } from 'knex';
import { E14_PER_E8 } from '../../core/base/money';
import type { AttemptCause } from '../../core/catalog/attempt-fields';
import { type Catalog, entryNamed, type Upstream } from '../../core/catalog/catalog';
import type { Meter, TokenMeter } from '../../core/catalog/usage';
import type { Egress } from '../../core/wire/egress';
import { countExpiredCalls, type OwnAttempts, type OwnCount, sumAttempts, sumCharges, sumCounts } from './own-attempts';
import { boundsOf, DAY_MS, type Days, type Report, toE8, utcDayOf } from './report';
import { readReport } from './vendors';

/** Why a vendor's count may differ from the records: an attempt's recorded cause, a killed process (`expired`), or unknown (`unexplained`). */
type DifferenceCause = AttemptCause | 'expired' | 'unexplained';

/** A count that differs between the vendor's report and the records. */
export interface CountDifference {
  readonly day: string;
  readonly model: string;
  readonly meter: Meter;
  readonly reported: bigint;
  readonly recorded: bigint;
  /** The vendor's count minus the recorded count. */
  readonly difference: bigint;
  /** The difference times the model's price without tiers or variants, in 1e-8 USD; null if the configuration has no such price. */
  readonly differenceE8: bigint | null;
  /** Every cause that can explain the difference, with its number of attempts. The list has several causes if the records cannot show which one applies. */
  readonly causes: readonly { readonly cause: DifferenceCause; readonly attempts: bigint }[];
}

/** What the attempts of one day cost the platform, for one recorded cause (such as `answered` or `mirror`). */
interface CauseCost extends Pick<OwnAttempts, 'day' | 'cause' | 'attempts' | 'uncertain'> {
  readonly costE8: bigint;
}

/** The comparison of one day's cost. Amounts are in 1e-8 USD. */
interface CostComparison {
  readonly day: string;
  readonly reportedE8: bigint;
  /** The cost of all attempts at the configured prices. */
  readonly recordedE8: bigint;
  readonly differenceE8: bigint;
  /** The part of the cost difference that comes from differing counts; null if other upstreams share the bill or a model has no price. */
  readonly ofCountsE8: bigint | null;
  /** The rest of the cost difference: other prices, tiers or charges of the vendor; null if `ofCountsE8` is null. */
  readonly ofPricesE8: bigint | null;
  /** The amount charged to customers for the day's calls. */
  readonly chargedE8: bigint;
  readonly workspaces: readonly { readonly workspaceId: string | null; readonly reportedE8: bigint }[];
  /** Whether the vendor's and the recorded amount differ by more than the upstream's `alarmAboveUsd`, for the whole day or for one model and meter. */
  readonly isAlarm: boolean;
}

export interface Comparison {
  readonly counts: readonly CountDifference[];
  readonly costs: readonly CostComparison[];
  readonly causes: readonly CauseCost[];
}

/** The records of the compared days, for one upstream and for the upstreams that share its bill. */
interface RecordedUsage {
  readonly counts: readonly OwnCount[];
  readonly attempts: readonly OwnAttempts[];
  /** The calls whose process was killed, by day and requested model. Such calls have no attempts. */
  readonly expired: readonly { readonly day: string; readonly model: string; readonly calls: bigint }[];
  readonly chargedE8: ReadonlyMap<string, bigint>;
}

/** Compares a vendor's report with the records. */
export function compare(
  upstream: Upstream,
  days: readonly string[],
  report: Report,
  recorded: RecordedUsage,
): Comparison {
  const counts = compareCounts(upstream, report, recorded);
  return {
    counts,
    costs: days.map((day) => compareCost(upstream, day, counts, report, recorded)),
    causes: causesOf(recorded.attempts),
  };
}

interface CountKey {
  readonly day: string;
  readonly model: string;
  readonly meter: Meter;
  reported: bigint;
  recorded: bigint;
  /** The part of the recorded count that the upstream did not reliably report, by the attempts' recorded cause (such as `estimated` or `left`). */
  readonly estimated: Map<AttemptCause, bigint>;
}

function compareCounts(upstream: Upstream, report: Report, recorded: RecordedUsage): readonly CountDifference[] {
  const places = new Map<string, CountKey>();
  const at = (day: string, model: string, meter: Meter): CountKey => {
    const key = `${day}\n${model}\n${meter}`;
    const known = places.get(key);
    if (known !== undefined) return known;
    const place = { day, model, meter, reported: 0n, recorded: 0n, estimated: new Map() };
    places.set(key, place);
    return place;
  };
  const meters = new Set<Meter>();
  const learned = learnNames(upstream, recorded.counts);
  for (const { day, model, counts } of report.usage) {
    for (const [meter, count] of counts) {
      meters.add(meter);
      at(day, nameHere(upstream, model) ?? learned.get(model) ?? model, meter).reported += count;
    }
  }
  for (const { day, meter, cause, count, estimated, ...names } of recorded.counts) {
    const place = at(day, modelOf(upstream, names), meter);
    place.recorded += count;
    if (estimated > 0n) place.estimated.set(cause, (place.estimated.get(cause) ?? 0n) + estimated);
  }
  // A meter that the report lacks, such as searches, cannot be compared. An empty report says that nothing was used.
  const isCompared = ({ meter }: CountKey) => meters.size === 0 || meters.has(meter);
  const differing = [...places.values()].filter((each) => isCompared(each) && each.reported !== each.recorded);
  return differing.map((place) => toDifference(upstream, place, recorded)).sort(byPlace);
}

function toDifference(upstream: Upstream, place: CountKey, recorded: RecordedUsage): CountDifference {
  const { day, model, meter, reported } = place;
  const difference = reported - place.recorded;
  const rate = rateE14(upstream, model, meter);
  const differenceE8 = rate === undefined ? null : toE8(difference * rate);
  const causes = causesOfDifference(upstream, place, difference, recorded);
  return { day, model, meter, reported, recorded: place.recorded, difference, differenceE8, causes };
}

/**
 * Finds the causes that can explain a difference. Any attempt without certain usage can raise the vendor's count. Only a record that the
 * gateway estimated too high can make the vendor's count lower than the recorded one.
 */
function causesOfDifference(
  upstream: Upstream,
  { day, model, estimated }: CountKey,
  difference: bigint,
  { attempts, expired }: RecordedUsage,
): CountDifference['causes'] {
  const uncertain = new Map<DifferenceCause, bigint>();
  const add = (cause: DifferenceCause, many: bigint) => {
    if (many > 0n) uncertain.set(cause, (uncertain.get(cause) ?? 0n) + many);
  };
  for (const each of attempts) {
    if (each.upstream !== upstream.name || each.day !== day || modelOf(upstream, each) !== model) continue;
    const isPossible = difference > 0n || (estimated.get(each.cause) ?? 0n) >= -difference;
    if (isPossible) add(each.cause, each.uncertain);
  }
  if (difference > 0n)
    for (const each of expired) if (each.day === day && modelOf(upstream, each) === model) add('expired', each.calls);
  if (uncertain.size === 0) return [{ cause: 'unexplained', attempts: 0n }];
  return [...uncertain].map(([cause, many]) => ({ cause, attempts: many }));
}

/** Returns the model that ran: the model named in the answer if the upstream's configuration has it, else the requested one. */
function modelOf(upstream: Upstream, { model, answered = null }: { model: string; answered?: string | null }): string {
  const named = answered === null ? undefined : nameHere(upstream, answered);
  return named ?? nameHere(upstream, model) ?? model;
}

/** Returns the configured name of a model, because vendors and clients may use other names. */
function nameHere(upstream: Upstream, name: string): string | undefined {
  return entryNamed(upstream.models, name)?.name;
}

/**
 * Returns model names that occur only in upstreams' answers, each with its requested model. A vendor's report uses these names. Omits names
 * that belong to several models.
 */
function learnNames(upstream: Upstream, counts: readonly OwnCount[]): ReadonlyMap<string, string> {
  const models = new Map<string, Set<string>>();
  for (const { model, answered } of counts) {
    if (answered === null || nameHere(upstream, answered) !== undefined) continue;
    models.set(answered, (models.get(answered) ?? new Set()).add(modelOf(upstream, { model })));
  }
  const known = [...models].flatMap(([name, [first, ...others]]) =>
    first === undefined || others.length > 0 ? [] : [[name, first] as const],
  );
  return new Map(known);
}

/** Returns the price, without tiers or variants, of one token or piece (such as a web search), in 1e-14 USD; undefined if there is none. */
function rateE14(upstream: Upstream, model: string, meter: Meter): bigint | undefined {
  const price = entryNamed(upstream.models, model)?.price;
  if (price === undefined) return undefined;
  const piece = price.pieces.get(meter);
  if (piece !== undefined) return piece * E14_PER_E8;
  return Object.hasOwn(price.rates, meter) ? price.rates[meter as TokenMeter] : undefined;
}

function compareCost(
  upstream: Upstream,
  day: string,
  counts: readonly CountDifference[],
  { costs }: Report,
  { attempts, chargedE8 }: RecordedUsage,
): CostComparison {
  const ofDay = costs.filter((each) => each.day === day && isOfBill(upstream, each.workspaceId));
  const reportedE14 = sum(ofDay.map(({ amountE14 }) => amountE14));
  const own = attempts.filter((each) => each.day === day);
  const recordedE14 = sum(own.map(({ costE14 }) => costE14));
  const difference = toE8(reportedE14) - toE8(recordedE14);
  const differing = counts.filter((each) => each.day === day);
  const isAlone = own.every((each) => each.upstream === upstream.name);
  const isPriced = differing.every(({ differenceE8 }) => differenceE8 !== null);
  const ofCounts = isAlone && isPriced ? sum(differing.map(({ differenceE8 }) => differenceE8 ?? 0n)) : null;
  const bound = upstream.reporting?.alarmAboveE8 ?? 0n;
  const differences = [difference, ...differing.map(({ differenceE8 }) => differenceE8 ?? 0n)];
  return {
    day,
    reportedE8: toE8(reportedE14),
    recordedE8: toE8(recordedE14),
    differenceE8: difference,
    ofCountsE8: ofCounts,
    ofPricesE8: ofCounts === null ? null : difference - ofCounts,
    chargedE8: chargedE8.get(day) ?? 0n,
    workspaces: byWorkspace(ofDay),
    isAlarm: differences.some((each) => each > bound || -each > bound),
  };
}

/** Tells whether a cost belongs to the upstream's bill. Anthropic's default workspace has no id. */
function isOfBill({ reporting }: Upstream, workspaceId: string | null): boolean {
  const wanted = reporting?.workspaceId;
  return wanted === undefined || wanted === (workspaceId ?? 'default');
}

function byWorkspace(costs: Report['costs']): CostComparison['workspaces'] {
  const sums = new Map<string | null, bigint>();
  for (const { workspaceId, amountE14 } of costs) sums.set(workspaceId, (sums.get(workspaceId) ?? 0n) + amountE14);
  return [...sums].map(([workspaceId, amountE14]) => ({ workspaceId, reportedE8: toE8(amountE14) }));
}

function causesOf(attempts: readonly OwnAttempts[]): readonly CauseCost[] {
  const sums = new Map<
    string,
    { day: string; cause: AttemptCause; attempts: bigint; uncertain: bigint; costE14: bigint }
  >();
  for (const { day, cause, ...more } of attempts) {
    const key = `${day} ${cause}`;
    const known = sums.get(key) ?? { day, cause, attempts: 0n, uncertain: 0n, costE14: 0n };
    known.attempts += more.attempts;
    known.uncertain += more.uncertain;
    known.costE14 += more.costE14;
    sums.set(key, known);
  }
  return [...sums.values()]
    .map(({ costE14, ...each }) => ({ ...each, costE8: toE8(costE14) }))
    .sort((one, other) => compareTexts(`${one.day} ${one.cause}`, `${other.day} ${other.cause}`));
}

function sum(amounts: readonly bigint[]): bigint {
  return amounts.reduce((all, each) => all + each, 0n);
}

function byPlace(one: CountDifference, other: CountDifference): number {
  return compareTexts(`${one.day} ${one.model} ${one.meter}`, `${other.day} ${other.model} ${other.meter}`);
}

function compareTexts(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

export interface InvoiceSources {
  readonly database: Knex;
  readonly egress: Egress;
  readonly catalog: Catalog;
}

/** Reads a vendor's report of these days and compares it with the records. @throws like `readReport` */
export async function compareUpstream(
  { database, egress, catalog }: InvoiceSources,
  upstream: Upstream,
  days: Days,
  signal?: AbortSignal,
): Promise<Comparison> {
  const report = await readReport(egress, upstream, days, signal);
  const names = catalog.upstreams.filter((each) => isOnSameBill(each, upstream)).map(({ name }) => name);
  const recorded = {
    counts: await sumCounts(database, upstream.name, days),
    attempts: await sumAttempts(database, names, days),
    expired: await countExpiredCalls(database, days),
    chargedE8: await sumCharges(database, names, days),
  };
  return compare(upstream, daysIn(days), report, recorded);
}

/** Tells whether two upstreams share a bill. A vendor reports costs by workspace or organisation, not by API key. */
function isOnSameBill({ name, reporting }: Upstream, other: Upstream): boolean {
  if (name === other.name) return true;
  const its = other.reporting;
  if (reporting === undefined || its === undefined) return false;
  return (
    reporting.url.href === its.url.href &&
    reporting.credential === its.credential &&
    reporting.workspaceId === its.workspaceId
  );
}

function daysIn(days: Days): readonly string[] {
  const { start, end } = boundsOf(days);
  const count = (end.getTime() - start.getTime()) / DAY_MS;
  return Array.from({ length: count }, (_, at) => utcDayOf(start.getTime() + at * DAY_MS));
}
