import { StartFailure } from '../../../../core/start-failure';
import { type Answer, messageOf } from './engine';

/** What `GET /info` says, as far as it is read. */
export interface EngineInfo {
  readonly Runtimes: Readonly<Record<string, unknown>>;
  /** The storage driver. */
  readonly Driver: string;
  readonly DriverStatus: readonly (readonly [string, string])[] | null;
}

/** Runtimes with such a name are found by containerd: they need not be in the engine's own list. */
const OF_CONTAINERD = /^io\.containerd\./;

/** @throws StartFailure when the engine does not know the runtime */
export function mustKnowRuntime({ Runtimes }: EngineInfo, runtime: string | undefined): void {
  if (runtime === undefined || OF_CONTAINERD.test(runtime) || runtime in Runtimes) return;
  const known = Object.keys(Runtimes).join(', ');
  throw new StartFailure(
    `The Docker engine does not know the runtime "${runtime}" of the setting \`runtime\`: it knows ${known}. Add it to the engine's daemon.json, or change the setting.`,
  );
}

/** Storage drivers that hold the size of a disk on xfs only, where its quotas of projects (pquota) are on. */
const NEED_XFS = ['overlay2', 'vfs'];
const HOLD_NO_SIZE = ['overlayfs', 'fuse-overlayfs', 'aufs', 'overlay'];

/** Returns why the engine cannot hold the size of a disk; undefined where it can, or may. */
export function diskProblem({ Driver, DriverStatus }: EngineInfo): string | undefined {
  if (HOLD_NO_SIZE.includes(Driver)) return `the storage driver is ${Driver}`;
  const fileSystem = DriverStatus?.find(([name]) => name === 'Backing Filesystem')?.[1];
  if (!NEED_XFS.includes(Driver) || fileSystem === 'xfs') return undefined;
  return `the storage driver is ${Driver} on ${fileSystem ?? 'an unknown file system'}`;
}

/** Whether the engine refused a container for the size of its disk. Some of its versions answer 500, though nothing was made. */
export function isRefusedBound(answer: Answer): boolean {
  return answer.status >= 400 && /storage-opt|quota/i.test(messageOf(answer));
}
