import {
  type CreateOptions,
  type Found,
  type InstanceReference,
  type InstanceSpec,
  type InstanceState,
  type InstanceSummary,
  type Tags,
  WORK_FOLDER,
} from '../../../../core/supplier';
import type { OfferingSettings } from './settings';

/** Keeps the instance alive until it is terminated; stops at once when it is asked to. */
const KEEP_ALIVE = 'trap "exit 0" TERM; while :; do sleep 86400 & wait $!; done';

/** The body of `POST /containers/create`. */
export function containerOf(
  spec: InstanceSpec,
  { image, user, maxProcesses, limitVolume }: OfferingSettings,
  { tags }: CreateOptions,
  network: string,
): object {
  const memoryBytes = Math.floor(spec.memoryGiB * 2 ** 30);
  return {
    Image: image,
    Entrypoint: ['/bin/sh', '-c', KEEP_ALIVE],
    Cmd: [],
    User: user,
    WorkingDir: WORK_FOLDER,
    Env: [`HOME=${WORK_FOLDER}`],
    Hostname: 'sandbox',
    Labels: tags,
    Healthcheck: { Test: ['NONE'] },
    HostConfig: {
      NanoCpus: Math.round(spec.cpu * 1e9),
      Memory: memoryBytes,
      // The same number: no swap beside the memory.
      MemorySwap: memoryBytes,
      PidsLimit: maxProcesses,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      Init: true,
      NetworkMode: spec.ports ? network : 'none',
      RestartPolicy: { Name: 'no' },
      LogConfig: { Type: 'none' },
      // Only some storage drivers can, and those that cannot refuse the whole container.
      ...(limitVolume && spec.volumeGiB > 0 ? { StorageOpt: { size: `${spec.volumeGiB}G` } } : {}),
    },
  };
}

/** What `GET /containers/{id}/json` says, as far as it is read. */
export interface ContainerDetails {
  readonly Id: string;
  readonly Name: string;
  readonly Created: string;
  readonly State: { readonly Status: string; readonly StartedAt: string; readonly FinishedAt: string };
  readonly Config: { readonly Labels: Tags | null; readonly User: string };
  readonly NetworkSettings: { readonly Networks: Readonly<Record<string, { readonly IPAddress: string }>> };
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
    tags: details.Config.Labels ?? {},
    createdAt: new Date(details.Created),
    incarnation: state === 'starting' ? '' : details.State.StartedAt,
    endedAt: state === 'ended' ? timeOf(details.State.FinishedAt) : undefined,
  };
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
    tags: summary.Labels ?? {},
    createdAt: new Date(summary.Created * 1_000),
  };
}
