import {
  type CreateOptions,
  type Found,
  type InstanceReference,
  type InstanceSpec,
  type InstanceState,
  type InstanceSummary,
  type Tags,
  WORK_FOLDER,
} from '../supplier';
import type { OfferingSettings } from './settings';

/** Keeps the instance alive until it is terminated; stops at once when it is asked to. */
const KEEP_ALIVE = 'trap "exit 0" TERM; while :; do sleep 86400 & wait $!; done';

/** The disk of an instance whose offering names none. */
const DISK_GIB = 10;

/** A label of containers whose ports may be dialled. */
const PORTS_LABEL = 'tollgate.ports';

export interface Around {
  /** What instances with ports join; absent: they have loopback alone. */
  readonly network?: string | undefined;
  /** Absent: the engine's own choice. */
  readonly runtime?: string | undefined;
  /** The engine is asked to hold the size of the disk. */
  readonly limitsDisk: boolean;
}

/** Returns the body of `POST /containers/create`. */
export function containerOf(
  spec: InstanceSpec,
  { image, user, maxProcesses, ulimits, readOnlyRoot }: OfferingSettings,
  { tags }: CreateOptions,
  { network, runtime, limitsDisk }: Around,
): object {
  const memoryBytes = bytesOf(spec.memoryGiB);
  return {
    Image: image,
    Entrypoint: ['/bin/sh', '-c', KEEP_ALIVE],
    Cmd: [],
    User: user,
    WorkingDir: WORK_FOLDER,
    Env: [`HOME=${WORK_FOLDER}`],
    Hostname: 'sandbox',
    Labels: { ...tags, ...(spec.ports && { [PORTS_LABEL]: '' }) },
    Healthcheck: { Test: ['NONE'] },
    HostConfig: {
      NanoCpus: Math.round(spec.cpu * 1e9),
      Memory: memoryBytes,
      // The same number: no swap beside the memory.
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

const WRITABLE_FOLDERS = [WORK_FOLDER, '/tmp'];

/** A volume, because the engine's archive endpoints see volumes and no other sort of tmpfs. It is removed with its container. */
function volumeInMemory(folder: string, user: string, { volumeGiB, memoryGiB }: InstanceSpec): object {
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

/** What `GET /containers/{id}/json` says, as far as it is read. */
export interface ContainerDetails {
  readonly Id: string;
  readonly Name: string;
  readonly Created: string;
  readonly State: { readonly Status: string; readonly StartedAt: string; readonly FinishedAt: string };
  readonly Config: { readonly Labels: Tags | null; readonly User: string };
  readonly NetworkSettings: {
    /** A file that is the container's network, as long as it runs; empty before. */
    readonly SandboxKey: string;
    readonly Networks: Readonly<Record<string, { readonly IPAddress: string }>>;
  };
}

/** One of `GET /containers/json`. */
export interface ContainerSummary {
  readonly Id: string;
  readonly Names: readonly string[];
  readonly Created: number;
  readonly State: string;
  readonly Labels: Tags | null;
}

const STATES: Readonly<Record<string, InstanceState>> = {
  created: 'starting',
  restarting: 'starting',
  running: 'running',
  paused: 'suspended',
};

export function referenceOf({ Id, Name }: Pick<ContainerDetails, 'Id' | 'Name'>): InstanceReference {
  return { id: Id, name: Name.replace(/^\//, '') };
}

export function toFound(details: ContainerDetails): Found {
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

function tagsIn(labels: Tags | null): Tags {
  const { [PORTS_LABEL]: _, ...tags } = labels ?? {};
  return tags;
}

export function hasPorts({ Config }: ContainerDetails): boolean {
  return PORTS_LABEL in (Config.Labels ?? {});
}

/** The engine writes year 1 for "never". */
function timeOf(text: string): Date | undefined {
  const time = new Date(text);
  return time.getTime() > 0 ? time : undefined;
}

export function toSummary(summary: ContainerSummary): InstanceSummary {
  return {
    reference: referenceOf({ Id: summary.Id, Name: summary.Names[0] ?? '' }),
    state: STATES[summary.State] ?? 'ended',
    tags: tagsIn(summary.Labels),
    createdAt: new Date(summary.Created * 1_000),
  };
}
