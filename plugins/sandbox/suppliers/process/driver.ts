import { randomUUID } from 'node:crypto';
import { posix } from 'node:path';
import { absolutePath } from '../confined-path';
import { Dialer } from '../dialer';
import {
  AlreadyExists,
  type CommandSignal,
  type CommandSpec,
  type CommandState,
  type CreateOptions,
  FileFailure,
  type Inspection,
  type InstanceReference,
  type InstanceSpec,
  type InstanceState,
  type InstanceSummary,
  NotRunning,
  NotSupported,
  type PortAddress,
  PortClosed,
  Rejected,
  type RunningCommand,
  type SupplierCapabilities,
  type SupplierDriver,
  type Tags,
  WORK_FOLDER,
} from '../supplier';
import { folderBytes, joinWords, limitWords, makeGroups, removeGroups } from './bounds';
import { FolderFiles, gone } from './files';
import { endHolderOf, type Holder, isAlive, type StartedHolder, startHolder } from './holder';
import { type Instance, type InstanceFolders, type StartedInstance, toSummary } from './instance-folder';
import { type Launcher, PATH } from './launcher';
import { listeningAddress, listeningInNetwork } from './listening';
import {
  COMMAND_MARK,
  INSTANCE_MARK,
  markedProcesses,
  namespacesOf,
  processesWithin,
  send,
  signalAll,
  startOfMachine,
} from './marked-processes';
import type { Means } from './means';
import { commandWords, networkOf, variableWords } from './namespaces';
import { startProcess } from './run';

/**
 * Runs instances on this machine. Each is a root folder and, if the machine allows it, namespaces that a holder process keeps.
 * Its commands are processes of this machine.
 */
export class ProcessDriver implements SupplierDriver {
  readonly capabilities: SupplierCapabilities;
  readonly files: FolderFiles;
  readonly #dialer = new Dialer();
  /** The process groups that this driver started, by command. Without /proc it knows no other processes. */
  readonly #groups = new Map<string, { readonly name: string; readonly pid: number }>();

