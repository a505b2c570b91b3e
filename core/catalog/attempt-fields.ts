/**
 * What an attempt was for, or how it ended, where that can be why a vendor's invoice differs from what customers were charged:
 * `answered`: its usage was reported and charged.
 * `unknown`: the same, and the request or the report had something that no table has.
 * `estimated`: it answered without a usable report, and what it used was counted.
 * `left`: the client disconnected before the usage was reported.
 * `failed`: it did not answer, or broke off.
 * `continuation`: it went on from an answer that broke off, and read a second prompt.
 * `mirror`: a rollout sent it a call that another upstream answered.
 * `test`: an operator tested the upstream.
 */
export const ATTEMPT_CAUSES = [
  'answered',
  'unknown',
  'estimated',
  'left',
  'failed',
  'continuation',
  'mirror',
  'test',
] as const;
export type AttemptCause = (typeof ATTEMPT_CAUSES)[number];

/** One request to an upstream as it is recorded, in JSON, once or more per call: what is as usual, or not known, is absent. */
export interface RecordedAttempt {
  /** Milliseconds since 1970. */
  readonly startedAtMs: number;
  /** Place among those of its call, from 1; 0 for a mirror. Absent: its place in the list. */
  readonly number?: number | undefined;
  readonly upstream: string;
  /** The name of the credential it was asked with, never its value. Absent: the upstream's name. */
  readonly credential?: string | undefined;
  /** As the upstream names it. */
  readonly model: string;
  /** Absent: `answered`. */
  readonly cause?: AttemptCause | undefined;
  /** Why there was no answer. Absent: `answered`. */
  readonly outcome?: string | undefined;
  readonly status?: number | undefined;
  /** Until it answered or failed. */
  readonly ms: number;
  readonly upstreamRequestId?: string | undefined;
  /** What it used, as in a usage record; absent where nothing is known of it. */
  readonly passes?: readonly Readonly<Record<string, string | number | undefined>>[] | undefined;
  /** The upstream reported all of it itself. */
  readonly isReported: boolean;
  /** In 1e-14 USD: a decimal integer. */
  readonly costE14: string;
}
