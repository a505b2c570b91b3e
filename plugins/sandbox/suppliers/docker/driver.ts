import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { parseDuration } from '../../../../core/base/settings';
import * as supplier from '../supplier';
import {
  type ContainerDetails,
  type ContainerSummary,
  containerOf,
  diskProblem,
  type EngineInfo,
  hasPorts,
  isRefusedBound,
  mustKnowRuntime,
  referenceOf,
  toFound,
  toSummary,
} from './container';
import { canJoinNetworks, Dialer, joinedNetwork } from './dialer';
import { DockerEngine, type EngineAnswer, messageOf } from './engine';
import { folderOf, runExec, SOME_ARE_LEFT, shellCommand, signalCommand, startExec } from './exec';
import { ContainerFiles, type Owner } from './files';
import {
  type DockerSettings,
  OFFERING_SCHEMA,
  type OfferingSettings,
  readOfferingSettings,
  SUPPLIER_SCHEMA,
} from './settings';

const UNBOUNDED_DISKS =
  'the disk of instances is not bounded: set readOnlyRoot, or use a storage driver that holds sizes (overlay2 on xfs with pquota)';
const OPEN_NETWORK =
  'instances reach what listens on this machine in the network that `network` names: keep that from them by a firewall (docs/writing-a-driver.md)';
const NO_PORTS =
  'ports of instances cannot be reached: the gateway needs root and nsenter to join their networks. Run it so, or set `network`';

export const docker = supplier.defineSupplier({
  contract: 'supplier/1',
  name: 'docker',
  summary: 'Containers of a Docker Engine on this machine.',
  schema: SUPPLIER_SCHEMA,
  offeringSchema: OFFERING_SCHEMA,
  open: async (settings, { log }) => {
    const engine = new DockerEngine(settings.socket, {
      questions: parseDuration(settings.answersWithin),
      deeds: supplier.CALL_LIMIT_MS,
    });
    return dockerDriver(engine, settings, log, await limitsDisks(engine, settings, log));
  },
});

/**
 * Checks that the engine supports the settings, and returns whether it can limit disks, as far as is known. If the engine does
 * not answer now, a later creation reports the problem.
 * @throws StartFailure
 */
async function limitsDisks(engine: DockerEngine, { runtime, network }: DockerSettings, log: Logger): Promise<boolean> {
  const answer = await engine.ask('GET', '/info').catch(() => undefined);
  if (answer?.status !== 200) return true;
  const info = answer.body as EngineInfo;
  mustKnowRuntime(info, runtime);
  if (network !== undefined) log.warn({ network }, OPEN_NETWORK);
  else if (!(await canJoinNetworks())) log.warn(NO_PORTS);
  const problem = diskProblem(info);
  if (problem !== undefined) log.warn({ problem }, UNBOUNDED_DISKS);
  return problem === undefined;
}

