import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { link, mkdir, readdir, readFile, readlink, realpath, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { promisify } from 'node:util';
import { absolutePath } from '../confined-path';
import * as supplier from '../supplier';
import {
  INSTANCE_MARK,
  listen,
  markedProcesses,
  PROCESS_COMMAND_MARK,
  signalAll,
  startCommand,
  startOfMachine,
  tryIsolation,
} from './command';
import { folderFiles, folderIn } from './files';

/** The embedded supplier, which needs no installation and is meant for trials. */
export const processes = supplier.defineSupplier({
  contract: 'supplier/1',
  name: 'process',
  summary: 'Processes of this machine, each instance with a folder of its own; for trying out.',
  schema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      isolation: { description: 'Bubblewrap where it works, or none.', enum: ['auto', 'none'], default: 'auto' },
    },
  },
  offeringSchema: { type: 'object', additionalProperties: false, properties: {} },
  open: async ({ isolation }, { dataFolder, log }) => {
    const instances = join(dataFolder, 'instances');
    await mkdir(instances, { recursive: true, mode: 0o700 });
    const problem = isolation === 'none' ? 'the setting isolation' : await tryIsolation().catch(String);
    if (problem !== undefined) log.info({ problem }, 'sandboxes of this supplier run without isolation');
    // The system creates a link atomically, so all processes that share the data folder read the same id of this folder.
    await symlink(randomUUID(), join(dataFolder, 'place')).catch(() => undefined);
    return processDriver(await realpath(instances), await readlink(join(dataFolder, 'place')), problem === undefined);
  },
});

/** The record of an instance. `ports`: whether the gateway may connect to its ports. */
type Instance = supplier.InstanceSummary & { readonly state: 'running' | 'suspended'; readonly ports: boolean };

