import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import type { Logger } from 'pino';
import { type ExtensionContract, registeringPackage, requireContract } from '../../../core/base/extension-contract';
import type { Schema, Settings } from '../../../core/base/settings';

/**
 * A driver: the gateway's interface to one supplier of sandboxes. It only speaks to its supplier. The gateway decides states, costs,
 * retries and what customers see.
 *
 * Rules for every method:
 * - It returns within `CALL_LIMIT_MS`. Only a running command and the transfer of a file's content may take longer.
 * - It throws only the `SupplierError`s below. Any other error is a fault of the driver.
 * - Repeating it is safe: `suspend` of a suspended, `resume` of a running and `terminate` of a missing instance succeed.
 */
export interface SupplierDriver {
  readonly capabilities: SupplierCapabilities;
  /**
   * The id of the place (the data folder) where the instances live, if only some nodes reach them. An example is an id stored in that data
   * folder. It never changes while the instances exist, and no other place has it. It is undefined if every node reaches every instance.
   */
  readonly place?: string | undefined;

  /**
   * Creates and starts an instance. Resolves when the supplier has accepted the request; `inspect` then reports when the instance runs.
   * @throws AlreadyExists, Rejected, NotSent, Ambiguous, RateLimited
   */
  create(spec: InstanceSpec, options: CreateOptions): Promise<InstanceReference>;

  /**
   * Returns the state of an instance. Returns `gone` only if the supplier says that the instance does not exist.
   * @throws NotSent, Ambiguous, RateLimited
   */
  inspect(reference: InstanceReference): Promise<Inspection>;

  /**
   * Yields every instance with all of these tags, in any order. Throws if it cannot yield the complete list.
   * @throws Ambiguous, NotSent, RateLimited
   */
  list(tags: Tags): AsyncIterable<InstanceSummary>;

  /**
   * Sets the time at which the supplier ends the instance automatically. Does nothing if `capabilities.ttl` is `none`.
   * @throws InstanceGone
   */
  setDeadline(reference: InstanceReference, at: Date): Promise<void>;

  /** Suspends an instance. Resolves when the supplier has confirmed it. @throws InstanceGone, NotSupported, NotSent, Ambiguous */
  suspend(reference: InstanceReference): Promise<void>;
  /** Resumes an instance. Resolves when the supplier has confirmed it. @throws InstanceGone, NotSupported, NotSent, Ambiguous */
  resume(reference: InstanceReference): Promise<void>;
  /** Ends an instance in any state and deletes its files. Resolves when the supplier has confirmed it or does not know the instance. */
  terminate(reference: InstanceReference): Promise<void>;

  /** Starts a shell command. Resolves when the command runs. @throws InstanceGone, NotRunning, NotSupported, NotSent, Ambiguous */
  exec(reference: InstanceReference, command: CommandSpec): Promise<RunningCommand>;
  /** Returns the state of a command that this or another gateway process started. @throws InstanceGone */
  inspectCommand(reference: InstanceReference, commandId: string): Promise<CommandState>;
  /**
   * Sends a signal to a command's process group and to all processes started by the command. Resolves when the supplier has delivered the
   * signal, or if no process remained. After SIGKILL no process of the command runs.
   * @throws InstanceGone, NotRunning
   */
  signal(reference: InstanceReference, commandId: string, signal: CommandSignal): Promise<void>;

  readonly files: SupplierFiles;

  /**
   * Returns the address at which a port of this instance is reachable now. No other instance answers there.
   * @throws InstanceGone, NotRunning, NotSupported, PortClosed
   */
  dialPort(reference: InstanceReference, port: number): Promise<PortAddress>;

  /** Closes the driver's connections and timers. Instances continue to run. */
  close(): Promise<void>;
}

/**
 * The files of instances. Paths are relative to `WORK_FOLDER`, or absolute below the instance's own root. Commands see the same files at
 * the same absolute paths, unless `capabilities.isolation` is `none`. No path may lead out of that root, not even through a link.
 */
