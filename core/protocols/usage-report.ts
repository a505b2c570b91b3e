import { asArray, asCount, asObject, asText, type JsonObject } from '../base/json-values';
import { type Counts, METERS, type Meter, type TokenMeter, type Usage } from '../catalog/usage';
import { unknownNumbers } from './unknown-numbers';

/** The places of one count in a report, and the count that it belongs to. */
interface CountRow {
  /**
   * Paths such as `prompt_tokens_details.cached_tokens`. `list[name=value].tokens` adds up the items of a list with this value. A 0
   * says nothing beside a count at another place.
   */
  readonly at: readonly string[];
  /** The places whose counts add up to this one, for a report that has it at none of `at`. */
  readonly orSumOf?: readonly string[];
  /** The count that includes this one. */
  readonly in?: string;
  /** The count that this one belongs to but stands beside. */
  readonly beside?: string;
  /** The count that two others include, and that this one is reported with. */
  readonly less?: string;
}

/**
 * Where the vendors of a protocol report their counts. A row is a meter, or has a name of its own; then it is charged like the
 * count that it belongs to. Rows come behind those they name.
 */
interface UsageTable {
  readonly counts: Readonly<Record<string, CountRow>>;
  /** The sum of all counts: it decides which of them are parts of others. */
  readonly total?: string;
  /** Numbers that repeat or divide counts, and those that cost nothing. */
  readonly free: readonly string[];
}

/** What a recipe says of a vendor's reports. `totalHas: reasoning`: what the total has beyond all counts is reasoning. */
export interface UsageSettings {
  readonly totalHas?: 'reasoning' | undefined;
}

interface ReportedCounts {
  readonly counts: Counts;
  readonly reasoning?: number;
  readonly unknown?: readonly string[];
  readonly suspect?: readonly string[];
}

/** Returns a function that reads a report of usage. */
export function usageReader(table: UsageTable) {
  const { counts, total = '', free } = table;
  const rows = new Rows(counts);
  const totalAt = placeOf(total);
  const paths = [...rows.all.flatMap(({ at, orSumOf = [] }) => [...at, ...orSumOf]), ...free, total];
  const known: ReadonlySet<string> = new Set(paths.map((path) => path.replace(/\[[^\]]*\]/g, '')));
  return (report: JsonObject, { totalHas }: UsageSettings = {}): ReportedCounts => {
    const reading = new ReportReader(rows, report, totalHas);
    const sum = totalAt(report) ?? 0;
    if (sum > 0 && !reading.agreesWith(sum)) reading.doubt(total);
    reading.dropContradictions();
    const read = reading.result();
    const unknown = unknownNumbers(report, known);
    return unknown === undefined ? read : { ...read, unknown };
  };
}

/** Returns the usage that a report means. Some streams have a report in each event, and Node 20 is slow to spread a rest. */
export function usageOfReport({ reasoning, unknown, suspect }: ReportedCounts, passes: Usage['passes']): Usage {
  const usage: { -readonly [Name in keyof Usage]: Usage[Name] } = { passes };
  if (reasoning !== undefined) usage.reasoning = reasoning;
  if (unknown !== undefined) usage.unknown = unknown;
  if (suspect !== undefined) usage.suspect = suspect;
  return usage;
}

/** Returns the word of an answer that the plain price does not cover; undefined for any other. */
export function unlessPlain(value: unknown, plain: readonly string[]): string | undefined {
  const word = asText(value);
  return word === '' || plain.includes(word) ? undefined : word;
}

interface Row extends CountRow {
  readonly name: string;
  /** Its number in the table. */
  readonly number: number;
  /** The number of the count of which it is reported as more. */
  readonly lessNumber: number;
  /** The count that it belongs to. */
  readonly whole: string | undefined;
  readonly isMeter: boolean;
  readonly isTokens: boolean;
  /** Whether the total may show that the vendor counts this one inside or beside. Audio and images are always inside. */
  readonly mayMove: boolean;
  /** Whether a 0 is a fact that records show. */
  readonly keepsZero: boolean;
  readonly places: readonly CountReader[];
  readonly parts: readonly CountReader[];
}

/** A count with those that belong to it. */
interface Whole {
  readonly whole: Row;
  readonly parts: readonly Row[];
}

const SIDES: ReadonlySet<string> = new Set(['input', 'output']);

/** A set of rows: one bit for each. */
type RowSet = number;

