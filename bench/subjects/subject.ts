import type { Protocol } from '../bodies';
import type { Program, Rig } from '../rig';

/** The upstream of a subject. */
export interface Upstream {
  readonly url: string;
  readonly pid: number;
}

export interface StartOptions {
  readonly upstream: Upstream;
  /** Arguments for Node, for example to load the probe of the event loop. */
  readonly nodeArgs?: readonly string[];
  /** Members of each key of the calls: its limits. */
  readonly limits?: Readonly<Record<string, string>> | undefined;
}

/** One of the compared programs. */
export interface Subject {
  /** The name in `--subjects`. */
  readonly name: string;
  readonly summary: string;
  /** Whether its event loop can be measured. */
  readonly isNode: boolean;
  /** Whether it relays streams, and bodies of 20 MB. */
  readonly streams: boolean;
  /** The scenarios that include it. Default: all. */
  readonly only?: readonly string[];
  /** @throws {NotAvailable} if it cannot be run here */
  start(rig: Rig, options: StartOptions): Promise<RunningSubject>;
}

export interface RunningSubject {
  /** The URL for calls. */
  readonly url: string;
  /** The protocol of the calls. Default: chat. */
  readonly protocol?: Protocol;
  readonly headers: Readonly<Record<string, string>>;
  /** The keys of the calls, in turn. Default: the one in the headers. */
  readonly keys?: readonly string[];
  /** The models of the calls, drawn at random. Default: the model of the bench. */
  readonly models?: readonly string[];
  /** The processes that count, with all their children, for its CPU and memory. */
  readonly pids: readonly number[];
  /** The processes of Redis and Postgres if it uses them, in this order; they count separately. */
  readonly storePids: readonly number[];
  /** The URL of its Redis, whose commands are counted. */
  readonly redisUrl?: string;
  readonly version?: string;
  /** Its process with the probe, if `isNode`. */
  readonly program?: Program;
}