export interface SupplierFiles {
  /** Reads a file. @throws FileFailure, InstanceGone, NotRunning */
  read(reference: InstanceReference, path: string): Promise<FileContent>;
  /** Writes a file, replaces an existing one, and creates missing folders. @throws FileFailure, InstanceGone, NotRunning */
  write(reference: InstanceReference, path: string, content: Buffer): Promise<void>;
  /** Lists a folder down to `depth` levels, with at most `LIST_LIMIT` entries. @throws FileFailure, InstanceGone, NotRunning */
  list(reference: InstanceReference, path: string, depth: number): Promise<readonly FileEntry[]>;
  /**
   * Removes a file, or a folder with everything in it. Removes a link, but not its target.
   * @throws FileFailure, InstanceGone, NotRunning
   */
  remove(reference: InstanceReference, path: string): Promise<void>;
}

/** How long a method of a driver may take at most, in milliseconds. */
export const CALL_LIMIT_MS = 60_000;

/** The work folder of an instance. A command without `cwd` starts in it. */
export const WORK_FOLDER = '/workspace';

/** How many entries a list of a folder has at most. */
export const LIST_LIMIT = 10_000;

/** What the supplier can do. */
export interface SupplierCapabilities {
  /**
   * Whether the supplier rejects a second create request with the same name and returns the first instance. A create request without an
   * answer may then be repeated.
   */
  readonly uniqueName: boolean;
  /** When the supplier ends an instance automatically: at a fixed time, after some time without use, or never. */
  readonly ttl: 'absolute' | 'idle' | 'none';
  /** What a suspended instance preserves. `none`: the supplier cannot suspend it. */
  readonly suspend: 'memory' | 'filesystem' | 'none';
  /**
   * What separates an instance from its host. `namespaces`: its own files, processes and network, but no limits of CPU, memory and disk.
   * `none` is no security boundary: a command can do what the gateway can.
   */
  readonly isolation: 'virtual-machine' | 'container' | 'namespaces' | 'none';
  readonly exec: boolean;
  readonly files: boolean;
  readonly ports: boolean;
}

/** Identifies an instance at its supplier. The gateway stores it as JSON. */
export interface InstanceReference {
  /** The supplier's own id, which it never reuses for another instance. */
  readonly id: string;
  /** The name that the instance was created with. */
  readonly name: string;
}

/** Labels that an instance carries at its supplier for its whole life. */
export type Tags = Readonly<Record<string, string>>;

/** The resources of an instance. */
export interface InstanceSpec {
  /** Virtual CPUs; fractions are possible. */
  readonly cpu: number;
  readonly memoryGiB: number;
  /** The size of the instance's own disk in GiB; 0 if the driver chooses the size. */
  readonly volumeGiB: number;
  readonly gpu: readonly { readonly model: string; readonly count: number }[];
  /** Whether the gateway may connect to the instance's ports. An instance without ports has no network. */
  readonly ports: boolean;
  /** The offering's settings for this driver (`supplierSettings`), validated by its `offeringSchema`. */
  readonly settings: unknown;
}

/** The options for creating one instance, besides its resources. */
export interface CreateOptions {
  /** The instance's name: the sandbox's id and a number, the same for every retry. It has at most 63 letters, digits and hyphens. */
  readonly name: string;
  readonly tags: Tags;
  /** The number of seconds after which the supplier ends the instance, unless `setDeadline` changes it earlier. Ignored if `ttl` is `none`. */
  readonly birthTtlSeconds: number;
}

/** The supplier's answer about an instance. */
export type Inspection = Found | Gone;

/** The answer for an instance that exists. */
export interface Found extends InstanceSummary {
  readonly kind: 'found';
  /** A text that changes when the supplier restarts the instance and its memory is lost. Empty until the instance runs. */
  readonly incarnation: string;
  /** When the instance stopped on its own, if the supplier knows. It is set only in the state `ended`. */
  readonly endedAt: Date | undefined;
}

