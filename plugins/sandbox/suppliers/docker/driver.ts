import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { parseDuration } from '../../../../core/settings';
import {
  AlreadyExists,
  Ambiguous,
  CALL_LIMIT_MS,
  type CommandSignal,
  type CommandSpec,
  type CommandState,
  type CreateOptions,
  defineSupplier,
  FileFailure,
  type Inspection,
  InstanceGone,
  type InstanceReference,
  type InstanceSpec,
  type InstanceSummary,
  NotRunning,
  NotSupported,
  type PortAddress,
  Rejected,
  type RunningCommand,
  type SupplierCapabilities,
  type SupplierDriver,
  type Tags,
} from '../supplier';
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
import { type Answer, Engine, messageOf } from './engine';
import { folderOf, runExec, SOME_ARE_LEFT, shellCommand, signalCommand, startExec } from './exec';
import { ContainerFiles, type Owner } from './files';
import {
  OFFERING_SCHEMA,
  type OfferingSettings,
  readOfferingSettings,
  SUPPLIER_SCHEMA,
  type SupplierSettings,
} from './settings';

const UNBOUNDED_DISKS =
  'the disk of instances is not bounded: set readOnlyRoot, or use a storage driver that holds sizes (overlay2 on xfs with pquota)';

const OPEN_NETWORK =
  'instances reach what listens on this machine in the network that `network` names: keep that from them by a firewall (docs/writing-a-driver.md)';

const NO_PORTS =
  'ports of instances cannot be reached: the gateway needs root and nsenter to join their networks. Run it so, or set `network`';

/** Runs each instance as one container. */
export class DockerDriver implements SupplierDriver {
  readonly capabilities: SupplierCapabilities = {
    uniqueName: true,
    ttl: 'none',
    suspend: 'memory',
    isolation: 'container',
    exec: true,
    files: true,
    ports: true,
  };
  readonly files: ContainerFiles;
  readonly #engine: Engine;
  readonly #dialer = new Dialer();
  /** Whether the engine can limit disks, as far as is known. */
  #limitsDisks = true;

