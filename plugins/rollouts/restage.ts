import { isDeepStrictEqual } from 'node:util';
import type { Rollout } from '../../core/rollouts/rollout';

/** How far a rollout has come, as it is written down. */
interface Placed {
  readonly shares: readonly number[];
  readonly stage: number;
}

/** Where a rollout goes on when other stages are written for it. */
export interface Restaged {
  readonly stage: number;
  /** It has come to it by the same stages: what was seen of them is still of them. */
  readonly isSameSoFar: boolean;
}

export function sharesOf({ stages }: Pick<Rollout, 'stages'>): readonly number[] {
  return stages.map(({ share }) => share);
}

export function hasStagesOf({ shares }: Pick<Placed, 'shares'>, rollout: Pick<Rollout, 'stages'>): boolean {
  return isDeepStrictEqual(shares, sharesOf(rollout));
}

/** At the last stage that has no more callers in it than there are now; when all have more, at the first. */
export function restage({ shares, stage }: Placed, rollout: Pick<Rollout, 'stages'>): Restaged {
  const next = sharesOf(rollout);
  if (stage <= next.length && isDeepStrictEqual(shares.slice(0, stage), next.slice(0, stage)))
    return { stage, isSameSoFar: true };
  const share = shares[stage - 1] ?? 0;
  const last = next.findLastIndex((each) => each <= share);
  return { stage: Math.max(last, 0) + 1, isSameSoFar: false };
}
