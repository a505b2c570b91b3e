import { type Counts, METERS, type Meter, type TokenMeter } from '../catalog/usage';
import { asArray, asCount, asObject, asText, type JsonObject } from '../json-values';
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
export function usageReader({ counts, total = '', free }: UsageTable) {
  const rows = Object.entries(counts).map(([name, row]) => rowOf(name, row));
  const wholes = rows.flatMap((whole): Whole[] => {
    const parts = rows.filter((part) => part.whole === whole.name);
    return parts.length === 0 ? [] : [{ whole, parts }];
  });
  const totalAt = placeOf(total);
  const paths = [...rows.flatMap(({ at, orSumOf = [] }) => [...at, ...orSumOf]), ...free, total];
  const known: ReadonlySet<string> = new Set(paths.map((path) => path.replace(/\[[^\]]*\]/g, '')));
  return (report: JsonObject, { totalHas }: UsageSettings = {}): ReportedCounts => {
    const reading = new Reading(rows, wholes, report, totalHas);
    const sum = totalAt(report) ?? 0;
    if (sum > 0 && !reading.agreesWith(sum)) reading.suspect.add(total);
    reading.dropContradictions();
    const unknown = unknownNumbers(report, known);
    return { ...reading.result(), ...(unknown !== undefined && { unknown }) };
  };
}

/** Returns the word of an answer that the plain price does not cover; undefined for any other. */
export function unlessPlain(value: unknown, plain: readonly string[]): string | undefined {
  const word = asText(value);
  return word === '' || plain.includes(word) ? undefined : word;
}

interface Row extends CountRow {
  readonly name: string;
  /** The count that it belongs to. */
  readonly whole: string | undefined;
  readonly isMeter: boolean;
  readonly isTokens: boolean;
  /** Whether the total may show that the vendor counts this one inside or beside. Audio and images are always inside. */
  readonly mayMove: boolean;
  /** Whether a 0 is a fact that records show. */
  readonly keepsZero: boolean;
  readonly places: readonly Place[];
  readonly parts: readonly Place[];
}

/** A count with those that belong to it. */
interface Whole {
  readonly whole: Row;
  readonly parts: readonly Row[];
}

const SIDES: ReadonlySet<string> = new Set(['input', 'output']);

function rowOf(name: string, row: CountRow): Row {
  const facts = Object.hasOwn(METERS, name) ? METERS[name as TokenMeter] : undefined;
  const isCache = facts?.counts.startsWith('cache') === true;
  const whole = row.in ?? row.beside;
  return {
    ...row,
    name,
    whole,
    isMeter: facts !== undefined || whole === undefined,
    isTokens: facts !== undefined || whole !== undefined,
    mayMove: SIDES.has(whole ?? '') && (facts === undefined || isCache),
    keepsZero: isCache || SIDES.has(name),
    places: row.at.map(placeOf),
    parts: (row.orSumOf ?? []).map(placeOf),
  };
}

/** Returns all that a report says of a count: none, one or several that differ. */
function saidOf({ places, parts }: Row, report: JsonObject): readonly number[] {
  const said: number[] = [];
  for (const place of places) {
    const count = place(report);
    if (count !== undefined && !said.includes(count)) said.push(count);
  }
  if (said.length > 1) return said.filter((count) => count !== 0);
  const sum = said.length > 0 || parts.length === 0 ? undefined : sumOf(parts.map((place) => place(report)));
  if (sum !== undefined) said.push(sum);
  return said;
}

/** One report. Counts that contradict others are dropped, and named in `suspect`. */
class Reading {
  readonly suspect = new Set<string>();
  readonly #found = new Map<string, number>();
  /** The names of the counts that stand beside the one they belong to. */
  #beside: ReadonlySet<string>;
  #rest = 0;

  constructor(
    private readonly rows: readonly Row[],
    private readonly wholes: readonly Whole[],
    report: JsonObject,
    private readonly totalHas: UsageSettings['totalHas'],
  ) {
    this.#beside = namesOf(rows.filter(({ name, beside }) => beside !== undefined || name === totalHas));
    for (const row of rows) {
      const [first, ...others] = saidOf(row, report);
      if (others.length > 0) this.#doubt(row);
      // Of a part that is reported twice, no count is sure; a whole still has its parts.
      if (first === undefined || (others.length > 0 && row.whole !== undefined)) continue;
      this.#found.set(row.name, Math.max(0, first - (this.#found.get(row.less ?? '') ?? 0)));
    }
  }