  constructor(
    private readonly settings: SupplierSettings,
    private readonly log: Pick<Logger, 'warn'>,
  ) {
    this.#engine = new Engine(settings.socket, {
      questions: parseDuration(settings.answersWithin),
      deeds: CALL_LIMIT_MS,
    });
    this.files = new ContainerFiles(this.#engine, async (reference) =>
      ownerOf((await this.#details(reference)).Config.User),
    );
  }

  /**
   * Checks that the engine supports the settings. If the engine does not answer now, a later creation reports the problem.
   * @throws StartFailure
   */
  async checkEngine(): Promise<void> {
    const answer = await this.#engine.ask('GET', '/info').catch(() => undefined);
    if (answer?.status !== 200) return;
    const info = answer.body as EngineInfo;
    mustKnowRuntime(info, this.settings.runtime);
    await this.#checkNetwork();
    const problem = diskProblem(info);
    if (problem === undefined) return;
    this.#limitsDisks = false;
    this.log.warn({ problem }, UNBOUNDED_DISKS);
  }

  async #checkNetwork(): Promise<void> {
    if (this.settings.network !== undefined) this.log.warn({ network: this.settings.network }, OPEN_NETWORK);
    else if (!(await canJoinNetworks())) this.log.warn(NO_PORTS);
  }

  async create(spec: InstanceSpec, options: CreateOptions): Promise<InstanceReference> {
    if (spec.gpu.length > 0) throw new Rejected('this driver has no GPUs');
    const offering = readOfferingSettings(spec.settings);
    const answer = await this.#makeContainer(spec, offering, options);
    if (answer.status === 409) throw await this.#adopt(spec, offering, options);
    if ((answer.status >= 400 && answer.status < 500) || isRefusedBound(answer)) throw new Rejected(messageOf(answer));
    if (answer.status !== 201) throw new Ambiguous(messageOf(answer));
    const reference = { id: (answer.body as { Id: string }).Id, name: options.name };
    await this.#start(reference, spec, offering);
    return reference;
  }

  /** Creates a container. An engine that cannot limit a disk's size rejects it; it is then created without the limit, if the offering allows that. */
  async #makeContainer(spec: InstanceSpec, offering: OfferingSettings, options: CreateOptions): Promise<Answer> {
    const make = (limitsDisk: boolean) =>
      this.#engine.ask('POST', `/containers/create?name=${encodeURIComponent(options.name)}`, {
        body: containerOf(spec, offering, options, { ...this.settings, limitsDisk }),
      });
    const answer = await make(offering.limitVolume ?? this.#limitsDisks);
    if (offering.limitVolume !== undefined || !isRefusedBound(answer)) return answer;
    this.#limitsDisks = false;
    this.log.warn({ problem: messageOf(answer) }, UNBOUNDED_DISKS);
    return make(false);
  }

  /** Handles a name that is taken. An earlier try, possibly interrupted, made the container, or another program did. */
  async #adopt(
    spec: InstanceSpec,
    offering: OfferingSettings,
    { name, tags }: CreateOptions,
  ): Promise<AlreadyExists | Rejected> {
    const details = await this.#named(name);
    const labels = details.Config.Labels ?? {};
    const isOurs = Object.entries(tags).every(([tag, value]) => labels[tag] === value);
    if (!isOurs) return new Rejected(`another container has the name ${name}`);
    const reference = referenceOf(details);
    if (details.State.Status === 'created') await this.#start(reference, spec, offering);
    return new AlreadyExists(reference);
  }

  /** Returns the container of a taken name. The engine reserves a name shortly before it shows the container. */
  async #named(name: string): Promise<ContainerDetails> {
    for (let tries = 0; tries < 20; tries += 1) {
      try {
        return await this.#details({ id: name, name });
      } catch (error) {
        if (!(error instanceof InstanceGone)) throw error;
        await sleep(50);
      }
    }
    throw new Ambiguous(`the name ${name} is in use, but no container has it`);
  }

  async #start(
    reference: InstanceReference,
    spec: InstanceSpec,
    { user, readOnlyRoot }: OfferingSettings,
  ): Promise<void> {
    if (!readOnlyRoot) await this.files.makeWorkFolder(reference, ownerOf(user));
    let answer = await this.#engine.ask('POST', `/containers/${reference.id}/start`);
    const { network } = this.settings;
    if (answer.status === 404 && spec.ports && network !== undefined && messageOf(answer).includes('network')) {
      await this.#makeNetwork(network);
      answer = await this.#engine.ask('POST', `/containers/${reference.id}/start`);
    }
    if (answer.status === 204 || answer.status === 304) return;
    const message = messageOf(answer);
    await this.terminate(reference);
    throw new Rejected(message);
  }

  async #makeNetwork(name: string): Promise<void> {
    const answer = await this.#engine.ask('POST', '/networks/create', {
      body: {
        Name: name,
        Driver: 'bridge',
        CheckDuplicate: true,
        Internal: true,
        Options: { 'com.docker.network.bridge.enable_icc': 'false' },
      },
    });
    // 409: another process has just created the network.
    if (answer.status !== 201 && answer.status !== 409) throw new Ambiguous(messageOf(answer));
  }

  async inspect(reference: InstanceReference): Promise<Inspection> {
    try {
      return toFound(await this.#details(reference));
    } catch (error) {
      if (error instanceof InstanceGone) return { kind: 'gone' };
      throw error;
    }
  }

  async *list(tags: Tags): AsyncGenerator<InstanceSummary> {
    const label = Object.entries(tags).map(([name, value]) => `${name}=${value}`);
    const filters = encodeURIComponent(JSON.stringify({ label }));
    const answer = await this.#engine.ask('GET', `/containers/json?all=1&filters=${filters}`);
    if (answer.status !== 200) throw new Ambiguous(messageOf(answer));
    yield* (answer.body as ContainerSummary[]).map(toSummary);
  }

  async setDeadline(): Promise<void> {}

  suspend(reference: InstanceReference): Promise<void> {
    return this.#change(reference, 'pause', 'suspended');
  }

  resume(reference: InstanceReference): Promise<void> {
    return this.#change(reference, 'unpause', 'running');
  }

  /** Pauses or unpauses an instance. The engine reports an error if that is already done, so the instance's own state decides. */
  async #change(reference: InstanceReference, verb: string, wanted: 'suspended' | 'running'): Promise<void> {
    const answer = await this.#engine.ask('POST', `/containers/${reference.id}/${verb}`);
    if (answer.status === 204) return;
    const { state } = toFound(await this.#details(reference));
    if (state !== wanted)
      throw state === 'ended' ? new NotRunning(messageOf(answer)) : new Ambiguous(messageOf(answer));
  }

  async terminate(reference: InstanceReference): Promise<void> {
    this.#dialer.end({ name: reference.id });
    const answer = await this.#engine.ask('DELETE', `/containers/${reference.id}?force=1&v=1`);
    if (answer.status !== 204 && answer.status !== 404) throw new Ambiguous(messageOf(answer));
  }

  async exec(reference: InstanceReference, command: CommandSpec): Promise<RunningCommand> {
    if (command.cwd !== undefined) await this.#mustBeFolder(reference, command.cwd);
    return startExec(this.#engine, reference, shellCommand(command));
  }

  async #mustBeFolder({ id }: InstanceReference, cwd: string): Promise<void> {
    const path = encodeURIComponent(`${folderOf(cwd)}/.`);
    const { status } = await this.#engine.head(`/containers/${id}/archive?path=${path}`);
    if (status === 400 || status === 404) throw new FileFailure('not-folder', 'cwd: the folder does not exist');
  }

  async inspectCommand(reference: InstanceReference, commandId: string): Promise<CommandState> {
    const { exitCode } = await runExec(this.#engine, reference, { argv: signalCommand(commandId, 0), env: {} });
    return { is: exitCode === 0 ? 'running' : 'lost' };
  }

  async signal(reference: InstanceReference, commandId: string, signal: CommandSignal): Promise<void> {
    const argv = signalCommand(commandId, signal);
    const { exitCode } = await runExec(this.#engine, reference, { argv, env: {} });
    if (exitCode === SOME_ARE_LEFT)
      throw new Ambiguous(`some processes that the command started in ${reference.name} are still running`);
  }

  async dialPort(reference: InstanceReference, port: number): Promise<PortAddress> {
    const details = await this.#details(reference);
    if (toFound(details).state !== 'running') throw new NotRunning(`${reference.name} is not running`);
    const { SandboxKey, Networks } = details.NetworkSettings;
    const address = Object.values(Networks).find(({ IPAddress }) => IPAddress !== '')?.IPAddress;
    if (address !== undefined) return { host: address, port, headers: {} };
    if (!hasPorts(details)) throw new NotSupported(`${reference.name} has no ports`);
    const network = joinedNetwork(reference.id, SandboxKey);
    const host = '127.0.0.1';
    const connect = () => this.#dialer.dial(network, host, port).catch(() => this.#dialer.dial(network, '::1', port));
    return { host, port, headers: {}, connect };
  }

  close(): Promise<void> {
    return this.#dialer.close();
  }

  async #details({ id, name }: InstanceReference): Promise<ContainerDetails> {
    const answer: Answer = await this.#engine.ask('GET', `/containers/${encodeURIComponent(id)}/json`);
    if (answer.status === 404) throw new InstanceGone(`the instance ${name} does not exist`);
    if (answer.status !== 200) throw new Ambiguous(messageOf(answer));
    return answer.body as ContainerDetails;
  }
}

function ownerOf(user: string): Owner {
  const [uid, gid] = user.split(':').map(Number);
  return { uid: uid ?? 0, gid: gid ?? 0 };
}

export const docker = defineSupplier({
  contract: 'supplier/1',
  name: 'docker',
  summary: 'Containers of a Docker Engine on this machine.',
  schema: SUPPLIER_SCHEMA,
  offeringSchema: OFFERING_SCHEMA,
  open: async (settings, { log }) => {
    const driver = new DockerDriver(settings, log);
    await driver.checkEngine();
    return driver;
  },
});
