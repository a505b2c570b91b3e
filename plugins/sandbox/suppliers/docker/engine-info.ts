import { StartFailure } from '../../../../core/start-failure';
import { type Answer, messageOf } from './engine';

/** The members of `GET /info` that the driver reads. */
export interface EngineInfo {
  readonly Runtimes: Readonly<Record<string, unknown>>;
  /** The storage driver. */
  readonly Driver: string;
  readonly DriverStatus: readonly (readonly [string, string])[] | null;
}

/** Runtimes with such a name are found by containerd. They need not be in the engine's own list. */
const OF_CONTAINERD = /^io\.containerd\./;

/** Checks a runtime. @throws StartFailure if the engine does not know it */
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
export function isRefusedBound(answer: Answer): boolean {
  return answer.status >= 400 && /storage-opt|quota/i.test(messageOf(answer));
}