  /** Finds out from the total which counts stand beside others. Nothing is charged for a rest that no count explains. */
  agreesWith(total: number): boolean {
    if (this.rows.some(({ name }) => SIDES.has(name) && !this.#found.has(name))) return true;
    const rest = total - this.#sumOf(this.#beside);
    if (rest === 0) return true;
    const movable = this.rows.filter(({ name, mayMove }) => mayMove && (this.#found.get(name) ?? 0) > 0);
    for (const moved of subsetsOf(movable)) {
      const stays = (row: Row) => moved.includes(row) !== this.#beside.has(row.name);
      const beside = namesOf(this.rows.filter(stays));
      if (this.#sumOf(beside) !== total || !this.wholes.every((each) => this.#fits(each, beside))) continue;
      this.#beside = beside;
      return true;
    }
    if (rest > 0 && this.totalHas !== undefined) this.#rest = rest;
    return this.#rest > 0;
  }

  /** Drops the parts of a count that are more than it, or whose whole is unknown. */
  dropContradictions(): void {
    for (const each of this.wholes) {
      if (this.#fits(each, this.#beside)) continue;
      for (const part of each.parts) {
        if (!this.#isIn(part, this.#beside)) continue;
        this.#found.delete(part.name);
        if (this.#found.has(each.whole.name)) this.#doubt(part);
      }
    }
  }

  #sumOf(beside: ReadonlySet<string>): number {
    let sum = 0;
    for (const { name, whole, isTokens } of this.rows)
      if (isTokens && (whole === undefined || beside.has(name))) sum += this.#found.get(name) ?? 0;
    return sum;
  }

  /** Whether the parts inside a count are not more than it. */
  #fits({ whole, parts }: Whole, beside: ReadonlySet<string>): boolean {
    const count = this.#found.get(whole.name) ?? -1;
    let sum = 0;
    for (const part of parts) {
      if (!this.#isIn(part, beside)) continue;
      const own = this.#found.get(part.name) ?? 0;
      if (own > count) return false;
      if (part.isMeter) sum += own;
    }
    return sum <= Math.max(count, 0);
  }

  #isIn({ name }: Row, beside: ReadonlySet<string>): boolean {
    return this.#found.has(name) && !beside.has(name);
  }

  #doubt({ at: [first = ''] }: Row): void {
    this.suspect.add(first);
  }

  result(): ReportedCounts {
    const counts = new Map<Meter, number>();
    for (const { name, whole: of = '', isMeter, keepsZero } of this.rows) {
      const count = this.#found.get(name);
      if (count === undefined) continue;
      if (isMeter && (count > 0 || keepsZero)) counts.set(name, count);
      const whole = counts.get(of);
      if (whole === undefined || isMeter === this.#beside.has(name)) continue;
      counts.set(of, isMeter ? whole - count : whole + count);
    }
    const output = counts.get('output');
    if (output !== undefined) counts.set('output', output + this.#rest);
    const reasoning = sumOf([this.#found.get('reasoning'), this.#rest || undefined]);
    return {
      counts,
      ...(reasoning !== undefined && { reasoning }),
      ...(this.suspect.size > 0 && { suspect: [...this.suspect] }),
    };
  }
}

function namesOf(rows: readonly Row[]): ReadonlySet<string> {
  return new Set(rows.map(({ name }) => name));
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

type Place = (report: JsonObject) => number | undefined;

function placeOf(path: string): Place {
  if (/^\w+$/.test(path)) return (report) => asCount(report[path]);
  const steps = path.split('.').map((step) => step.split(/[[=\]]/));
  return (report) => countAt(report, steps, 0);
}

function countAt(within: unknown, steps: readonly (readonly string[])[], at: number): number | undefined {
  const step = steps[at];
  if (step === undefined) return asCount(within);
  const [member = '', name, value] = step;
  const found = asObject(within)?.[member];
  if (name === undefined) return countAt(found, steps, at + 1);
  const counted = asArray(found).filter((each) => asObject(each)?.[name] === value);
  return sumOf(counted.map((each) => countAt(each, steps, at + 1)));
}
