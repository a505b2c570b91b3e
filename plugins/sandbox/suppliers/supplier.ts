import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import type { Logger } from 'pino';
import { type Contract, requireContract } from '../../../core/contracts';
import type { Schema, Settings } from '../../../core/settings';

/**
 * What the gateway asks of whoever runs sandboxes. A driver only speaks to its supplier: what should be, what it costs,
 * when to ask again and what to tell the customer belong to the gateway.
 *
 * What every method holds to:
 * - It ends by itself, within `CALL_LIMIT_MS`; only a running command and a file's content may take longer.
 * - It throws nothing but the `SupplierError`s below; anything else is a fault of the driver.
 * - A repetition is safe: `suspend` of what is suspended, `resume` of what runs and `terminate` of what is gone succeed.
 */
export interface SupplierDriver {
  readonly capabilities: SupplierCapabilities;
  /**
   * Names where the instances live when only some nodes reach them, such as an id kept in the driver's data folder. The same for as
   * long as the instances are there, and never that of another place. Without it every node reaches every instance.
   */
  readonly place?: string | undefined;

  /**
   * Makes and starts an instance. Resolves when the supplier has taken it; `inspect` says when it runs.
   * @throws AlreadyExists, Rejected, NotSent, Ambiguous, RateLimited
   */
  create(spec: InstanceSpec, options: CreateOptions): Promise<InstanceReference>;

  /** @throws NotSent, Ambiguous, RateLimited. `gone` only on the supplier's word that there is no such instance. */
  inspect(reference: InstanceReference): Promise<Inspection>;

  /**
   * Every instance that carries all of these tags, in no order.
   * @throws Ambiguous, NotSent or RateLimited rather than end early: a list that ends is whole.
   */
  list(tags: Tags): AsyncIterable<InstanceSummary>;

  /** The supplier ends the instance by itself at this time. Does nothing where `capabilities.ttl` is `none`. @throws InstanceGone */
  setDeadline(reference: InstanceReference, at: Date): Promise<void>;

  /** Resolves when it is confirmed. @throws InstanceGone, NotSupported, NotSent, Ambiguous */
  suspend(reference: InstanceReference): Promise<void>;
  /** Resolves when it is confirmed. @throws InstanceGone, NotSupported, NotSent, Ambiguous */
  resume(reference: InstanceReference): Promise<void>;
  /** Ends it with all it holds, in whatever state it is. Resolves when the supplier has confirmed it or knows of none. */
  terminate(reference: InstanceReference): Promise<void>;

  /** Starts a shell command. Resolves when it runs. @throws InstanceGone, NotRunning, NotSupported, NotSent, Ambiguous */
  exec(reference: InstanceReference, command: CommandSpec): Promise<RunningCommand>;
  /** What became of a command that was started, perhaps by another process. @throws InstanceGone */
  inspectCommand(reference: InstanceReference, commandId: string): Promise<CommandState>;
  /**
   * Sends a signal to a command's whole process group and to what it has started. Resolves when it was delivered, also when
   * nothing was left to deliver it to. After SIGKILL nothing of the command runs. @throws InstanceGone, NotRunning
   */
  signal(reference: InstanceReference, commandId: string, signal: CommandSignal): Promise<void>;

  readonly files: SupplierFiles;

  /** Where a port of this instance, and of no other, answers now. @throws InstanceGone, NotRunning, NotSupported, PortClosed */
  dialPort(reference: InstanceReference, port: number): Promise<PortAddress>;

  /** Lets go of connections and timers; instances run on. */
  close(): Promise<void>;
}

/**
 * Paths are relative to `WORK_FOLDER`, or absolute below the instance's own root. Commands see the same files at the same
 * absolute paths, unless `capabilities.isolation` is `none`. No path leads out of that root, not by a link either.
 */
export interface SupplierFiles {
  /** @throws FileFailure, InstanceGone, NotRunning */
  read(reference: InstanceReference, path: string): Promise<FileContent>;
  /** Makes the folders on the way; replaces what is there. @throws FileFailure, InstanceGone, NotRunning */
  write(reference: InstanceReference, path: string, content: Buffer): Promise<void>;
  /** What is in a folder, down to `depth` levels, at most `LIST_LIMIT` entries. @throws FileFailure, InstanceGone, NotRunning */
  list(reference: InstanceReference, path: string, depth: number): Promise<readonly FileEntry[]>;
  /** Removes a file, or a folder with all that is in it; a link, not what it leads to. @throws FileFailure, InstanceGone, NotRunning */
  remove(reference: InstanceReference, path: string): Promise<void>;
}

/** The longest a method may take. */
export const CALL_LIMIT_MS = 60_000;

