/** Turns rounds into a table. Ratios and differences are computed within a round, from measurements of the same minute; the table has their medians. */

/** The measurements of one subject in one round; a failed round has none. */
export type Metrics = Readonly<Record<string, number>>;
export type Round = Readonly<Record<string, Metrics | Failed>>;

export interface Failed {
  readonly failed: string;
  /** The measurements of a failed round, which are shown because they help to find the cause. */
  readonly measured?: Metrics;
}

export interface Measured {
  readonly key: string;
  readonly title: string;
  readonly digits: number;
}

/** The separator between a row's subject and its case, as in `tollgate @ 20 ms`, if a round measures several cases. */
export const CASE_MARK = ' @ ';

/** A column whose values are relative to another subject of the same round and case. */
export interface Compared extends Measured {
  readonly of: string;
  readonly against: string;
  readonly how: 'ratio' | 'difference';
}

export type Column = Measured | Compared;

export function ratio(of: string, against: string, title: string, digits = 2): Compared {
  return { key: `${of}/${against}`, title, digits, of, against, how: 'ratio' };
}

export interface Target {
  readonly what: string;
  readonly subject: string;
  /** The key of the table column that the target applies to. */
  readonly column: string;
  readonly atLeast?: number;
  readonly atMost?: number;
}

export interface Layout {
  readonly columns: readonly Column[];
  readonly targets: readonly Target[];
  /** Notes that a reader needs to understand the table. */
  readonly notes: readonly string[];
}

export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly rounds: number;
}

export interface Row {
  readonly subject: string;
  readonly cells: Readonly<Record<string, Spread>>;
  readonly problems: readonly string[];
  /** Whether the subject could not start, or its version lacks what the scenario measures. */
  readonly isMissing: boolean;
}

export interface JudgedTarget extends Target {
  readonly spread: Spread | undefined;
  readonly verdict: 'met' | 'missed' | 'not measured';
}

export function spreadOf(values: readonly number[]): Spread | undefined {
  const sorted = [...values].sort((a, b) => a - b);
  const [min] = sorted;
  const max = sorted.at(-1);
  if (min === undefined || max === undefined) return undefined;
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? max;
  const median = sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? min)) / 2;
  return { median, min, max, rounds: sorted.length };
}

export function summarise(
  layout: Layout,
  rounds: readonly Round[],
  subjects: readonly string[],
  unavailable: Readonly<Record<string, string>>,
): Row[] {
  return subjects.map((subject) => {
    const reason = unavailable[subject];
    const cells = layout.columns.flatMap((column): [string, Spread][] => {
      const spread = spreadOf(rounds.flatMap((round) => valueIn(round, subject, column) ?? []));
      return spread === undefined ? [] : [[column.key, spread]];
    });
    const problems = reason === undefined ? problemsOf(rounds, subject) : [`not available: ${reason}`];
    return { subject, cells: Object.fromEntries(cells), problems, isMissing: reason !== undefined };
  });
}

export function judgeTargets(layout: Layout, rows: readonly Row[]): JudgedTarget[] {
  return layout.targets.map((target) => {
    const spread = rows.find(({ subject }) => subject === target.subject)?.cells[target.column];
    return { ...target, spread, verdict: judge(target, spread) };
  });
}

function judge({ atLeast, atMost }: Target, spread: Spread | undefined): JudgedTarget['verdict'] {
  if (spread === undefined) return 'not measured';
  if (atLeast !== undefined && spread.median < atLeast) return 'missed';
  if (atMost !== undefined && spread.median > atMost) return 'missed';
  return 'met';
}

function valueIn(round: Round, subject: string, column: Column): number | undefined {
  if (!('against' in column)) return figure(round, subject, column.key);
  const own = figure(round, subject, column.of);
  const [name = subject, ...cases] = subject.split(CASE_MARK);
  const other = figure(round, [column.against, ...cases].join(CASE_MARK), column.of);
  if (own === undefined || other === undefined || name === column.against) return undefined;
  return column.how === 'ratio' ? own / other : own - other;
}

/** Returns a measurement; undefined if the subject's round failed or did not measure it. */
export function figure(round: Round, subject: string, key: string): number | undefined {
  const metrics = round[subject];
  if (metrics === undefined) return undefined;
  const value = (isFailed(metrics) ? metrics.measured : metrics)?.[key];
  return value === undefined || !Number.isFinite(value) ? undefined : value;
}

function isFailed(row: Metrics | Failed): row is Failed {
  return 'failed' in row;
}

function problemsOf(rounds: readonly Round[], subject: string): string[] {
  return rounds.flatMap((round, index) => {
    const metrics = round[subject];
    return metrics !== undefined && 'failed' in metrics ? [`round ${index + 1} FAILED: ${String(metrics.failed)}`] : [];
  });
}

/** Prints a table with columns as wide as their contents, followed by failures, targets and notes. */
export function render(layout: Layout, rows: readonly Row[], targets: readonly JudgedTarget[]): string {
  const used = layout.columns.filter(({ key }) => rows.some(({ cells }) => cells[key] !== undefined));
  const lines = [
    ['', ...used.map(({ title }) => title)],
    ...rows.map(({ subject, cells }) => [subject, ...used.map((column) => formatCell(cells[column.key], column))]),
  ];
  const widths = [0, ...used.map((_, index) => index + 1)].map((at) =>
    Math.max(...lines.map((line) => line[at]?.length ?? 0)),
  );
  const text = lines.map((line) =>
    line.map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0))).join('  '),
  );
  const problems = rows.flatMap(({ subject, problems }) => problems.map((problem) => `${subject}: ${problem}`));
  const judged = targets.map((target) => renderTarget(target, layout));
  return [...text, ...section('', problems), ...section('Targets', judged), ...section('Notes', layout.notes)].join(
    '\n',
  );
}

function section(title: string, lines: readonly string[]): string[] {
  if (lines.length === 0) return [];
  return ['', ...(title === '' ? [] : [title]), ...lines.map((line) => (title === '' ? line : `  ${line}`))];
}

function formatCell(spread: Spread | undefined, { digits }: Column): string {
  if (spread === undefined) return '–';
  const format = (value: number) =>
    value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
  const { median, min, max, rounds } = spread;
  return rounds === 1 ? format(median) : `${format(median)} (${format(min)}–${format(max)})`;
}

function renderTarget({ what, subject, column, spread, verdict }: JudgedTarget, { columns }: Layout): string {
  const layout = columns.find(({ key }) => key === column);
  const value = layout === undefined || spread === undefined ? '' : `: ${formatCell(spread, layout)}`;
  return `${verdict.toUpperCase().padEnd(12)}  ${subject} ${what}${value}`;
}