/** The answer for an instance that does not exist. */
export interface Gone {
  readonly kind: 'gone';
  /** When the instance ended, if the supplier still knows. */
  readonly endedAt?: Date;
}

/** The state of an instance. `ended`: the instance still exists, but stopped unprompted. */
export type InstanceState = 'starting' | 'running' | 'suspended' | 'ended';

/** The data of an instance in the supplier's list of instances. */
export interface InstanceSummary {
  readonly reference: InstanceReference;
  readonly state: InstanceState;
  readonly tags: Tags;
  readonly createdAt: Date;
}

/** A command to run. */
export interface CommandSpec {
  /** A UUID that the gateway chooses. Other gateway processes can use it too, for `signal` and `inspectCommand`. */
  readonly id: string;
  /** The text that the instance's `/bin/sh -c` runs. */
  readonly command: string;
  /** The folder in which the command starts: absolute, or relative to the work folder. Default: the work folder. */
  readonly cwd?: string | undefined;
  readonly env: Readonly<Record<string, string>>;
  /** The command's whole standard input, which is closed after these bytes. */
  readonly stdin?: Buffer | undefined;
}

/** A command that has been started. */
export interface RunningCommand {
  /** The output as it arrives. It ends with the command. A slow reader slows down the command. */
  readonly output: AsyncIterable<OutputFrame>;
  /** Resolves after `output` has ended. @throws InstanceGone, or Ambiguous if the end of the command is unknown */
  readonly exit: Promise<CommandExit>;
}

/** A piece of a command's output. */
export interface OutputFrame {
  readonly stream: 'stdout' | 'stderr';
  readonly bytes: Buffer;
}

/** How a command ended. */
export interface CommandExit {
  /** The exit code, or 128 + the signal's number if a signal ended the command. */
  readonly exitCode: number;
}

/** The state of a command. `lost`: the supplier no longer knows the command. */
export type CommandState = { readonly kind: 'running' | 'lost' } | ({ readonly kind: 'ended' } & CommandExit);

/** The signals that a command can receive. */
export const COMMAND_SIGNALS = [
  'SIGHUP',
  'SIGINT',
  'SIGQUIT',
  'SIGKILL',
  'SIGUSR1',
  'SIGUSR2',
  'SIGTERM',
  'SIGCONT',
  'SIGSTOP',
] as const;

/** A signal that a command can receive. */
export type CommandSignal = (typeof COMMAND_SIGNALS)[number];

/** A file whose content is read as it arrives. */
export interface FileContent {
  readonly byteLength: number;
  readonly content: Readable;
}

/** An entry of a folder. */
export interface FileEntry {
  /** The entry's path: relative for entries below `WORK_FOLDER`, without a leading `./`; otherwise absolute. */
  readonly path: string;
  readonly type: 'file' | 'folder' | 'link' | 'other';
  readonly byteLength: number;
  readonly modifiedAt: Date;
}

/** The address of a port of an instance, and how to connect to it. */
export interface PortAddress {
  /** An IP address, or a host name that resolves to public addresses. The gateway connects only to this host and port. */
  readonly host: string;
  readonly port: number;
  /** Whether the gateway connects with TLS. Default: false. */
  readonly tls?: boolean;
  /** Opens a connection to the port. This function is set if `host` is in the instance's own network. @throws PortClosed */
  readonly connect?: () => Promise<Socket>;
  /** Headers that the supplier requires in each request to the port, such as its token. */
  readonly headers: Readonly<Record<string, string>>;
}

/** The reason why a supplier did not fulfill a request. The text may be logged and shown to operators, so it holds no secret. */
export abstract class SupplierError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** An instance with this name and these tags already exists, started with the settings of this request. The gateway uses that instance. */
export class AlreadyExists extends SupplierError {
  constructor(readonly reference: InstanceReference) {
    super(`the instance ${reference.name} already exists`);
  }
}

