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
  /** Returns whether a subject takes part. */
  includes(subject: Subject): boolean;
  /** The settings that it uses, with their defaults, for the help text. */
  readonly defaults: Partial<Settings>;
  layout(settings: Settings): Layout;
  run(rig: Rig, subjects: readonly Subject[], settings: Settings): Promise<Outcome>;
}

export interface Outcome {
  readonly rounds: readonly Round[];
  /** The subjects that could not be started, and why. */
  readonly unavailable: Readonly<Record<string, string>>;
  readonly versions: Readonly<Record<string, string>>;
}

/** Names the rows of one of several cases after it. */
export function inCase({ rounds, unavailable, versions }: Outcome, suffix: string): Outcome {
  const renamed = <T>(rows: Readonly<Record<string, T>>): Record<string, T> =>
    Object.fromEntries(Object.entries(rows).map(([subject, row]) => [subject + suffix, row]));
  return { rounds: rounds.map(renamed), unavailable: renamed(unavailable), versions };
}

/** Combines the rounds of all cases into one outcome. */
export function mergeCases(outcomes: readonly Outcome[]): Outcome {
  const rounds = outcomes.map((outcome) => outcome.rounds);
  return {
    rounds: (rounds[0] ?? []).map((_, at) => Object.assign({}, ...rounds.map((each) => each[at]))),
    unavailable: Object.assign({}, ...outcomes.map(({ unavailable }) => unavailable)),
    versions: Object.assign({}, ...outcomes.map(({ versions }) => versions)),
  };
}

/** Returns the subjects in the order of a round. Each round begins with another one, so that no subject always follows the same one. */
export function orderOfRound<T>(all: readonly T[], round: number): T[] {
  const first = round % Math.max(1, all.length);
  return [...all.slice(first), ...all.slice(0, first)];
}

/** Runs a part of a round. A failure is shown as failed; an unavailable subject is left out of later rounds. */
export async function attempt<T>(rig: Rig, work: () => Promise<T>): Promise<{ readonly value: T } | Failure> {
  try {
    return { value: await work() };
  } catch (error) {
    // Ignores failures that occur because everything is being stopped.
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
