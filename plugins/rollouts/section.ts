import {
  definitionOf,
  type GuardName,
  type Rollout,
  type RolloutChange,
  type RolloutStage,
} from '../../core/rollouts/rollout';
import { DURATION, parseDuration, type Settings } from '../../core/settings';

const UPSTREAMS = {
  description: 'Names of upstreams under serviceEndpoints.',
  type: 'array',
  items: { type: 'string', 'x-names': 'upstream' },
  uniqueItems: true,
  default: [],
} as const;

const CALLERS = {
  description: 'Ids of accounts and keys.',
  type: 'array',
  items: {
    type: 'string',
    pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$',
    'x-expected': 'the id of an account or of a key',
  },
  uniqueItems: true,
  default: [],
} as const;

const GUARDS: readonly GuardName[] = ['errorRate', 'p95FirstTokenMs', 'costRatio'];

const GUARD = {
  type: 'object',
  additionalProperties: false,
  required: ['minCalls'],
  properties: {
    above: {
      description:
        "How much larger the treatment group's share of failed, slow or dear calls may be: 0.01 is one call in a hundred.",
      type: 'number',
      minimum: 0,
      maximum: 1,
      default: 0.02,
    },
    times: {
      description: "A call is slow or dear above this multiple of the control group's 95th percentile or median.",
      type: 'number',
      minimum: 1,
      default: 1,
    },
    minCalls: {
      description: 'Calls of the treatment group in the stage before the guard judges; no stage ends before.',
      type: 'integer',
      minimum: 10,
    },
  },
} as const;

const CHANGE = {
  description: 'The change: one of these.',
  type: 'object',
  additionalProperties: false,
  minProperties: 1,
  maxProperties: 1,
  properties: {
    upstreams: {
      description: 'The upstreams for calls of a model.',
      type: 'object',
      additionalProperties: false,
      required: ['model'],
      properties: {
        model: { description: 'The model, by any of its names.', type: 'string', 'x-names': 'model' },
        add: { ...UPSTREAMS, description: 'Upstreams for the treatment group only.' },
        drop: { ...UPSTREAMS, description: 'Upstreams that the treatment group no longer uses.' },
        first: {
          description: 'Tries added upstreams before all others; otherwise the strategy ranks them.',
          type: 'boolean',
          default: true,
        },
      },
    },
    version: {
      description: 'Which model an alias means.',
      type: 'object',
      additionalProperties: false,
      required: ['alias', 'model'],
      properties: {
        alias: { description: 'A name that calls use now.', type: 'string', 'x-names': 'model' },
        model: { description: 'The model it means from now on.', type: 'string', 'x-names': 'model' },
      },
    },
    pipeline: {
      description: 'Settings of policies of a pipeline.',
      type: 'object',
      additionalProperties: false,
      required: ['name', 'settings'],
      properties: {
        name: { description: 'The pipeline.', type: 'string' },
        settings: {
          description: 'By policy: the changed settings; the rest of its action stays.',
          type: 'object',
          minProperties: 1,
          additionalProperties: { type: 'object', minProperties: 1 },
        },
      },
    },
  },
} as const;

const ROLLOUT = {
  type: 'object',
  additionalProperties: false,
  required: ['change', 'stages'],
  properties: {
    change: CHANGE,
    stickyBy: {
      description: 'The unit that is assigned to a group: all its calls are in the same group.',
      enum: ['account', 'key', 'request'],
      default: 'account',
    },
    include: {
      ...CALLERS,
      description: 'Accounts and keys in the treatment group from the first stage on; guards do not count them.',
    },
    exclude: { ...CALLERS, description: 'Accounts and keys that are never in the treatment group.' },
    stages: {
      description: 'The stages, in order.',
      type: 'array',
      minItems: 1,
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['share', 'hold'],
        properties: {
          share: {
            description: 'Percent of the callers in the treatment group.',
            type: 'number',
            minimum: 0,
            maximum: 100,
          },
          hold: { ...DURATION, description: 'Shortest duration of the stage.' },
        },
      },
    },
    guards: {
      description:
        'Guards that end the rollout if more calls of the treatment group than of the control group fail (`errorRate`), are slow (`p95FirstTokenMs`) or are dear (`costRatio`).',
      type: 'object',
      propertyNames: { enum: GUARDS },
      additionalProperties: GUARD,
      default: {},
    },
    shadow: {
      description:
        "Percent of the control group's calls that are mirrored to the treatment; these answers are measured, discarded and never charged.",
      type: 'number',
      minimum: 0,
      maximum: 100,
      default: 0,
    },
    onAbort: {
      description:
        'When a guard ends it: `rollback` serves everybody as before; `hold` stays where it is and waits for an operator.',
      enum: ['rollback', 'hold'],
      default: 'rollback',
    },
  },
} as const;

export const ROLLOUTS = {
  description: 'Changes that are rolled out in stages, by name.',
  type: 'object',
  propertyNames: { pattern: '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$' },
  additionalProperties: ROLLOUT,
} as const;

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
  if (upstreams !== undefined) return { is: 'upstreams', ...upstreams };
  if (version !== undefined) return { is: 'version', ...version };
  const { name = '', settings = {} } = pipeline ?? {};
  return { is: 'settings', pipeline: name, settings: settings as Readonly<Record<string, object>> };
}

function readGuards(settings: RolloutSettings['guards']): Rollout['guards'] {
  return GUARDS.flatMap((name) => {
    const { [name]: guard } = settings;
    return guard === undefined ? [] : [{ ...guard, name }];
  });
}