class Rows {
  readonly all: readonly Row[];
  readonly wholes: readonly Whole[];
  readonly sides: readonly Row[];
  /** Those that stand beside the one they belong to, unless a total shows another. */
  readonly beside: RowSet;

  constructor(counts: UsageTable['counts']) {
    const names = Object.keys(counts);
    this.all = names.map((name, number) => rowOf(name, counts[name] as CountRow, number, names));
    this.wholes = this.all.flatMap((whole): Whole[] => {
      const parts = this.all.filter((part) => part.whole === whole.name);
      return parts.length === 0 ? [] : [{ whole, parts }];
    });
    this.sides = this.all.filter(({ name }) => SIDES.has(name));
    this.beside = setOf(this.all.filter(({ beside }) => beside !== undefined));
  }

  setOf(name: string | undefined): RowSet {
    return setOf(this.all.filter((row) => row.name === name));
  }
}

function setOf(rows: readonly Row[]): RowSet {
  let set = 0;
  for (const { number } of rows) set |= 1 << number;
  return set;
}

function has(set: RowSet, { number }: Row): boolean {
  return (set & (1 << number)) !== 0;
}

function rowOf(name: string, row: CountRow, number: number, names: readonly string[]): Row {
  const facts = Object.hasOwn(METERS, name) ? METERS[name as TokenMeter] : undefined;
  const isCache = facts?.counts.startsWith('cache') === true;
  const whole = row.in ?? row.beside;
  return {
    ...row,
    name,
    number,
    lessNumber: row.less === undefined ? -1 : names.indexOf(row.less),
    whole,
    isMeter: facts !== undefined || whole === undefined,
    isTokens: facts !== undefined || whole !== undefined,
    mayMove: SIDES.has(whole ?? '') && (facts === undefined || isCache),
    keepsZero: isCache || SIDES.has(name),
    places: row.at.map(placeOf),
    parts: (row.orSumOf ?? []).map(placeOf),
  };
}

const NONE: readonly number[] = [];

/** Returns all that a report says of a count: none, one or several that differ. */
function saidOf({ places, parts }: Row, report: JsonObject): readonly number[] {
  let said: number[] | undefined;
  for (const place of places) {
    const count = place(report);
    if (count === undefined || said?.includes(count) === true) continue;
    if (said === undefined) said = [count];
    else said.push(count);
  }
  if (said !== undefined) return said.length > 1 ? said.filter((count) => count !== 0) : said;
  const sum = parts.length === 0 ? undefined : sumOf(parts.map((place) => place(report)));
  return sum === undefined ? NONE : [sum];
}

/** One report. Counts that contradict others are dropped, and named as suspect. Translated streams may have one in each event. */
class ReportReader {
  #suspect: Set<string> | undefined;
  /** The counts by the numbers of their rows. */
  readonly #found: (number | undefined)[] = [];
  /** The counts that stand beside the one they belong to. */
  #beside: RowSet;
  #rest = 0;

  constructor(
    private readonly rows: Rows,
    report: JsonObject,
    private readonly totalHas: UsageSettings['totalHas'],
  ) {
    this.#beside = totalHas === undefined ? rows.beside : rows.beside | rows.setOf(totalHas);
    for (const row of rows.all) this.#found.push(this.#read(row, report));
  }

