import type { Answers } from '../../shapes/answers';
import type { Columns } from '../output';

export type RolloutShape = Answers['GET /admin/v1/rollouts/{name}'];

export type CountsShape = RolloutShape['inStage']['control'];

export const ROLLOUT_COLUMNS: Columns<RolloutShape> = {
  name: ({ name }) => name,
  status: ({ status }) => status,
  stage: ({ stage, stages }) => `${stage} of ${stages.length}`,
  'share %': ({ share }) => share,
  'next in': ({ stageEndsAt }) => timeTo(stageEndsAt),
  calls: ({ inStage }) => inStage.candidate.calls,
  'failed %': ({ inStage }) => failed(inStage.candidate),
  change: ({ change }) => change,
  why: ({ reason, waitsFor }) => reason ?? waitsFor,
};

export function failed({ errorRate }: CountsShape): string | null {
  return errorRate === null ? null : (errorRate * 100).toFixed(2);
}

/** Returns the time left, in minutes and seconds or in hours and minutes. */
export function timeTo(at: string | null): string | null {
  if (at === null) return null;
  const seconds = Math.max(0, Math.round((Date.parse(at) - Date.now()) / 1_000));
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes}m ${seconds % 60}s` : `${Math.floor(minutes / 60)}h ${minutes % 60}m`;
}
