import { duration, flag, group, integer, list, map, number, text, word } from '../../core/base/setting-schemas';
import { parseDuration, type Settings } from '../../core/base/settings';
import {
  definitionOf,
  type GuardName,
  type Rollout,
  type RolloutChange,
  type RolloutStage,
} from '../../core/rollouts/rollout';

const UPSTREAMS = list(
  'Names of upstreams under serviceEndpoints.',
  { type: 'string', 'x-names': 'upstream' },
  { uniqueItems: true, default: [] },
);

const CALLERS = list(
  'Ids of accounts and keys.',
  {
    type: 'string',
    pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$',
    'x-expected': 'the id of an account or of a key',
  },
  { uniqueItems: true, default: [] },
);

const GUARDS: readonly GuardName[] = ['errorRate', 'p95FirstTokenMs', 'costRatio'];

const GUARD = {
  type: 'object',
  additionalProperties: false,
  required: ['minCalls'],
  properties: {
    above: number(
      "How much larger the treatment group's share of failed, slow or dear calls may be: 0.01 is one call in a hundred.",
      { minimum: 0, maximum: 1, default: 0.02 },
    ),
    times: number("A call is slow or dear above this multiple of the control group's 95th percentile or median.", {
      minimum: 1,
      default: 1,
    }),
    minCalls: integer('Calls of the treatment group in the stage before the guard judges; no stage ends before.', {
      minimum: 10,
    }),
  },
} as const;

const CHANGE = group(
  'The change: one of these.',
  {
    upstreams: group(
      'The upstreams for calls of a model.',
      {
        model: text('The model, by any of its names.', { 'x-names': 'model' }),
        add: { ...UPSTREAMS, description: 'Upstreams for the treatment group only.' },
        drop: { ...UPSTREAMS, description: 'Upstreams that the treatment group no longer uses.' },
        first: flag('Tries added upstreams before all others; otherwise the strategy ranks them.', { default: true }),
      },
      { required: ['model'] },
    ),
    version: group(
      'Which model an alias means.',
      {
        alias: text('A name that calls use now.', { 'x-names': 'model' }),
        model: text('The model it means from now on.', { 'x-names': 'model' }),
      },
      { required: ['alias', 'model'] },
    ),
    pipeline: group(
      'Settings of policies of a pipeline.',
      {
        name: text('The pipeline.'),
        settings: map(
          'By policy: the changed settings; the rest of its action stays.',
          { type: 'object', minProperties: 1 },
          { minProperties: 1 },
        ),
      },
      { required: ['name', 'settings'] },
    ),
  },
  { minProperties: 1, maxProperties: 1 },
);

const ROLLOUT = {
  type: 'object',
  additionalProperties: false,
  required: ['change', 'stages'],
  properties: {
    change: CHANGE,
    stickyBy: word(
      'The unit that is assigned to a group: all its calls are in the same group.',
      ['account', 'key', 'request'],
      { default: 'account' },
    ),
    include: {
      ...CALLERS,
      description: 'Accounts and keys in the treatment group from the first stage on; guards do not count them.',
    },
    exclude: { ...CALLERS, description: 'Accounts and keys that are never in the treatment group.' },
    stages: list(
      'The stages, in order.',
      {
        type: 'object',
        additionalProperties: false,
        required: ['share', 'hold'],
        properties: {
          share: number('Percent of the callers in the treatment group.', { minimum: 0, maximum: 100 }),
          hold: duration('Shortest duration of the stage.'),
        },
      },
      { minItems: 1 },
    ),
    guards: map(
      'Guards that end the rollout if more calls of the treatment group than of the control group fail (`errorRate`), are slow (`p95FirstTokenMs`) or are dear (`costRatio`).',
      GUARD,
      { propertyNames: { enum: GUARDS }, default: {} },
    ),
    shadow: number(
      "Percent of the control group's calls that are mirrored to the treatment; these answers are measured, discarded and never charged.",
      { minimum: 0, maximum: 100, default: 0 },
    ),
    onAbort: word(
      'When a guard ends it: `rollback` serves everybody as before; `hold` stays where it is and waits for an operator.',
      ['rollback', 'hold'],
      { default: 'rollback' },
    ),
  },
} as const;

export const ROLLOUTS = map('Changes that are rolled out in stages, by name.', ROLLOUT, {
  propertyNames: { pattern: '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$' },
});

export type RolloutSettings = Settings<typeof ROLLOUT>;
export type RolloutsSettings = Readonly<Record<string, RolloutSettings>>;

export function readRollouts(settings: RolloutsSettings): readonly Rollout[] {
  return Object.entries(settings).map(([name, each]) => {
    const { stickyBy, onAbort } = each;
    const change = readChange(each.change);
    const stages = each.stages.map(({ share, hold }) => ({ share: share / 100, holdMs: parseDuration(hold) }));
    return {
      name,
      change,
      stickyBy,
      stages: stages as [RolloutStage, ...RolloutStage[]],
      include: new Set(each.include),
      exclude: new Set(each.exclude),
      guards: readGuards(each.guards),
      shadow: each.shadow / 100,
      onAbort,
      definition: definitionOf({ change, stickyBy }),
    };
  });
}

export function readChange({ upstreams, version, pipeline }: RolloutSettings['change']): RolloutChange {
  if (upstreams !== undefined) return { kind: 'upstreams', ...upstreams };
  if (version !== undefined) return { kind: 'version', ...version };
  const { name = '', settings = {} } = pipeline ?? {};
  return { kind: 'settings', pipeline: name, settings: settings as Readonly<Record<string, object>> };
}

function readGuards(settings: RolloutSettings['guards']): Rollout['guards'] {
  return GUARDS.flatMap((name) => {
    const { [name]: guard } = settings;
    return guard === undefined ? [] : [{ ...guard, name }];
  });
}