/** Where a command sees the instance's own folder, when it is started without `cwd`. */
export const WORK_FOLDER = '/workspace';

/** The most entries of one list. */
export const LIST_LIMIT = 10_000;

/** What the supplier can do. */
export interface SupplierCapabilities {
  /** A second create under one name is refused with the first: after a lost answer the same create may be repeated. */
  readonly uniqueName: boolean;
  /** Whether the supplier ends an instance by itself: at a time, after a while without use, or never. */
  readonly ttl: 'absolute' | 'idle' | 'none';
  /** What a suspended instance keeps; `none`: it cannot be suspended. */
  readonly suspend: 'memory' | 'filesystem' | 'none';
  /**
   * What stands between an instance and its host. `none` is no security boundary: commands can do what the gateway can, or
   * may take all memory and processes of the machine.
   */
  readonly isolation: 'virtual-machine' | 'container' | 'namespaces' | 'none';
  readonly exec: boolean;
  readonly files: boolean;
  readonly ports: boolean;
}

/** Names an instance at its supplier. Kept as JSON. */
export interface InstanceReference {
  /** The supplier's own id; never used again for another instance. */
  readonly id: string;
  /** The name it was created with. */
  readonly name: string;
}

/** Labels an instance carries at its supplier for life. */
export type Tags = Readonly<Record<string, string>>;

/** What an instance is to have. */
export interface InstanceSpec {
  /** Virtual CPUs; parts of one are possible. */
  readonly cpu: number;
  readonly memoryGiB: number;
  /** Of its own disk; 0 asks for none in particular. */
  readonly volumeGiB: number;
  readonly gpu: readonly { readonly model: string; readonly count: number }[];
  /** Its ports will be dialled. An instance without has no network. */
  readonly ports: boolean;
  /** What the offering says to this driver (`supplierSettings`), as the driver's `offeringSchema` let it pass. */
  readonly settings: unknown;
}

/** What an instance is made with, beside what it has. */
export interface CreateOptions {
  /** Made of our id and a number; the same for every repetition. Letters, digits and hyphens, at most 63. */
  readonly name: string;
  readonly tags: Tags;
  /** Where `ttl` is not `none`: it ends by itself after this time unless `setDeadline` says otherwise before. */
  readonly birthTtlSeconds: number;
}

/** What the supplier says of an instance. */
export type Inspection = Found | Gone;

/** The supplier has the instance. */
export interface Found extends InstanceSummary {
  readonly kind: 'found';
  /** Changes when it was started anew, so that what was in its memory is lost. Empty until it runs. */
  readonly incarnation: string;
  /** When it stopped by itself, where the supplier knows; only with `ended`. */
  readonly endedAt: Date | undefined;
}

/** The supplier says that there is no such instance. */
export interface Gone {
  readonly kind: 'gone';
  /** When it ended, where the supplier still knows. */
  readonly endedAt?: Date;
}

/** `ended`: it is still there, does not run and was not asked to stop. */
export type InstanceState = 'starting' | 'running' | 'suspended' | 'ended';

/** What a list says of an instance. */
export interface InstanceSummary {
  readonly reference: InstanceReference;
  readonly state: InstanceState;
  readonly tags: Tags;
  readonly createdAt: Date;
}

/** A command that is to be run. */
export interface CommandSpec {
  /** Chosen by us, a UUID; names the command for `signal` and `inspectCommand`, in other processes too. */
  readonly id: string;
  /** Run by the instance's `/bin/sh -c`. */
  readonly command: string;
  /** Absolute, or relative to the instance's folder; that folder unless given. */
  readonly cwd?: string | undefined;
  readonly env: Readonly<Record<string, string>>;
  /** All of its standard input, which is closed after it. */
  readonly stdin?: Buffer | undefined;
}

/** A command that has been started. */
export interface RunningCommand {
  /** What it prints, as it comes; ends when the command has ended. Whoever reads slowly slows the command. */
  readonly output: AsyncIterable<OutputFrame>;
  /** Once `output` has ended. @throws InstanceGone, Ambiguous when nobody knows how it ended. */
  readonly exit: Promise<CommandExit>;
}

/** A piece of what a command prints. */
export interface OutputFrame {
  readonly stream: 'stdout' | 'stderr';
  readonly bytes: Buffer;
}

/** How a command ended. */
export interface CommandExit {
  /** 128 + the signal's number when a signal ended it. */
  readonly exitCode: number;
}

/** `lost`: the supplier knows nothing of it any more. */
export type CommandState = { readonly is: 'running' | 'lost' } | ({ readonly is: 'ended' } & CommandExit);