/** Returns a driver that runs each instance as one container. */
function dockerDriver(
  engine: DockerEngine,
  settings: DockerSettings,
  log: Logger,
  canLimitDisks: boolean,
): supplier.SupplierDriver {
  let isDiskLimited = canLimitDisks;
  const dialer = new Dialer();
  const files = new ContainerFiles(engine, async (reference) => ownerOf((await detailsOf(reference)).Config.User));

  async function detailsOf({ id, name }: supplier.InstanceReference): Promise<ContainerDetails> {
    const answer = await engine.ask('GET', `/containers/${encodeURIComponent(id)}/json`);
    if (answer.status === 404) throw new supplier.InstanceGone(`the instance ${name} does not exist`);
    if (answer.status !== 200) throw new supplier.Ambiguous(messageOf(answer));
    return answer.body as ContainerDetails;
  }

  /** Creates a container. If the engine rejects it because it cannot limit a disk's size, creates it without the limit, if the offering allows that. */
  async function make(
    spec: supplier.InstanceSpec,
    offering: OfferingSettings,
    options: supplier.CreateOptions,
  ): Promise<EngineAnswer> {
    const ask = (limitsDisk: boolean) =>
      engine.ask('POST', `/containers/create?name=${encodeURIComponent(options.name)}`, {
        body: containerOf(spec, offering, options, { ...settings, limitsDisk }),
      });
    const answer = await ask(offering.limitVolume ?? isDiskLimited);
    if (offering.limitVolume !== undefined || !isRefusedBound(answer)) return answer;
    isDiskLimited = false;
    log.warn({ problem: messageOf(answer) }, UNBOUNDED_DISKS);
    return ask(false);
  }

  /** Returns the container that already has this name. Retries, because the engine reserves a name shortly before it shows the container. */
  async function named(name: string): Promise<ContainerDetails> {
    for (let tries = 0; tries < 20; tries += 1) {
      try {
        return await detailsOf({ id: name, name });
      } catch (error) {
        if (!(error instanceof supplier.InstanceGone)) throw error;
        await sleep(50);
      }
    }
    throw new supplier.Ambiguous(`the name ${name} is in use, but no container has it`);
  }

  async function start(
    { id, name }: supplier.InstanceReference,
    spec: supplier.InstanceSpec,
    { user, readOnlyRoot }: OfferingSettings,
  ): Promise<void> {
    if (!readOnlyRoot) await files.makeWorkFolder({ id, name }, ownerOf(user));
    let answer = await engine.ask('POST', `/containers/${id}/start`);
    const { network } = settings;
    if (answer.status === 404 && spec.ports && network !== undefined && messageOf(answer).includes('network')) {
      await makeNetwork(engine, network);
      answer = await engine.ask('POST', `/containers/${id}/start`);
    }
    if (answer.status === 204 || answer.status === 304) return;
    await terminate({ id, name });
    throw new supplier.Rejected(messageOf(answer));
  }

  /** Pauses or unpauses an instance. If it is already in that state, the engine reports an error, so the instance's own state decides. */
  async function change(reference: supplier.InstanceReference, verb: string, wanted: supplier.InstanceState) {
    const answer = await engine.ask('POST', `/containers/${reference.id}/${verb}`);
    if (answer.status === 204) return;
    const { state } = toFound(await detailsOf(reference));
    if (state === 'ended') throw new supplier.NotRunning(messageOf(answer));
    if (state !== wanted) throw new supplier.Ambiguous(messageOf(answer));
  }

  async function terminate({ id }: supplier.InstanceReference): Promise<void> {
    dialer.end({ name: id });
    const answer = await engine.ask('DELETE', `/containers/${id}?force=1&v=1`);
    if (answer.status !== 204 && answer.status !== 404) throw new supplier.Ambiguous(messageOf(answer));
  }

  const runSignal = (reference: supplier.InstanceReference, id: string, signal: supplier.CommandSignal | 0) =>
    runExec(engine, reference, { argv: signalCommand(id, signal), env: {} });

  return {
    capabilities: {
      uniqueName: true,
      ttl: 'none',
      suspend: 'memory',
      isolation: 'container',
      exec: true,
      files: true,
      ports: true,
    },
    files,

    create: async (spec, options) => {
      if (spec.gpu.length > 0) throw new supplier.Rejected('this driver has no GPUs');
      const offering = readOfferingSettings(spec.settings);
      const answer = await make(spec, offering, options);
      if (answer.status === 409) {
        // The container exists: an earlier try, possibly interrupted, made it, or another program did.
        const there = await named(options.name);
        const labels = there.Config.Labels ?? {};
        const isOurs = Object.entries(options.tags).every(([tag, value]) => labels[tag] === value);
        if (!isOurs) throw new supplier.Rejected(`another container has the name ${options.name}`);
        if (there.State.Status === 'created') await start(referenceOf(there), spec, offering);
        throw new supplier.AlreadyExists(referenceOf(there));
      }
      const isRefused = (answer.status >= 400 && answer.status < 500) || isRefusedBound(answer);
      if (isRefused) throw new supplier.Rejected(messageOf(answer));
      if (answer.status !== 201) throw new supplier.Ambiguous(messageOf(answer));
      const reference = { id: (answer.body as { Id: string }).Id, name: options.name };
      await start(reference, spec, offering);
      return reference;
    },
    inspect: (reference) =>
      detailsOf(reference).then(toFound, (error: unknown): supplier.Inspection => {
        if (error instanceof supplier.InstanceGone) return { kind: 'gone' };
        throw error;
      }),
    list: async function* (tags) {
      const label = Object.entries(tags).map(([name, value]) => `${name}=${value}`);
      const filters = encodeURIComponent(JSON.stringify({ label }));
      const answer = await engine.ask('GET', `/containers/json?all=1&filters=${filters}`);
      if (answer.status !== 200) throw new supplier.Ambiguous(messageOf(answer));
      yield* (answer.body as ContainerSummary[]).map(toSummary);
    },
    setDeadline: async () => {},
    suspend: (reference) => change(reference, 'pause', 'suspended'),
    resume: (reference) => change(reference, 'unpause', 'running'),
    terminate,
    exec: async (reference, command) => {
      if (command.cwd !== undefined) {
        const path = encodeURIComponent(`${folderOf(command.cwd)}/.`);
        const { status } = await engine.head(`/containers/${reference.id}/archive?path=${path}`);
        if (status === 400 || status === 404)
          throw new supplier.FileFailure('not-folder', 'cwd: the folder does not exist');
      }
      return startExec(engine, reference, shellCommand(command));
    },
    inspectCommand: async (reference, commandId) => ({
      kind: (await runSignal(reference, commandId, 0)).exitCode === 0 ? 'running' : 'lost',
    }),
    signal: async (reference, commandId, signal) => {
      const { exitCode } = await runSignal(reference, commandId, signal);
      if (exitCode === SOME_ARE_LEFT)
        throw new supplier.Ambiguous(`some processes that the command started in ${reference.name} are still running`);
    },
    dialPort: async (reference, port) => {
      const details = await detailsOf(reference);
      if (toFound(details).state !== 'running') throw new supplier.NotRunning(`${reference.name} is not running`);
      const { SandboxKey, Networks } = details.NetworkSettings;
      const address = Object.values(Networks).find(({ IPAddress }) => IPAddress !== '')?.IPAddress;
      if (address !== undefined) return { host: address, port, headers: {} };
      if (!hasPorts(details)) throw new supplier.NotSupported(`${reference.name} has no ports`);
      const network = joinedNetwork(reference.id, SandboxKey);
      const host = '127.0.0.1';
      const connect = () => dialer.dial(network, host, port).catch(() => dialer.dial(network, '::1', port));
      return { host, port, headers: {}, connect };
    },
    close: () => dialer.close(),
  };
}

async function makeNetwork(engine: DockerEngine, name: string): Promise<void> {
  const Options = { 'com.docker.network.bridge.enable_icc': 'false' };
  const body = { Name: name, Driver: 'bridge', CheckDuplicate: true, Internal: true, Options };
  const answer = await engine.ask('POST', '/networks/create', { body });
  // 409: another process has just created the network.
  if (answer.status !== 201 && answer.status !== 409) throw new supplier.Ambiguous(messageOf(answer));
}

function ownerOf(user: string): Owner {
  const [uid, gid] = user.split(':').map(Number);
  return { uid: uid ?? 0, gid: gid ?? 0 };
}
