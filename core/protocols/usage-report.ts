import { asArray, asCount, asObject, asText, type JsonObject } from '../base/json-values';
import { type Counts, METERS, type Meter, type TokenMeter, type Usage } from '../catalog/usage';
import { unknownNumbers } from './unknown-numbers';

/** Where a usage report has one count, and which other count it belongs to. */
interface CountRow {
  /**
   * Paths of the count, such as `prompt_tokens_details.cached_tokens`. `list[name=value].tokens` is the sum over the list's items with this
   * value. A 0 is ignored if another path has a count.
   */
  readonly at: readonly string[];
  /** Paths whose counts add up to this count, for a usage report that has none of the paths in `at`. */
  readonly orSumOf?: readonly string[];
  /** The name of the count that includes this one. */
  readonly in?: string;
  /** The name of the count that this count belongs to without being included in it. */
  readonly beside?: string;
  /** The name of another count that vendors include in the reported number of this count. The gateway subtracts that other count. */
  readonly less?: string;
}

/**
 * Where the vendors of a protocol report their counts. A row named after a meter (a unit with a price) is charged by that meter. Any other
 * row is charged like the count that it belongs to. A row stands after the rows that it names.
 */
interface UsageTable {
  readonly counts: Readonly<Record<string, CountRow>>;
  /** The path of the sum of all counts. It shows which counts include others. */
  readonly total?: string;
  /** Paths of known numbers that are not separate counts, because they repeat other counts, split them, or cost nothing. */
  readonly free: readonly string[];
}

/** An upstream's settings for its vendor's usage reports. `totalHas: reasoning`: tokens of the total that no count contains are reasoning tokens. */
export interface UsageSettings {
  readonly totalHas?: 'reasoning' | undefined;
}

interface ReportedCounts {
  readonly counts: Counts;
  readonly reasoning?: number;
  readonly unknown?: readonly string[];
  readonly suspect?: readonly string[];
}

/** Returns a function that reads usage reports by `table`. */
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

/** Returns the usage for a report. It avoids rest and spread, because some streams report in each event and Node 20 is slow at both. */
export function usageOfReport({ reasoning, unknown, suspect }: ReportedCounts, passes: Usage['passes']): Usage {
  const usage: { -readonly [Name in keyof Usage]: Usage[Name] } = { passes };
  if (reasoning !== undefined) usage.reasoning = reasoning;
  if (unknown !== undefined) usage.unknown = unknown;
  if (suspect !== undefined) usage.suspect = suspect;
  return usage;
}

/** Returns a value such as a tier if it is a word outside `plain`, the words that the model's plain price covers; undefined otherwise. */
export function unlessPlain(value: unknown, plain: readonly string[]): string | undefined {
  const word = asText(value);
  return word === '' || plain.includes(word) ? undefined : word;
}

interface Row extends CountRow {
  readonly name: string;
  /** The index of this count's row in the usage table. */
  readonly number: number;
  /** The index of the row in the usage table of the count that `less` names; -1 if `less` is absent. */
  readonly lessNumber: number;
  /** The name of the count that this count belongs to, from `in` or `beside`; undefined if this count belongs to no other. */
  readonly whole: string | undefined;
  readonly isMeter: boolean;
  readonly isTokens: boolean;
  /** Whether the reported total may show if another count includes this count. Counts of audio and images are always included. */
  readonly mayMove: boolean;
  /** Whether usage records also show this count if the vendor reports 0. */
  readonly keepsZero: boolean;
  readonly places: readonly CountReader[];
  readonly parts: readonly CountReader[];
}

/** A count with the counts that belong to it. */
interface Whole {
  readonly whole: Row;
  readonly parts: readonly Row[];
}

const SIDES: ReadonlySet<string> = new Set(['input', 'output']);

/** A set of rows of the usage table, with one bit for each row. */
type RowSet = number;

class Rows {
  readonly all: readonly Row[];
  readonly wholes: readonly Whole[];
  readonly sides: readonly Row[];
  /** The counts that are reported separately from the count that they belong to, unless the reported total shows otherwise. */
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

/** Returns the different numbers that a report has for one count: none, one or several. */
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

/** Reads one usage report. Drops counts that contradict others, and names them as suspect. A translated stream may have a report in each event. */
class ReportReader {
  #suspect: Set<string> | undefined;
  /** The counts in the report, by the index of their row in the usage table. */
  readonly #found: (number | undefined)[] = [];
  /** The counts that this report has separately from the count that they belong to, so no other count includes them. */
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
    // If a report has two different numbers for one count, a count that is part of another count becomes unknown. Any other count keeps its first
    // number, because its parts need a count that includes them.
    if (first === undefined || (isDoubtful && row.whole !== undefined)) return undefined;
    return Math.max(0, first - (this.#found[row.lessNumber] ?? 0));
  }

  /**
   * Returns whether the counts add up to the reported total, and finds which counts include others. Tokens of the total that no count
   * explains are charged only with `totalHas`.
   */
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

  /** Drops each partial count if the count that includes it is smaller or unknown. */
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

  /** Returns whether a count is at least as large as the parts that it includes. */
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

/** Returns all subsets except the empty one, smaller ones first. */
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
  // The elements of `step` are read by index, because destructuring an array takes longer.
  const found = asObject(within)?.[step[0] as string];
  const name = step[1];
  if (found === undefined) return undefined;
  if (name === undefined) return countAt(found, steps, at + 1);
  const value = step[2];
  const counted = asArray(found).filter((each) => asObject(each)?.[name] === value);
  return sumOf(counted.map((each) => countAt(each, steps, at + 1)));
}
