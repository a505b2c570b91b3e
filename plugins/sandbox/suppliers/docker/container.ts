import { StartFailure } from '../../../../core/base/start-failure';
import * as supplier from '../supplier';
import { type EngineAnswer, messageOf } from './engine';
import type { OfferingSettings } from './settings';

/** The command that keeps an instance alive until it is terminated. It stops at once on SIGTERM. */
const KEEP_ALIVE = 'trap "exit 0" TERM; while :; do sleep 86400 & wait $!; done';

/** The size of the disk in GiB if the offering sets none. */
const DISK_GIB = 10;

/** The label of containers whose ports may be dialled. */
const PORTS_LABEL = 'tollgate.ports';

interface Around {
  /** The network that instances with ports join. Absent: instances have only a loopback interface. */
  readonly network?: string | undefined;
  /** The runtime of the containers. Absent: the engine's default runtime. */
  readonly runtime?: string | undefined;
  /** Whether the engine is asked to limit the size of the disk. */
  readonly limitsDisk: boolean;
}

/** Returns the body of `POST /containers/create`. */
export function containerOf(
  spec: supplier.InstanceSpec,
  { image, user, maxProcesses, ulimits, readOnlyRoot }: OfferingSettings,
  { tags }: supplier.CreateOptions,
  { network, runtime, limitsDisk }: Around,
): object {
  const memoryBytes = bytesOf(spec.memoryGiB);
  return {
    Image: image,
    Entrypoint: ['/bin/sh', '-c', KEEP_ALIVE],
    Cmd: [],
    User: user,
    WorkingDir: supplier.WORK_FOLDER,
    Env: [`HOME=${supplier.WORK_FOLDER}`],
    Hostname: 'sandbox',
    Labels: { ...tags, ...(spec.ports && { [PORTS_LABEL]: '' }) },
    Healthcheck: { Test: ['NONE'] },
    HostConfig: {
      NanoCpus: Math.round(spec.cpu * 1e9),
      Memory: memoryBytes,
      // `MemorySwap` limits memory and swap together. With the same value as `Memory`, the container has no swap.
      MemorySwap: memoryBytes,
      PidsLimit: maxProcesses,
      Ulimits: Object.entries(ulimits).map(([Name, limit]) => ({ Name, Soft: limit, Hard: limit })),
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      Init: true,
      NetworkMode: (spec.ports && network) || 'none',
      RestartPolicy: { Name: 'no' },
      LogConfig: { Type: 'none' },
      ...(runtime !== undefined && { Runtime: runtime }),
      ...(readOnlyRoot && {
        ReadonlyRootfs: true,
        Mounts: WRITABLE_FOLDERS.map((folder) => volumeInMemory(folder, user, spec)),
      }),
      ...(limitsDisk && !readOnlyRoot && { StorageOpt: { size: String(bytesOf(spec.volumeGiB || DISK_GIB)) } }),
    },
  };
}

const WRITABLE_FOLDERS = [supplier.WORK_FOLDER, '/tmp'];

/**
 * Returns a mount in memory. It is a volume, because the engine's archive endpoints see no other sort of tmpfs. The engine
 * removes it with its container.
 */
function volumeInMemory(folder: string, user: string, { volumeGiB, memoryGiB }: supplier.InstanceSpec): object {
  const [uid, gid] = user.split(':');
  const o = `size=${bytesOf(volumeGiB || memoryGiB / 2)},uid=${uid},gid=${gid},mode=755,nosuid,nodev`;
  return {
    Type: 'volume',
    Target: folder,
    VolumeOptions: { NoCopy: true, DriverConfig: { Name: 'local', Options: { type: 'tmpfs', device: 'tmpfs', o } } },
  };
}

function bytesOf(gib: number): number {
  return Math.floor(gib * 2 ** 30);
}

/** The members of `GET /containers/{id}/json` that the driver reads. */
export interface ContainerDetails {
  readonly Id: string;
  readonly Name: string;
  readonly Created: string;
  readonly State: { readonly Status: string; readonly StartedAt: string; readonly FinishedAt: string };
  readonly Config: { readonly Labels: supplier.Tags | null; readonly User: string };
  readonly NetworkSettings: {
    /** The path of the container's network namespace while it runs; otherwise empty. */
    readonly SandboxKey: string;
    readonly Networks: Readonly<Record<string, { readonly IPAddress: string }>>;
  };
}

