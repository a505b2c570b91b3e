import type { Protocol } from '../bodies';
import type { Program, Rig } from '../rig';

/** What a subject is to relay to. */
export interface Upstream {
  readonly url: string;
  readonly pid: number;
}

export interface StartOptions {
  readonly upstream: Upstream;
  /** Arguments for Node of the subjects that run on it, for example the probe of the event loop. */
  readonly nodeArgs?: readonly string[];
  /** Fields of each key that calls are made with: its limits. */
  readonly limits?: Readonly<Record<string, string>> | undefined;
}

/** One of the things that are compared. */
export interface Subject {
  /** What `--subjects` calls it. */
  readonly name: string;
  readonly summary: string;
  /** Its event loop can be watched. */
  readonly isNode: boolean;
  /** It relays streams, and bodies of 20 MB. */
  readonly streams: boolean;
  /** The scenarios it was made for; all of them without. */
  readonly only?: readonly string[];
  /** @throws {NotAvailable} when it cannot be had here. */
  start(rig: Rig, options: StartOptions): Promise<RunningSubject>;
}

export interface RunningSubject {
  /** Where calls are made. */
  readonly url: string;
  /** In which protocol; chat without. */
  readonly protocol?: Protocol;
  readonly headers: Readonly<Record<string, string>>;
  /** The keys of the calls, one after the other; the one in the headers without. */
  readonly keys?: readonly string[];
  /** What calls ask for, each a model by chance; the model of the bench without. */
  readonly models?: readonly string[];
  /** Whose processes, with all they started, are its CPU and memory. */
  readonly pids: readonly number[];
  /** Redis and Postgres where it uses them, in this order: counted apart. */
  readonly storePids: readonly number[];
  /** Its Redis, whose commands are counted. */
  readonly redisUrl?: string;
  readonly version?: string;
  /** Its process, to talk to the probe in it; where `isNode`. */
  readonly program?: Program;
}
