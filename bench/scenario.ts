import { NotAvailable, type Rig } from './rig';
import type { Subject } from './subjects/subject';
import type { Layout, Round } from './table';

export interface Settings {
  readonly rounds: number;
  readonly seconds: number;
  readonly warmupSeconds: number;
  readonly connections: number;
  readonly bodyBytes: number;
  readonly calls: number;
  readonly streams: number;
  readonly events: number;
  readonly gapMs: number;
  readonly idleStreams: number;
  readonly stalledStreams: number;
  readonly records: number;
  readonly pages: number;
  readonly sandboxes: number;
}

export interface Scenario {
  readonly name: string;
  readonly summary: string;
  /** Returns whether the scenario measures a subject. */
  includes(subject: Subject): boolean;
  /** The settings that the scenario uses, with their defaults, for the help text. */
  readonly defaults: Partial<Settings>;
  layout(settings: Settings): Layout;
  run(rig: Rig, subjects: readonly Subject[], settings: Settings): Promise<Outcome>;
}

export interface Outcome {
  readonly rounds: readonly Round[];
  /** The reason for each subject that could not start, by the subject's name. */
  readonly unavailable: Readonly<Record<string, string>>;
  readonly versions: Readonly<Record<string, string>>;
}

/** Appends the name of a measured case to the row names of an outcome, because a scenario with several cases has several rows per program. */
export function inCase({ rounds, unavailable, versions }: Outcome, suffix: string): Outcome {
  const renamed = <T>(rows: Readonly<Record<string, T>>): Record<string, T> =>
    Object.fromEntries(Object.entries(rows).map(([subject, row]) => [subject + suffix, row]));
  return { rounds: rounds.map(renamed), unavailable: renamed(unavailable), versions };
}

/** Combines the outcomes of a scenario's cases into one. Each round then has the rows of all cases. */
export function mergeCases(outcomes: readonly Outcome[]): Outcome {
  const rounds = outcomes.map((outcome) => outcome.rounds);
  return {
    rounds: (rounds[0] ?? []).map((_, at) => Object.assign({}, ...rounds.map((each) => each[at]))),
    unavailable: Object.assign({}, ...outcomes.map(({ unavailable }) => unavailable)),
    versions: Object.assign({}, ...outcomes.map(({ versions }) => versions)),
  };
}

/** Returns the subjects in the order of a round. Each round begins with a different subject, so that no subject always runs after the same one. */
export function orderOfRound<T>(all: readonly T[], round: number): T[] {
  const first = round % Math.max(1, all.length);
  return [...all.slice(first), ...all.slice(0, first)];
}

/** Runs a part of a measurement round. Returns a failure instead of throwing. Later rounds skip a program that cannot run on this machine. */
export async function attempt<T>(rig: Rig, work: () => Promise<T>): Promise<{ readonly value: T } | Failure> {
  try {
    return { value: await work() };
  } catch (error) {
    // Throws if the bench is stopping its services, because the failure is then only a consequence of the stop.
    rig.signal.throwIfAborted();
    const cause = error instanceof Error && error.cause instanceof Error ? ` (${error.cause.message})` : '';
    const message = error instanceof Error ? error.message + cause : String(error);
    return { failure: message, isUnavailable: error instanceof NotAvailable };
  }
}

export interface Failure {
  readonly failure: string;
  readonly isUnavailable: boolean;
}