/** The signals that a command can be sent. */
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

/** One of them. */
export type CommandSignal = (typeof COMMAND_SIGNALS)[number];

/** A file, read as it arrives. */
export interface FileContent {
  readonly byteLength: number;
  readonly content: Readable;
}

/** One entry of a folder. */
export interface FileEntry {
  /** Relative below `WORK_FOLDER`, without a leading `./`; absolute elsewhere. */
  readonly path: string;
  readonly type: 'file' | 'folder' | 'link' | 'other';
  readonly byteLength: number;
  readonly modifiedAt: Date;
}

/** Where a port of an instance is reached. */
export interface PortAddress {
  /** `http://host:port` without a path. */
  readonly url: string;
  /** Opens a connection to it, where the host is in the instance's own network. @throws PortClosed */
  readonly connect?: () => Promise<Socket>;
  /** What the supplier itself wants to see, such as its own token. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Why a supplier did not do what was asked. The text may be logged and shown to operators; it holds no secret. */
export abstract class SupplierError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** An instance with this name and these tags is there already, started like a new one: adopt it. */
export class AlreadyExists extends SupplierError {
  constructor(readonly reference: InstanceReference) {
    super(`the instance ${reference.name} already exists`);
  }
}

/** The supplier said no, and nothing was made. */
export class Rejected extends SupplierError {
  /** The same may be taken later: no room now. */
  readonly isTemporary: boolean;
  constructor(message: string, options: ErrorOptions & { readonly isTemporary?: boolean } = {}) {
    super(message, options);
    this.isTemporary = options.isTemporary ?? false;
  }
}

/** Nothing of the request reached the supplier: it may be repeated freely. */
export class NotSent extends SupplierError {}

/** It was sent, and no answer says whether it was done. */
export class Ambiguous extends SupplierError {}

/** It was sent, and no answer came in time. */
export class TimedOut extends Ambiguous {}

/** Too many requests; nothing was done. */
export class RateLimited extends SupplierError {
  constructor(
    message: string,
    readonly retryAfterSeconds: number,
  ) {
    super(message);
  }
}

/** The supplier says that there is no such instance. */
export class InstanceGone extends SupplierError {}

/** The instance is there and cannot do this in the state it is in: it is starting, suspended or ended. */
export class NotRunning extends SupplierError {}

/** This supplier or this instance cannot do it at all. */
export class NotSupported extends SupplierError {}

/** Nothing of this instance listens on the port. */
export class PortClosed extends SupplierError {}

/** About a path the customer gave; nothing was changed. */
export class FileFailure extends SupplierError {
  constructor(
    readonly reason: 'not-found' | 'path-invalid' | 'is-folder' | 'not-folder' | 'no-space' | 'not-allowed',
    message: string,
  ) {
    super(message);
  }
}

/** What a driver is given when it is opened. */
export interface SupplierContext {
  readonly log: Logger;
  /** A folder of its own that outlives the process; made when it is first asked for. */
  readonly dataFolder: string;
}

/** A way of speaking to one sort of supplier. Registered once; opened once for every supplier that is configured with it. */
export interface SupplierKind<S extends Schema = Schema, O extends Schema = Schema> {
  readonly contract: 'supplier/1';
  /** The word after `driver:` in the supplier's settings. */
  readonly name: string;
  readonly summary: string;
  /** JSON Schema of the supplier's settings, `driver` aside: where it is, how it is spoken to. */
  readonly schema: S;
  /** JSON Schema of what an offering says to it (`supplierSettings`): an image, a template. */
  readonly offeringSchema: O;
  /** @throws when it cannot work as configured at all. A supplier that does not answer now is no reason. */
  open(settings: Settings<S>, context: SupplierContext): Promise<SupplierDriver>;
}

/** Helps TypeScript check a driver against its own settings. */
export function defineSupplier<const S extends Schema, const O extends Schema>(
  kind: SupplierKind<S, O>,
): SupplierKind<S, O> {
  return kind;
}

const kinds = new Map<string, SupplierKind>();

const CONTRACT: Contract = { kind: 'driver', versions: ['supplier/1'], functions: ['open'] };

/** @throws when it is not of this contract, or another driver has the name already. */
export function registerSupplier(kind: SupplierKind): void {
  requireContract(kind, CONTRACT);
  const known = kinds.get(kind.name);
  if (known !== undefined && known !== kind)
    throw new Error(`another supplier driver is already named "${kind.name}": rename this one`);
  kinds.set(kind.name, kind);
}

export function findSupplier(name: string): SupplierKind | undefined {
  return kinds.get(name);
}

export function supplierNames(): string[] {
  return [...kinds.keys()].sort();
}
