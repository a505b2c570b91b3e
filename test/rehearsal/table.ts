import type { RunReport, StepReport } from './report';

/** Returns a table with one row a step and one column a run, then what went wrong. */
export function tableOf(runs: readonly RunReport[]): string {
  const names = [...new Set(runs.flatMap(({ steps }) => steps.map(({ step }) => step)))];
  const rows = [
    ['', ...runs.map((_, index) => `run ${index + 1}`)],
    ...names.map((name) => [name, ...runs.map(({ steps }) => cell(steps.find(({ step }) => step === name)))]),
  ];
  return [...aligned(rows), ...runs.flatMap(problemsOf)].map((line) => `${line}\n`).join('');
}

function cell(step: StepReport | undefined): string {
  if (step === undefined) return '-';
  return `${step.seconds.toFixed(1)} s${step.problem === undefined ? '' : ' failed'}`;
}

function aligned(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((text, column) => (column === 0 ? text.padEnd(widths[0] ?? 0) : text.padStart(widths[column] ?? 0)))
      .join('  '),
  );
}

function problemsOf({ steps }: RunReport, index: number): readonly string[] {
  return steps.flatMap(({ step, problem, failures }) =>
    problem === undefined ? [] : [`run ${index + 1}, ${step}: ${problem}`, ...failures.map((title) => `  ${title}`)],
  );
}
