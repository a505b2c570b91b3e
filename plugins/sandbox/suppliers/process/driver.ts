import { randomUUID } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
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
} from '../../../../core/supplier';
import { FolderFiles, gone } from './files';
import { type Instance, type InstanceFolders, toSummary } from './instance-folder';
import { bubblewrapOf, READ_WORDS, variableWords } from './isolation';
import { listeningAddress } from './listening';
import { COMMAND_MARK, INSTANCE_MARK, markedProcesses, send, signalMarked, startOfMachine } from './marked-processes';
import { startProcess } from './run';

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** An instance is a folder; its commands are processes of this machine. */
export class ProcessDriver implements SupplierDriver {
  readonly capabilities: SupplierCapabilities;
  readonly files: FolderFiles;
  /** Groups started here, by command: all there is to go by where /proc is not. */
  readonly #groups = new Map<string, { readonly name: string; readonly pid: number }>();

  constructor(
    private readonly folders: InstanceFolders,
    private readonly hasBubblewrap: boolean,
  ) {
    this.capabilities = {
      uniqueName: true,
      ttl: 'none',
      suspend: 'memory',
      isolation: hasBubblewrap ? 'namespaces' : 'none',
      exec: true,
      files: true,
      ports: process.platform === 'linux',
    };
    this.files = new FolderFiles(async (reference) => folders.filesOf((await this.#instance(reference)).name));
  }

  async create(spec: InstanceSpec, { name, tags }: CreateOptions): Promise<InstanceReference> {
    if (spec.gpu.length > 0) throw new Rejected('this driver has no GPUs to give');
    const instance: Instance = {
      id: randomUUID(),
      name,
      tags,
      createdAt: new Date().toISOString(),
      state: 'running',
      ports: spec.ports,
    };
    if (await this.folders.make(instance)) return { id: instance.id, name };
    const taken = await this.folders.find(name);
    if (taken === undefined) return this.create(spec, { name, tags, birthTtlSeconds: 0 });
    if (!carries(taken.tags, tags)) throw new Rejected(`another instance has the name ${name}`);
    throw new AlreadyExists({ id: taken.id, name });
  }

  async inspect({ id, name }: InstanceReference): Promise<Inspection> {
    const instance = await this.folders.find(name);
    if (instance?.id !== id) return { kind: 'gone' };
    // When the machine, or the container this runs in, was started anew, nothing runs of it any more.
    return {
      kind: 'found',
      ...toSummary(instance),
      incarnation: `${id} ${await startOfMachine()}`,
      endedAt: undefined,
    };
  }

  async *list(tags: Tags): AsyncGenerator<InstanceSummary> {
    const all = await this.folders.all();
    yield* all.filter((instance) => carries(instance.tags, tags)).map(toSummary);
  }

  async setDeadline(): Promise<void> {}

  suspend(reference: InstanceReference): Promise<void> {
    return this.#change(reference, 'suspended', 'SIGSTOP');
  }

  resume(reference: InstanceReference): Promise<void> {
    return this.#change(reference, 'running', 'SIGCONT');
  }

  /** The state first: nothing new is started in an instance that is being stopped. */
  async #change(reference: InstanceReference, state: Instance['state'], signal: NodeJS.Signals): Promise<void> {
    const instance = await this.#instance(reference);
    await this.folders.keep({ ...instance, state });
    await this.#signalAll(instance.name, signal);
  }

  async terminate(reference: InstanceReference): Promise<void> {
    const instance = await this.folders.find(reference.name);
    if (instance?.id !== reference.id) return;
    await this.#signalAll(instance.name, 'SIGKILL');
    await this.folders.remove(instance.name);
    // One that was just being started when the others were found.
    await this.#signalAll(instance.name, 'SIGKILL');
  }

  async #signalAll(name: string, signal: NodeJS.Signals): Promise<void> {
    for (const group of this.#groups.values()) if (group.name === name) send(-group.pid, signal);
    await signalMarked(INSTANCE_MARK, name, signal);
  }

  async exec(reference: InstanceReference, command: CommandSpec): Promise<RunningCommand> {
    const instance = await this.#running(reference);
    const files = this.folders.filesOf(instance.name);
    const cwd = await this.#folderOf(files, command.cwd);
    const home = this.hasBubblewrap ? WORK_FOLDER : files;
    const temporary = this.folders.temporaryOf(instance.name);
    const marks = { [INSTANCE_MARK]: instance.name, [COMMAND_MARK]: command.id };
    // Bubblewrap itself stays unmarked: a signal is for the command, whose end bubblewrap then tells.
    const confined = bubblewrapOf({ files, temporary, cwd, hasNetwork: instance.ports, marks, more: READ_WORDS });
    const env = { PATH, HOME: home, ...command.env };
    const argv = ['/bin/sh', '-c', command.command];
    const { stdin } = command;
    const { pid, output, exit } = await startProcess(
      this.hasBubblewrap
        ? { argv: [...confined, ...argv], cwd: files, env: { PATH }, words: variableWords(env), stdin }
        : { argv, cwd, env: { ...env, ...marks }, stdin },
    );
    this.#groups.set(command.id, { name: instance.name, pid });
    void exit.then(() => this.#groups.delete(command.id));
    return { output, exit };
  }

  /** Where the command begins, as it sees it itself. Only the instance's own folder can be looked at from here. */
  async #folderOf(files: string, cwd = ''): Promise<string> {
    const seen = cwd.startsWith('/') ? cwd : join(WORK_FOLDER, cwd);
    const isOwn = seen === WORK_FOLDER || seen.startsWith(`${WORK_FOLDER}/`);
    const onHost = isOwn ? join(files, seen.slice(WORK_FOLDER.length)) : seen;
    const found = await stat(onHost).catch(() => undefined);
    if (found?.isDirectory() !== true) throw new FileFailure('not-folder', 'cwd: there is no such folder');
    return this.hasBubblewrap ? seen : onHost;
  }

  async inspectCommand(reference: InstanceReference, commandId: string): Promise<CommandState> {
    await this.#instance(reference);
    if (this.#groups.has(commandId)) return { is: 'running' };
    const pids = await markedProcesses(COMMAND_MARK, commandId);
    return { is: pids.length > 0 ? 'running' : 'lost' };
  }

  async signal(reference: InstanceReference, commandId: string, signal: CommandSignal): Promise<void> {
    await this.#running(reference);
    const group = this.#groups.get(commandId);
    const marked = await markedProcesses(COMMAND_MARK, commandId);
    if (marked.length > 0) await signalMarked(COMMAND_MARK, commandId, signal);
    else if (group !== undefined) send(-group.pid, signal);
  }

  async dialPort(reference: InstanceReference, port: number): Promise<PortAddress> {
    const instance = await this.#running(reference);
    if (!instance.ports) throw new NotSupported(`${instance.name} has no network`);
    const pids = await markedProcesses(INSTANCE_MARK, instance.name);
    const address = await listeningAddress(pids, port);
    if (address === undefined) throw new PortClosed(`nothing of ${instance.name} listens on port ${port}`);
    return { url: `http://${address}:${port}`, headers: {} };
  }

  async close(): Promise<void> {}

  async #running(reference: InstanceReference): Promise<Instance> {
    const instance = await this.#instance(reference);
    if (instance.state !== 'running') throw new NotRunning(`${instance.name} is suspended`);
    return instance;
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
