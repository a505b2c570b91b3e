import { isDeepStrictEqual } from 'node:util';
import type { Configuration } from '../../core/configuration';
import type { Rollout, RolloutChange } from '../../core/rollout';
import { percent } from '../../core/rollout-plan';
import type { RolloutRow } from './store';

type Part = Pick<Configuration, 'rollouts' | 'catalog' | 'pipelines'>;

/** What speaks against a configuration: it would give more callers a change than its rollout has come to. In sentences. */
export function skippedStages(
  before: Part,
  next: Part,
  rowOf: (rollout: Rollout) => RolloutRow | undefined,
): readonly string[] {
  return before.rollouts.flatMap((rollout) => {
    const { name, definition, stages, change } = rollout;
    const known = rowOf(rollout);
    const row = known?.definition === definition ? known : undefined;
    const planned = next.rollouts.find((each) => each.name === name);
    if (row?.status === 'completed' || planned?.definition === definition) return [];
    const isOut = row === undefined || row.status === 'rolled-back';
    const share = isOut ? 0 : (stages[row.stage - 1]?.share ?? 0);
    const then = planned === undefined ? (isForAll(change, next) ? 1 : 0) : planned.stages[0].share;
    if (then <= share) return [];
    const where = isOut ? (row?.status ?? 'not begun') : `at stage ${row.stage} of ${stages.length}`;
    return [
      `rollout "${name}" is ${where}, with ${percent(share)} in it: this gives its change to ${percent(then)} at once`,
    ];
  });
}

/** Without the rollout everybody has what it changes. */
function isForAll(change: RolloutChange, { catalog, pipelines }: Part): boolean {
  switch (change.is) {
    case 'upstreams': {
      const lookup = catalog.find(change.model);
      const serving = 'found' in lookup ? lookup.found.entries.map(({ upstream }) => upstream.name) : [];
      return change.add.some((each) => serving.includes(each)) || change.drop.some((each) => !serving.includes(each));
    }
    case 'version': {
      const [now, then] = [catalog.find(change.alias), catalog.find(change.model)];
      return 'found' in now && 'found' in then && now.found === then.found;
    }
    case 'settings': {
      const steps = pipelines.find(({ name }) => name === change.pipeline)?.steps ?? [];
      return steps.some(({ policy, settings }) =>
        Object.entries(change.settings[policy.name] ?? {}).some(([name, value]) =>
          isDeepStrictEqual((settings as Readonly<Record<string, unknown>>)[name], value),
        ),
      );
    }
  }
}