  constructor(
    private readonly folders: InstanceFolders,
    private readonly launcher: Launcher,
    private readonly means: Means,
    /** Where instances with namespaces keep their files. */
    private readonly keepsFiles: 'memory' | 'disk',
    /** The id of the data folder, because another node has other instances. */
    readonly place: string,
  ) {
    const isBounded = means.controlGroups !== undefined || means.hasLimits;
    this.capabilities = {
      uniqueName: true,
      ttl: 'none',
      suspend: 'memory',
      isolation: means.hasNamespaces && isBounded ? 'namespaces' : 'none',
      exec: true,
      files: true,
      ports: process.platform === 'linux',
    };
    this.files = new FolderFiles(async (reference) => this.#rootOf(await this.#instance(reference)));
  }

  /** Returns an instance's root. It goes through the holder, because only there the mounts are the ones that commands see. */
  async #rootOf(instance: Instance): Promise<string> {
    if ((await this.#stateOf(instance)) === 'ended') throw new NotRunning(`${instance.name} has ended`);
    return instance.holder === undefined ? this.folders.rootOf(instance.name) : `/proc/${instance.holder.pid}/root`;
  }

  async create(spec: InstanceSpec, options: CreateOptions): Promise<InstanceReference> {
    if (spec.gpu.length > 0) throw new Rejected('this driver has no GPUs');
    const { name, tags } = options;
    if ((await this.folders.find(name)) === undefined) {
      const { instance, isMade } = await this.folders.make(name, (root) => this.#start(root, spec, options));
      if (isMade) return { id: instance.id, name };
      await endHolderOf(instance);
    }
    const taken = await this.folders.find(name);
    if (taken === undefined) return this.create(spec, options);
    if (!carries(taken.tags, tags)) throw new Rejected(`another instance already has the name ${name}`);
    throw new AlreadyExists({ id: taken.id, name });
  }

  async #start(root: string, spec: InstanceSpec, { name, tags }: CreateOptions): Promise<StartedInstance> {
    const id = randomUUID();
    const started = this.means.hasNamespaces ? await this.#hold(root, id, name, spec) : undefined;
    const { ports, memoryGiB } = spec;
    const created = { id, name, tags, createdAt: new Date().toISOString(), state: 'running' } as const;
    const instance = { ...created, ports, memoryGiB, holder: started?.holder };
    return { instance, keep: started?.keep ?? (async () => {}) };
  }

  async #hold(root: string, id: string, name: string, spec: InstanceSpec): Promise<StartedHolder> {
    const { controlGroups } = this.means;
    const memoryBytes = this.keepsFiles === 'memory' ? folderBytes(spec) : undefined;
    const groups = controlGroups === undefined ? [] : await makeGroups(controlGroups, id, spec);
    try {
      return await startHolder(this.launcher, root, groups, { [INSTANCE_MARK]: name }, memoryBytes);
    } catch (error) {
      await removeGroups(groups);
      throw error;
    }
  }

  async inspect({ id, name }: InstanceReference): Promise<Inspection> {
    const instance = await this.folders.find(name);
    if (instance?.id !== id) return { kind: 'gone' };
    const summary = toSummary(instance, await this.#stateOf(instance));
    // The machine's start is part of it, because nothing of an instance survives a restart of the machine or container.
    return { kind: 'found', ...summary, incarnation: `${id} ${await startOfMachine()}`, endedAt: undefined };
  }

  async *list(tags: Tags): AsyncGenerator<InstanceSummary> {
    for (const instance of await this.folders.all())
      if (carries(instance.tags, tags)) yield toSummary(instance, await this.#stateOf(instance));
  }

  async setDeadline(): Promise<void> {}

  suspend(reference: InstanceReference): Promise<void> {
    return this.#change(reference, 'suspended', 'SIGSTOP');
  }

  resume(reference: InstanceReference): Promise<void> {
    return this.#change(reference, 'running', 'SIGCONT');
  }

  /** Changes an instance's state and signals its processes. It writes the state first, so that nothing new starts meanwhile. */
  async #change(reference: InstanceReference, state: Instance['state'], signal: NodeJS.Signals): Promise<void> {
    const instance = await this.#instance(reference);
    if ((await this.#stateOf(instance)) === 'ended') throw new NotRunning(`${instance.name} has ended`);
    await this.folders.keep({ ...instance, state });
    await this.#signalAll(instance, signal);
  }

  async terminate(reference: InstanceReference): Promise<void> {
    const instance = await this.folders.find(reference.name);
    if (instance?.id !== reference.id) return;
    if (instance.holder !== undefined) this.#dialer.end(networkOf(instance.holder));
    await endHolderOf(instance);
    await this.#signalAll(instance, 'SIGKILL');
    await this.folders.remove(instance.name);
    // Signal again: a command may have been starting while the first signal looked for processes.
    await this.#signalAll(instance, 'SIGKILL');
  }

  async #signalAll({ name, holder }: Instance, signal: NodeJS.Signals): Promise<void> {
    // With a holder, a group is the process that waits for the command. It must not stop, and only SIGKILL ends it.
    const isGroupMeant = holder === undefined || signal === 'SIGKILL';
    for (const group of this.#groups.values()) if (isGroupMeant && group.name === name) send(-group.pid, signal);
    const within = holder && (await namespacesOf(holder.pid));
    if (within !== undefined && (await isAlive(holder as Holder)))
      await signalAll(() => processesWithin(within), signal);
    else await signalAll(() => markedProcesses(INSTANCE_MARK, name), signal);
  }

  async exec(reference: InstanceReference, command: CommandSpec): Promise<RunningCommand> {
    const instance = await this.#running(reference);
    const cwd = await this.#folderOf(reference, command.cwd);
    const { pid, output, exit } = await (instance.holder === undefined
      ? this.#startOpen(instance, command, cwd)
      : this.#startHeld(instance, instance.holder, command, cwd));
    this.#groups.set(command.id, { name: instance.name, pid });
    void exit.catch(() => undefined).then(() => this.#groups.delete(command.id));
    return { output, exit };
  }

  #startHeld(
    { name, memoryGiB }: Instance,
    { pid, groups }: Holder,
    { id, command, env, stdin }: CommandSpec,
    cwd: string,
  ) {
    const limits = groups.length === 0 && this.means.hasLimits ? limitWords({ cpu: 0, memoryGiB }) : [];
    const argv = [...joinWords(groups), ...commandWords(pid, cwd, [...limits, '/bin/sh', '-c', command])];
    const variables = { PATH, HOME: WORK_FOLDER, ...env, [INSTANCE_MARK]: name, [COMMAND_MARK]: id };
    return startProcess(this.launcher, { argv, cwd: '/', env: { PATH }, words: variableWords(variables), stdin });
  }

  #startOpen({ name }: Instance, { id, command, env, stdin }: CommandSpec, cwd: string) {
    const root = this.folders.rootOf(name);
    const variables = { PATH, HOME: `${root}${WORK_FOLDER}`, ...env, [INSTANCE_MARK]: name, [COMMAND_MARK]: id };
    return startProcess(this.launcher, {
      argv: ['/bin/sh', '-c', command],
      cwd: `${root}${cwd}`,
      env: variables,
      stdin,
    });
  }

  /** Returns the folder of a command below the instance's root. It looks at nothing else of this machine. */
  async #folderOf(reference: InstanceReference, cwd = ''): Promise<string> {
    const names = posix
      .resolve(absolutePath(cwd))
      .split('/')
      .filter((name) => name !== '');
    const found = await this.files.findFolder(reference, names);
    if (found === undefined) throw new FileFailure('not-folder', 'cwd: the folder does not exist');
    return `/${found.join('/')}`;
  }

  async inspectCommand(reference: InstanceReference, commandId: string): Promise<CommandState> {
    const instance = await this.#instance(reference);
    if (this.#groups.has(commandId)) return { is: 'running' };
    const pids = await this.#processesOf(instance, commandId);
    return { is: pids.length > 0 ? 'running' : 'lost' };
  }

  async signal(reference: InstanceReference, commandId: string, signal: CommandSignal): Promise<void> {
    const instance = await this.#running(reference);
    const group = this.#groups.get(commandId);
    const marked = await this.#processesOf(instance, commandId);
    if (marked.length > 0) await signalAll(() => this.#processesOf(instance, commandId), signal);
    // The command may have stopped the process that waits for it.
    if (group !== undefined && (marked.length === 0 || signal === 'SIGKILL')) send(-group.pid, signal);
  }

  async #processesOf({ holder }: Instance, commandId: string): Promise<readonly number[]> {
    if (holder === undefined) return markedProcesses(COMMAND_MARK, commandId);
    const within = await namespacesOf(holder.pid);
    return within === undefined ? [] : markedProcesses(COMMAND_MARK, commandId, within);
  }

  async dialPort(reference: InstanceReference, port: number): Promise<PortAddress> {
    const { name, ports, holder } = await this.#running(reference);
    if (!ports) throw new NotSupported(`${name} has no ports`);
    const host =
      holder === undefined
        ? await listeningAddress(await markedProcesses(INSTANCE_MARK, name), port)
        : await listeningInNetwork(holder.pid, port);
    if (host === undefined) throw new PortClosed(`no program of ${name} listens on port ${port}`);
    return holder === undefined
      ? { host, port, headers: {} }
      : { host, port, headers: {}, connect: () => this.#dialer.dial(networkOf(holder), host, port) };
  }

  async close(): Promise<void> {
    await Promise.all([this.#dialer.close(), this.launcher.close()]);
  }

  async #running(reference: InstanceReference): Promise<Instance> {
    const instance = await this.#instance(reference);
    const state = await this.#stateOf(instance);
    if (state !== 'running') throw new NotRunning(`${instance.name} is ${state}`);
    return instance;
  }

  /** Returns an instance's state. Where instances are isolated, one without a holder counts as ended, because it must not run beside them. */
  async #stateOf({ holder, state }: Instance): Promise<InstanceState> {
    const isThere = holder === undefined ? !this.means.hasNamespaces : await isAlive(holder);
    return isThere ? state : 'ended';
  }

  async #instance(reference: InstanceReference): Promise<Instance> {
    const instance = await this.folders.find(reference.name);
    if (instance?.id !== reference.id) throw gone(reference);
    return instance;
  }
}

function carries(all: Tags, wanted: Tags): boolean {
  return Object.entries(wanted).every(([tag, value]) => all[tag] === value);
}