  #read(row: Row, report: JsonObject): number | undefined {
    const isAtOne = row.places.length === 1 && row.parts.length === 0;
    const said = isAtOne ? undefined : saidOf(row, report);
    const first = said === undefined ? row.places[0]?.(report) : said[0];
    const isDoubtful = said !== undefined && said.length > 1;
    if (isDoubtful) this.#doubtRow(row);
    // Of a part that is reported twice, no count is sure; a whole still has its parts.
    if (first === undefined || (isDoubtful && row.whole !== undefined)) return undefined;
    return Math.max(0, first - (this.#found[row.lessNumber] ?? 0));
  }

  /** Finds out from the total which counts stand beside others. Nothing is charged for a rest that no count explains. */
  agreesWith(total: number): boolean {
    for (const { number } of this.rows.sides) if (this.#found[number] === undefined) return true;
    const rest = total - this.#sumOf(this.#beside);
    if (rest === 0) return true;
    const movable = this.rows.all.filter(({ number, mayMove }) => mayMove && (this.#found[number] ?? 0) > 0);
    for (const moved of subsetsOf(movable)) {
      const beside = this.#beside ^ setOf(moved);
      if (this.#sumOf(beside) !== total || !this.rows.wholes.every((each) => this.#fits(each, beside))) continue;
      this.#beside = beside;
      return true;
    }
    if (rest > 0 && this.totalHas !== undefined) this.#rest = rest;
    return this.#rest > 0;
  }

  /** Drops the parts of a count that are more than it, or whose whole is unknown. */
  dropContradictions(): void {
    for (const each of this.rows.wholes) {
      if (this.#fits(each, this.#beside)) continue;
      for (const part of each.parts) {
        if (!this.#isIn(part, this.#beside)) continue;
        this.#found[part.number] = undefined;
        if (this.#found[each.whole.number] !== undefined) this.#doubtRow(part);
      }
    }
  }

  doubt(path: string): void {
    this.#suspect ??= new Set();
    this.#suspect.add(path);
  }

  #sumOf(beside: RowSet): number {
    let sum = 0;
    for (const row of this.rows.all)
      if (row.isTokens && (row.whole === undefined || has(beside, row))) sum += this.#found[row.number] ?? 0;
    return sum;
  }

  /** Whether the parts inside a count are not more than it. */
  #fits({ whole, parts }: Whole, beside: RowSet): boolean {
    const count = this.#found[whole.number] ?? -1;
    let sum = 0;
    for (const part of parts) {
      if (!this.#isIn(part, beside)) continue;
      const own = this.#found[part.number] ?? 0;
      if (own > count) return false;
      if (part.isMeter) sum += own;
    }
    return sum <= Math.max(count, 0);
  }

  #isIn(row: Row, beside: RowSet): boolean {
    return this.#found[row.number] !== undefined && !has(beside, row);
  }

  #doubtRow({ at: [first = ''] }: Row): void {
    this.doubt(first);
  }

  result(): ReportedCounts {
    const counts = new Map<Meter, number>();
    let reasoning = this.#rest === 0 ? undefined : this.#rest;
    for (const row of this.rows.all) {
      const { name, whole: of = '', isMeter, keepsZero } = row;
      const count = this.#found[row.number];
      if (count === undefined) continue;
      if (name === 'reasoning') reasoning = (reasoning ?? 0) + count;
      if (isMeter && (count > 0 || keepsZero)) counts.set(name, count);
      const whole = counts.get(of);
      if (whole === undefined || isMeter === has(this.#beside, row)) continue;
      counts.set(of, isMeter ? whole - count : whole + count);
    }
    const output = counts.get('output');
    if (output !== undefined && this.#rest !== 0) counts.set('output', output + this.#rest);
    const read: { -readonly [Name in keyof ReportedCounts]: ReportedCounts[Name] } = { counts };
    if (reasoning !== undefined) read.reasoning = reasoning;
    if (this.#suspect !== undefined) read.suspect = [...this.#suspect];
    return read;
  }
}

/** Returns all subsets but the empty one, smaller ones first. */
function subsetsOf<T>(all: readonly T[]): readonly (readonly T[])[] {
  let subsets: T[][] = [[]];
  for (const each of all) subsets = [...subsets, ...subsets.map((subset) => [...subset, each])];
  return subsets.slice(1).sort((one, other) => one.length - other.length);
}

function sumOf(counts: readonly (number | undefined)[]): number | undefined {
  const known = counts.filter((count) => count !== undefined);
  return known.length === 0 ? undefined : known.reduce((sum, count) => sum + count, 0);
}

type CountReader = (report: JsonObject) => number | undefined;

function placeOf(path: string): CountReader {
  if (/^\w+$/.test(path)) return (report) => asCount(report[path]);
  const steps = path.split('.').map((step) => step.split(/[[=\]]/));
  return (report) => countAt(report, steps, 0);
}

function countAt(within: unknown, steps: readonly (readonly string[])[], at: number): number | undefined {
  const step = steps[at];
  if (step === undefined) return asCount(within);
  // By index, because taking a list apart costs more than the look-up.
  const found = asObject(within)?.[step[0] as string];
  const name = step[1];
  if (found === undefined) return undefined;
  if (name === undefined) return countAt(found, steps, at + 1);
  const value = step[2];
  const counted = asArray(found).filter((each) => asObject(each)?.[name] === value);
  return sumOf(counted.map((each) => countAt(each, steps, at + 1)));
}