/** The supplier rejected the request and created nothing. */
export class Rejected extends SupplierError {
  /** Whether the supplier may accept the same request later, for example when it has capacity again. */
  readonly isTemporary: boolean;
  constructor(message: string, options: ErrorOptions & { readonly isTemporary?: boolean } = {}) {
    super(message, options);
    this.isTemporary = options.isTemporary ?? false;
  }
}

/** The supplier received nothing of the request, so repeating it is safe. */
export class NotSent extends SupplierError {}

/** The gateway sent the request, and does not know whether the supplier carried it out. */
export class Ambiguous extends SupplierError {}

/** The gateway sent the request, and the supplier did not answer in time. */
export class TimedOut extends Ambiguous {}

/** The supplier rejected the request because it received too many requests. It changed nothing. */
export class RateLimited extends SupplierError {
  constructor(
    message: string,
    readonly retryAfterSeconds: number,
  ) {
    super(message);
  }
}

/** The supplier says that the instance does not exist. */
export class InstanceGone extends SupplierError {}

/** The instance exists, but its state (starting, suspended or ended) does not allow the operation. */
export class NotRunning extends SupplierError {}

/** The supplier or the instance does not support this operation in any state. */
export class NotSupported extends SupplierError {}

/** No program in the instance listens on the port. */
export class PortClosed extends SupplierError {}

/** An operation on a path named by the customer failed. It changed nothing. */
export class FileFailure extends SupplierError {
  constructor(
    readonly reason: 'not-found' | 'path-invalid' | 'is-folder' | 'not-folder' | 'no-space' | 'not-allowed',
    message: string,
  ) {
    super(message);
  }
}

/** The parts of the gateway that a driver receives when the gateway opens it. */
export interface SupplierContext {
  readonly log: Logger;
  /** A folder of the driver's own that outlives the process. The gateway creates it on first use. */
  readonly dataFolder: string;
}

/** A kind of supplier. A package registers it once; the gateway opens it once for each configured supplier of this kind. */
export interface SupplierKind<S extends Schema = Schema, O extends Schema = Schema> {
  readonly contract: 'supplier/1';
  /** The value of `driver:` in the supplier's settings. */
  readonly name: string;
  readonly summary: string;
  /** The JSON Schema of the supplier's settings without `driver`: its address and how to access it. */
  readonly schema: S;
  /** The JSON Schema of an offering's settings for the driver (`supplierSettings`), such as an image or a template. */
  readonly offeringSchema: O;
  /** Opens a supplier. @throws if the settings can never work. It does not throw if the supplier merely does not answer now */
  open(settings: Settings<S>, context: SupplierContext): Promise<SupplierDriver>;
}

/** Lets TypeScript check a driver against its own settings. */
export function defineSupplier<const S extends Schema, const O extends Schema>(
  kind: SupplierKind<S, O>,
): SupplierKind<S, O> {
  return kind;
}

const kinds = new Map<string, { readonly kind: SupplierKind; readonly packageName: string }>();

const CONTRACT: ExtensionContract = { kind: 'driver', version: 'supplier/1', functions: ['open'] };

/** Registers a kind of supplier. @throws if the kind does not implement this contract, or if its name is already registered */
export function registerSupplier(kind: SupplierKind): void {
  requireContract(kind, CONTRACT);
  const known = kinds.get(kind.name);
  if (known !== undefined && known.kind !== kind)
    throw new Error(`another driver is already named "${kind.name}", in ${known.packageName}: rename this one`);
  kinds.set(kind.name, { kind, packageName: registeringPackage() });
}

export function findSupplier(name: string): SupplierKind | undefined {
  return kinds.get(name)?.kind;
}

export function supplierNames(): string[] {
  return [...kinds.keys()].sort();
}
