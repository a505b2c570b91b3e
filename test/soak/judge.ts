/** Returns a table in which all cells of a column have the same width; the first row is its head. */
export function tableOf(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)));
  const [head, ...rest] = rows.map((row) => `| ${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(' | ')} |\n`);
  return [head, `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |\n`, ...rest].join('');
}

/**
 * The measures, how much the line of each may rise from the first judged sample to the last, and how many minutes a run needs
 * so that neither the start nor a single high sample makes that rise.
 */
export const MEASURES = {
  rssMiB: { title: 'RSS, MiB', maxGrowth: 64, minutes: 20 },
  heapMiB: { title: 'heap used, MiB', maxGrowth: 32, minutes: 20 },
  // An attack leaves up to 150 connections to upstreams, which close when they were idle for 30 s.
  descriptors: { title: 'open descriptors', maxGrowth: 100, minutes: 5 },
  lagMs: { title: 'worst event loop lag, ms', maxGrowth: 100, minutes: 20 },
  outboxSeconds: { title: 'oldest outbox entry, s', maxGrowth: 5, minutes: 5 },
  series: { title: 'series of /metrics', maxGrowth: 50, minutes: 20 },
} as const;

export type Measure = keyof typeof MEASURES;

export interface Sample extends Readonly<Record<Measure, number>> {
  readonly hours: number;
  /** The sum that answers stated for calls older than one sample, minus the charges of these calls. */
  readonly driftUsd: number;
}

export interface Verdict {
  readonly measure: Measure;
  readonly slopePerHour: number;
  /** How much the line rises between its first and last sample. */
  readonly growth: number;
  /** Whether the run was long enough for this measure. */
  readonly isJudged: boolean;
  readonly grows: boolean;
}

interface Point {
  readonly hours: number;
  readonly value: number;
}

/** Returns the slope of the least-squares line, per hour; 0 for points of one moment. */
export function slopePerHour(points: readonly Point[]): number {
  const mean = (of: (point: Point) => number) => points.reduce((sum, point) => sum + of(point), 0) / points.length;
  const [hours, value] = [mean((point) => point.hours), mean((point) => point.value)];
  const spread = points.reduce((sum, point) => sum + (point.hours - hours) ** 2, 0);
  if (spread === 0) return 0;
  return points.reduce((sum, point) => sum + (point.hours - hours) * (point.value - value), 0) / spread;
}

/** Judges each measure by the samples after the first fifth, in which the process warms up. */
export function judge(samples: readonly Sample[]): readonly Verdict[] {
  const judged = samples.slice(Math.floor(samples.length / 5));
  const hours = (judged.at(-1)?.hours ?? 0) - (judged[0]?.hours ?? 0);
  return (Object.keys(MEASURES) as Measure[]).map((measure) => {
    const slope = slopePerHour(judged.map((sample) => ({ hours: sample.hours, value: sample[measure] })));
    const growth = slope * hours;
    const { maxGrowth, minutes } = MEASURES[measure];
    const isJudged = Math.round((samples.at(-1)?.hours ?? 0) * 60) >= minutes;
    return { measure, slopePerHour: slope, growth, isJudged, grows: isJudged && growth > maxGrowth };
  });
}

/** Returns a table of the samples at the start, the quarters and the end, with each verdict. The final drift is measured at rest. */
export function tableOfSoak(samples: readonly Sample[], verdicts: readonly Verdict[], restUsd: number): string {
  const last = samples.length - 1;
  const shown = [0, last / 4, last / 2, last].flatMap((at) => samples[Math.round(at)] ?? []);
  const rounded = (value: number) => String(Math.round(value * 10) / 10);
  const rows = verdicts.map(({ measure, slopePerHour: slope, growth, isJudged, grows }) => {
    const { title, maxGrowth, minutes } = MEASURES[measure];
    const values = [...shown.map((sample) => sample[measure]), slope, growth].map(rounded);
    const verdict = grows ? 'GROWS' : 'flat';
    return [title, ...values, String(maxGrowth), isJudged ? verdict : `not judged (needs ${minutes} minutes)`];
  });
  const drifts = [...shown.slice(0, -1).map(({ driftUsd }) => driftUsd), restUsd].map((usd) => usd.toFixed(8));
  return tableOf([
    ['measure', 'start', 'quarter', 'half', 'end', 'slope per hour', 'growth', 'bound', 'verdict'],
    ...rows,
    ['drift of money, USD', ...drifts, '', '', '0', restUsd === 0 ? 'exact' : 'DIFFERS'],
  ]);
}
