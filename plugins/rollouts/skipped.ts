import { isDeepStrictEqual } from 'node:util';
import type { Configuration } from '../../core/configuration/configuration';
import { percent } from '../../core/rollouts/plan';
import type { Rollout, RolloutChange } from '../../core/rollouts/rollout';
import { type RolloutRow, restage } from './store';

type Part = Pick<Configuration, 'rollouts' | 'catalog' | 'pipelines'>;

/** Returns the row of the rollout with this name. */
type RowOf = (name: string) => RolloutRow | undefined;

/** Returns a sentence for each change that the new configuration would give to more callers than the change's rollout has reached. */
export function skippedStages(before: Part, next: Part, rowOf: RowOf): readonly string[] {
  return [
    ...before.rollouts.flatMap((rollout) => overtaken(rollout, next, rowOf)),
    ...next.rollouts
      .filter(({ name }) => before.rollouts.every((each) => each.name !== name))
      .flatMap((rollout) => remembered(rollout, rowOf)),
  ];
}

function overtaken(rollout: Rollout, next: Part, rowOf: RowOf): readonly string[] {
  const { name, stages, change } = rollout;
  const row = rowOfThis(rollout, rowOf);
  if (row?.status === 'completed') return [];
  const share = shareOfRow(row);
  const heir = next.rollouts.find((each) => keepsBack(each.change, change));
  const then = heir === undefined ? (isForAll(change, next) ? 1 : 0) : shareAtFirst(heir, rowOf);
  if (then <= share) return [];
  const isOut = row === undefined || row.status === 'rolled-back';
  const where = isOut ? (row?.status ?? 'not begun') : `at stage ${row.stage} of ${stages.length}`;
  return [
    `rollout "${name}" is ${where}, with ${percent(share)} in it: this gives its change to ${percent(then)} at once`,
  ];
}

/** Warns if a new rollout would not begin at its first stage, because a row in Postgres already has it at a later stage. */
function remembered(rollout: Rollout, rowOf: RowOf): readonly string[] {
  const row = rowOfThis(rollout, rowOf);
  const [share, first] = [shareAtFirst(rollout, rowOf), rollout.stages[0].share];
  if (row === undefined || share <= first) return [];
  return [
    `rollout "${rollout.name}" already ran and is ${row.status}: it continues with ${percent(share)}, not with ${percent(first)}; rename it to start again`,
  ];
}

function rowOfThis({ name, definition }: Rollout, rowOf: RowOf): RolloutRow | undefined {
  const row = rowOf(name);
  return row?.definition === definition ? row : undefined;
}

function shareOfRow(row: RolloutRow | undefined): number {
  return row === undefined || row.status === 'rolled-back' ? 0 : (row.shares[row.stage - 1] ?? 0);
}

/** Returns the share of callers that a rollout has as soon as a node loads the configuration with this rollout. */
function shareAtFirst(rollout: Rollout, rowOf: RowOf): number {
  const row = rowOfThis(rollout, rowOf);
  if (row?.status === 'rolled-back') return 0;
  return rollout.stages[row === undefined ? 0 : restage(row, rollout).stage - 1]?.share ?? 0;
}

/** Tells whether the change `one` includes the change `other`. If it does, a rollout of `one` also limits which callers get `other`. */
function keepsBack(one: RolloutChange, other: RolloutChange): boolean {
  if (one.kind !== 'upstreams' || other.kind !== 'upstreams') return isDeepStrictEqual(one, other);
  const has = (list: 'add' | 'drop') => other[list].every((each) => one[list].includes(each));
  return one.model === other.model && has('add') && has('drop');
}

/** Tells whether the configuration gives the rollout's change to all callers, without the rollout. */
function isForAll(change: RolloutChange, { catalog, pipelines }: Part): boolean {
  switch (change.kind) {
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
