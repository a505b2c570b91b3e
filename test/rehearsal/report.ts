export interface Report {
  readonly commit: string;
  readonly debian: string;
  readonly node: string;
  readonly runs: readonly RunReport[];
}

export interface RunReport {
  readonly steps: readonly StepReport[];
}

export interface StepReport extends Outcome {
  readonly step: string;
  readonly seconds: number;
}

export interface Outcome {
  /** Why the step failed; undefined when it did not. */
  readonly problem?: string;
  /** Full titles of the tests that failed. */
  readonly failures: readonly string[];
}

export function hasFailed({ runs }: Report): boolean {
  return runs.some(({ steps }) => steps.some(({ problem }) => problem !== undefined));
}