/** The members of an entry of `GET /containers/json` that the driver reads. */
export interface ContainerSummary {
  readonly Id: string;
  readonly Names: readonly string[];
  readonly Created: number;
  readonly State: string;
  readonly Labels: supplier.Tags | null;
}

const STATES: Readonly<Record<string, supplier.InstanceState>> = {
  created: 'starting',
  restarting: 'starting',
  running: 'running',
  paused: 'suspended',
};

export function referenceOf({ Id, Name }: Pick<ContainerDetails, 'Id' | 'Name'>): supplier.InstanceReference {
  return { id: Id, name: Name.replace(/^\//, '') };
}

export function toFound(details: ContainerDetails): supplier.Found {
  const state = STATES[details.State.Status] ?? 'ended';
  return {
    kind: 'found',
    reference: referenceOf(details),
    state,
    tags: tagsIn(details.Config.Labels),
    createdAt: new Date(details.Created),
    incarnation: state === 'starting' ? '' : details.State.StartedAt,
    endedAt: state === 'ended' ? timeOf(details.State.FinishedAt) : undefined,
  };
}

function tagsIn(labels: supplier.Tags | null): supplier.Tags {
  const { [PORTS_LABEL]: _, ...tags } = labels ?? {};
  return tags;
}

export function hasPorts({ Config }: ContainerDetails): boolean {
  return PORTS_LABEL in (Config.Labels ?? {});
}

/** Parses a time of the engine. Returns undefined for the year 1, which the engine writes for "never". */
function timeOf(text: string): Date | undefined {
  const time = new Date(text);
  return time.getTime() > 0 ? time : undefined;
}

export function toSummary(summary: ContainerSummary): supplier.InstanceSummary {
  return {
    reference: referenceOf({ Id: summary.Id, Name: summary.Names[0] ?? '' }),
    state: STATES[summary.State] ?? 'ended',
    tags: tagsIn(summary.Labels),
    createdAt: new Date(summary.Created * 1_000),
  };
}

/** The members of `GET /info` that the driver reads. */
export interface EngineInfo {
  readonly Runtimes: Readonly<Record<string, unknown>>;
  /** The storage driver. */
  readonly Driver: string;
  readonly DriverStatus: readonly (readonly [string, string])[] | null;
}

/** Runtime names that begin with `io.containerd.` are found by containerd itself, even if the Docker engine's own list does not have them. */
const OF_CONTAINERD = /^io\.containerd\./;

/** Checks the configured container runtime. @throws StartFailure if the engine does not know it */
export function mustKnowRuntime({ Runtimes }: EngineInfo, runtime: string | undefined): void {
  if (runtime === undefined || OF_CONTAINERD.test(runtime) || runtime in Runtimes) return;
  const known = Object.keys(Runtimes).join(', ');
  throw new StartFailure(
    `The Docker engine does not know the runtime "${runtime}" of the setting \`runtime\`: it knows ${known}. Add it to the engine's daemon.json, or change the setting.`,
  );
}

/** Storage drivers that limit a disk's size on xfs only, with its project quotas (pquota) enabled. */
const NEED_XFS = ['overlay2', 'vfs'];
const HOLD_NO_SIZE = ['overlayfs', 'fuse-overlayfs', 'aufs', 'overlay'];

/** Returns why the engine cannot limit the size of a disk. undefined if it can, or if that is unknown. */
export function diskProblem({ Driver, DriverStatus }: EngineInfo): string | undefined {
  if (HOLD_NO_SIZE.includes(Driver)) return `the storage driver is ${Driver}`;
  const fileSystem = DriverStatus?.find(([name]) => name === 'Backing Filesystem')?.[1];
  if (!NEED_XFS.includes(Driver) || fileSystem === 'xfs') return undefined;
  return `the storage driver is ${Driver} on ${fileSystem ?? 'an unknown file system'}`;
}

/** Returns true if the engine rejected a container because of its disk size. Some versions answer 500 for this, although nothing was created. */
export function isRefusedBound(answer: EngineAnswer): boolean {
  return answer.status >= 400 && /storage-opt|quota/i.test(messageOf(answer));
}
