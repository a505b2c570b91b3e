import type { Protocol } from '../bodies';
import type { Program, Rig } from '../rig';

/** The upstream that a subject relays calls to. */
export interface Upstream {
  readonly url: string;
  readonly pid: number;
}

export interface StartOptions {
  readonly upstream: Upstream;
  /** Arguments for Node, for example to load the probe of the event loop. */
  readonly nodeArgs?: readonly string[];
  /** The limits of each API key with which the bench calls, as members of the request that creates the key. */
  readonly limits?: Readonly<Record<string, string>> | undefined;
}

/** A program that the bench measures and compares. */
export interface Subject {
  /** The name of the subject in `--subjects`. */
  readonly name: string;
  readonly summary: string;
  /** Whether the subject runs on Node, so that its event loop can be measured. */
  readonly isNode: boolean;
  /** Whether the subject relays streams, and bodies of 20 MB. */
  readonly streams: boolean;
  /** The scenarios that include the subject. Default: all. */
  readonly only?: readonly string[];
  /** Starts the subject. @throws {NotAvailable} if the subject cannot run on this machine */
  start(rig: Rig, options: StartOptions): Promise<RunningSubject>;
}

export interface RunningSubject {
  /** The URL for calls. */
  readonly url: string;
  /** The protocol of the calls. Default: chat. */
  readonly protocol?: Protocol;
  readonly headers: Readonly<Record<string, string>>;
  /** The API keys that calls use one after the other. Default: the key in `headers`. */
  readonly keys?: readonly string[];
  /** The models that calls request, drawn at random. Default: the model of the bench. */
  readonly models?: readonly string[];
  /** The processes whose CPU time and memory count for the subject, together with their children. */
  readonly pids: readonly number[];
  /** The processes of Redis and Postgres, in this order, if the subject uses them. The table shows them separately. */
  readonly storePids: readonly number[];
  /** The URL of the subject's Redis, whose commands the bench counts. Absent if it has none. */
  readonly redisUrl?: string;
  readonly version?: string;
  /** The subject's program, with the preloaded event-loop probe, if `isNode`. */
  readonly program?: Program;
}
