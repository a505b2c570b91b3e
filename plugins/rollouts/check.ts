import { isDeepStrictEqual } from 'node:util';
import type { Catalog, Model } from '../../core/catalog/catalog';
import { normaliseModelName } from '../../core/catalog/model-names';
import { checkAction, type PipelineSettings } from '../../core/configuration/pipelines';
import { hint, type LocatedProblem, withHint } from '../../core/configuration/problems';
import type { RolloutChange, SettingsChange, UpstreamsChange, VersionChange } from '../../core/rollouts/rollout';
import { type RolloutSettings, type RolloutsSettings, readChange } from './section';

/** The catalog; undefined while the configuration of models has problems. */
type Models = Catalog | undefined;
type Pipelines = readonly PipelineSettings[] | undefined;

/** Returns the problems of rollouts that their schema cannot find. An earlier check has already reported unknown names. */
export function checkRollouts(settings: RolloutsSettings, catalog: Models, pipelines: Pipelines): LocatedProblem[] {
  const found: LocatedProblem[] = [];
  const before: { readonly name: string; readonly change: RolloutChange }[] = [];
  for (const [name, rollout] of Object.entries(settings)) {
    const change = readChange(rollout.change);
    const problems = [...checkChange(change, catalog, pipelines), ...checkStages(rollout), ...checkCallers(rollout)];
    const other = before.find((each) => areInTheWay(each.change, change, catalog, pipelines));
    if (other !== undefined) {
      const message = `this rollout and "${other.name}" would change the same calls: end one before the other starts`;
      problems.push({ path: ['change'], message });
    }
    before.push({ name, change });
    found.push(...problems.map(({ path, message }) => ({ path: [name, ...path], message })));
  }
  return found;
}

function checkStages({ stages, guards, shadow, change }: RolloutSettings): LocatedProblem[] {
  const problems: LocatedProblem[] = [];
  for (const [index, { share }] of stages.entries()) {
    const before = stages[index - 1]?.share ?? 0;
    if (share >= before) continue;
    const message = `falls from ${before} to ${share}: stages only widen, and \`tollgate rollout rollback\` is the way back`;
    problems.push({ path: ['stages', index, 'share'], message });
  }
  if (stages[0]?.share === 100 && Object.keys(guards).length > 0) {
    const message =
      'the first stage has all callers, so the guards have no control group and nothing can be rolled back';
    problems.push({ path: ['stages', 0, 'share'], message });
  }
  if (guards['errorRate'] !== undefined && guards['errorRate'].times !== 1)
    problems.push({
      path: ['guards', 'errorRate', 'times'],
      message: '`times` applies only to the guards of times and costs: remove it from this guard',
    });
  if (shadow > 0 && change.pipeline !== undefined)
    problems.push({ path: ['shadow'], message: 'settings of a pipeline cannot be mirrored; remove `shadow`' });
  return problems;
}

function checkCallers({ include, exclude }: RolloutSettings): LocatedProblem[] {
  return exclude.flatMap((id, index) =>
    include.includes(id)
      ? [{ path: ['exclude', index], message: `${id} is also listed under include; remove it from one of the lists` }]
      : [],
  );
}

function checkChange(change: RolloutChange, catalog: Models, pipelines: Pipelines): LocatedProblem[] {
  if (catalog === undefined) return [];
  switch (change.kind) {
    case 'upstreams':
      return checkUpstreams(change, catalog);
    case 'version':
      return checkVersion(change, catalog);
    case 'settings':
      return pipelines === undefined ? [] : checkSettings(change, catalog, pipelines);
  }
}

function checkUpstreams({ model: name, add, drop }: UpstreamsChange, catalog: Catalog): LocatedProblem[] {
  const path = ['change', 'upstreams'];
  const found = findModel(catalog, name, [...path, 'model']);
  if (!('model' in found)) return found.problems;
  const serving = found.model.entries.map(({ upstream }) => upstream.name);
  const strangers = [...namesIn('add', add), ...namesIn('drop', drop)].filter(
    (each) => !serving.includes(each.name) && catalog.upstreams.some((upstream) => upstream.name === each.name),
  );
  if (strangers.length > 0) {
    return strangers.map((each) => ({
      path: [...path, ...each.path],
      message: `"${each.name}" does not serve "${name}": add an entry under serviceEndpoints.${each.name}.models`,
    }));
  }
  const both = namesIn('drop', drop).filter((each) => add.includes(each.name));
  if (both.length > 0)
    return both.map((each) => ({
      path: [...path, ...each.path],
      message: `"${each.name}" is also listed under add; remove it from one of the lists`,
    }));
  if (add.length + drop.length === 0)
    return [{ path, message: 'the rollout changes nothing: name upstreams under add or drop' }];
  if (serving.every((each) => add.includes(each)))
    return [
      { path: [...path, 'add'], message: `the change cannot be rolled back: no other upstream serves "${name}"` },
    ];
  if (serving.every((each) => drop.includes(each)))
    return [{ path: [...path, 'drop'], message: `no upstream would be left that serves "${name}"` }];
  return [];
}