/** Returns a driver that keeps each instance in a folder with `instance.json` and `root`. Commands are processes of this machine. */
function processDriver(instances: string, place: string, isIsolated: boolean): supplier.SupplierDriver {
  const rootOf = (name: string) => join(instances, name, 'root');
  const recordOf = (name: string) => join(instances, name, 'instance.json');

  /** Writes an instance's record atomically: with `rename`, or with `link` if no record may exist yet. */
  async function keep(instance: Instance, put: typeof rename): Promise<void> {
    const file = recordOf(instance.reference.name);
    const draft = `${file}.${randomUUID()}`;
    await writeFile(draft, JSON.stringify(instance));
    await put(draft, file).finally(() => rm(draft, { force: true }));
  }

  async function find(name: string): Promise<Instance | undefined> {
    const text = await readFile(recordOf(name), 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
    });
    if (!text) return undefined;
    const record = JSON.parse(text);
    return { ...record, createdAt: new Date(record.createdAt) };
  }

  async function mustExist({ id, name }: supplier.InstanceReference, isToRun = false): Promise<Instance> {
    const instance = await find(name);
    if (instance?.reference.id !== id) throw new supplier.InstanceGone(`the instance ${name} does not exist`);
    if (isToRun && instance.state !== 'running') throw new supplier.NotRunning(`${name} is suspended`);
    return instance;
  }

  const carries = ({ tags }: Instance, wanted: supplier.Tags) =>
    Object.entries(wanted).every(([tag, value]) => tags[tag] === value);
  const ofInstance = (name: string) => markedProcesses(INSTANCE_MARK, name);
  const ofCommand = (id: string) => markedProcesses(PROCESS_COMMAND_MARK, id);

  /** Changes an instance's state, so that no new command starts, and then signals its processes. */
  async function change(reference: supplier.InstanceReference, state: Instance['state'], signal: NodeJS.Signals) {
    const instance = await mustExist(reference);
    await keep({ ...instance, state }, rename);
    await signalAll(() => ofInstance(reference.name), signal);
  }

  const isLinux = process.platform === 'linux';
  return {
    place,
    capabilities: {
      uniqueName: true,
      ttl: 'none',
      suspend: 'memory',
      isolation: isIsolated ? 'namespaces' : 'none',
      // The gateway finds processes and open folders in /proc, which only Linux has.
      exec: isLinux,
      files: isLinux,
      // An isolated command has a network of its own, which the gateway cannot reach.
      ports: isLinux && !isIsolated,
    },

    create: async ({ gpu, ports }, { name, tags }) => {
      if (gpu.length > 0) throw new supplier.Rejected('this driver has no GPUs');
      const reference = { id: randomUUID(), name };
      for (const folder of [supplier.WORK_FOLDER, '/tmp']) await mkdir(rootOf(name) + folder, { recursive: true });
      try {
        await keep({ reference, tags, createdAt: new Date(), state: 'running', ports }, link);
        return reference;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
        const taken = await find(name);
        if (taken === undefined || !carries(taken, tags))
          throw new supplier.Rejected(`another instance already has the name ${name}`);
        throw new supplier.AlreadyExists(taken.reference);
      }
    },
    inspect: async ({ id, name }) => {
      const found = await find(name);
      if (found?.reference.id !== id) return { kind: 'gone' };
      // No command survives a restart of the machine. `incarnation` then changes, which shows that the instance's memory is lost.
      const incarnation = `${id} ${await startOfMachine()}`;
      return { kind: 'found', ...found, incarnation, endedAt: undefined };
    },
    list: async function* (tags) {
      const found = await Promise.all((await readdir(instances)).map(find));
      for (const each of found) if (each !== undefined && carries(each, tags)) yield each;
    },
    setDeadline: async () => {},
    suspend: (reference) => change(reference, 'suspended', 'SIGSTOP'),
    resume: (reference) => change(reference, 'running', 'SIGCONT'),
    terminate: async ({ id, name }) => {
      if ((await find(name))?.reference.id !== id) return;
      await change({ id, name }, 'suspended', 'SIGKILL');
      // A command may have removed the permission to enter its folders: restore this permission. Delete the record last, because a crash may
      // interrupt the work.
      await promisify(execFile)('chmod', ['-R', 'u+rwx', rootOf(name)]).catch(() => undefined);
      for (const folder of [rootOf(name), join(instances, name)]) await rm(folder, { recursive: true, force: true });
    },
    exec: async (reference, { id, cwd = '', ...spec }) => {
      await mustExist(reference, true);
      const { name } = reference;
      const names = posix.resolve(absolutePath(cwd)).split('/').filter(Boolean);
      const folder = await folderIn(rootOf(name), names).catch(() => {
        throw new supplier.FileFailure('not-folder', 'cwd: the folder does not exist');
      });
      const marks = { [INSTANCE_MARK]: name, [PROCESS_COMMAND_MARK]: id };
      const running = await startCommand(isIsolated, { ...spec, root: rootOf(name), cwd: folder, marks });
      // Another call may have suspended or terminated the instance meanwhile, before it could find this new process.
      await mustExist(reference, true).catch(async (error) => {
        await signalAll(() => ofCommand(id), 'SIGKILL');
        throw error;
      });
      return running;
    },
    inspectCommand: async (reference, commandId) => {
      await mustExist(reference);
      return { kind: (await ofCommand(commandId)).length > 0 ? 'running' : 'lost' };
    },
    signal: async (reference, commandId, signal) => {
      await mustExist(reference, true);
      await signalAll(() => ofCommand(commandId), signal);
    },
    files: folderFiles(async (reference) => rootOf((await mustExist(reference)).reference.name)),
    dialPort: async (reference, port) => {
      const { ports } = await mustExist(reference, true);
      if (!ports || isIsolated) throw new supplier.NotSupported(`${reference.name} has no ports`);
      if (await listen(await ofInstance(reference.name), port)) return { host: '127.0.0.1', port, headers: {} };
      throw new supplier.PortClosed(`no program of ${reference.name} listens on port ${port}`);
    },
    close: async () => {},
  };
}