function namesIn(list: 'add' | 'drop', names: readonly string[]) {
  return names.map((name, index) => ({ name, path: [list, index] }));
}

function checkVersion({ alias, model }: VersionChange, catalog: Catalog): LocatedProblem[] {
  const path = ['change', 'version'];
  const now = findModel(catalog, alias, [...path, 'alias']);
  const next = findModel(catalog, model, [...path, 'model']);
  if (!('model' in now && 'model' in next))
    return [now, next].flatMap((each) => ('model' in each ? [] : each.problems));
  if (now.model !== next.model) return [];
  return [
    { path: [...path, 'model'], message: `the rollout changes nothing: "${alias}" already means "${now.model.name}"` },
  ];
}

function checkSettings(
  { pipeline: name, settings }: SettingsChange,
  catalog: Catalog,
  pipelines: readonly PipelineSettings[],
): LocatedProblem[] {
  const path = ['change', 'pipeline'];
  const pipeline = pipelines.find((each) => each.name === name);
  if (pipeline === undefined) {
    const known = pipelines.map((each) => each.name);
    return [{ path: [...path, 'name'], message: `pipeline "${name}" does not exist${hint(name, known)}` }];
  }
  const known = pipeline.steps.findIndex(({ policy }) => policy.provides.includes('key'));
  return Object.entries(settings).flatMap(([policyName, changed]) => {
    const at = [...path, 'settings', policyName];
    const index = pipeline.steps.findIndex(({ policy }) => policy.name === policyName);
    const step = pipeline.steps[index];
    if (step === undefined) {
      const policies = pipeline.steps.map(({ policy }) => policy.name);
      return [{ path: at, message: `pipeline "${name}" has no policy "${policyName}"${hint(policyName, policies)}` }];
    }
    if (index <= known || known === -1)
      return [
        {
          path: at,
          message: `"${policyName}" runs before the caller is identified, so a rollout cannot change its settings`,
        },
      ];
    const names: Parameters<typeof checkAction>[2] = [];
    const checked = checkAction(step.policy, { ...(step.settings as object), ...changed }, names);
    if ('problems' in checked)
      return checked.problems.map(withHint).map((each) => ({ ...each, path: [...at, ...each.path] }));
    const { declares } = step.policy;
    if (!isDeepStrictEqual(declares?.(checked.value), declares?.(step.settings)))
      return [
        {
          path: at,
          message:
            'this setting changes what the policy declares before the caller is identified; a rollout cannot change such a setting',
        },
      ];
    const upstreams = catalog.upstreams.map((each) => each.name);
    return names
      .filter((use) => use.kind === 'upstream' && use.name !== '*' && !upstreams.includes(use.name))
      .map((use) => ({
        path: [...at, ...use.path],
        message: `upstream "${use.name}" does not exist${hint(use.name, upstreams)}`,
      }));
  });
}

/** Tells whether two rollouts can apply to the same call. */
function areInTheWay(one: RolloutChange, other: RolloutChange, catalog: Models, pipelines: Pipelines): boolean {
  if (one.kind === 'settings' && other.kind === 'settings') return one.pipeline === other.pipeline;
  if (one.kind === 'settings') return routesModels(one, pipelines);
  if (other.kind === 'settings') return routesModels(other, pipelines);
  const isSame = (name: string, otherName: string) => {
    const [first, second] = [catalog?.find(name), catalog?.find(otherName)];
    if (first === undefined || second === undefined) return false;
    return 'found' in first && 'found' in second && first.found === second.found;
  };
  if (one.kind === 'version' && other.kind === 'version')
    return normaliseModelName(one.alias) === normaliseModelName(other.alias) && isSame(one.alias, other.alias);
  if (one.kind === 'upstreams' && other.kind === 'upstreams') return isSame(one.model, other.model);
  const [version, upstreams] = one.kind === 'version' ? [one, other as UpstreamsChange] : [other as VersionChange, one];
  return isSame(version.alias, upstreams.model) || isSame(version.model, upstreams.model);
}

/** Tells whether a settings rollout changes a pipeline that routes calls to upstreams. If so, a call of any model may be in that rollout. */
function routesModels({ pipeline }: SettingsChange, pipelines: Pipelines): boolean {
  const steps = pipelines?.find(({ name }) => name === pipeline)?.steps ?? [];
  return steps.some(({ policy }) => policy.name === 'strategy-routing');
}

type ModelLookup = { readonly model: Model } | { readonly problems: LocatedProblem[] };

function findModel(catalog: Catalog, name: string, path: readonly string[]): ModelLookup {
  const lookup = catalog.find(name);
  if ('found' in lookup) return { model: lookup.found };
  if (!('ambiguous' in lookup)) return { problems: [] };
  return {
    problems: [{ path, message: `the model name "${name}" is ambiguous: use ${lookup.ambiguous.join(' or ')}` }],
  };
}
