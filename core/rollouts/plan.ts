import type { Guard, Rollout, RolloutChange } from './rollout';

/** Describes a rollout before it begins: what changes, which calls get it, and when. Returns pairs of topic and text. */
export function planOf(rollout: Rollout): readonly (readonly [string, string])[] {
  const { change, include, exclude, stages, guards, shadow, onAbort } = rollout;
  return [
    ['change', describeChange(change)],
    ...stages.map(({ holdMs }, index) => {
      const lasts = `${index + 1 < stages.length ? 'for' : 'and, if all is well, for good: watched for'} at least`;
      return [`stage ${index + 1}`, `${describeShare(rollout, index)} ${lasts} ${describeTime(holdMs)}`] as const;
    }),
    ...(include.size === 0 ? [] : [['always in', [...include].join(', ')] as const]),
    ...(exclude.size === 0 ? [] : [['never in', [...exclude].join(', ')] as const]),
    ...(shadow === 0 ? [] : [['shadow', `${percent(shadow)} of the calls of all others, unanswered`] as const]),
    ...guards.map((guard) => [`guard ${guard.name}`, describeGuard(guard)] as const),
    [
      'when a guard ends it',
      onAbort === 'rollback' ? 'everybody as before' : 'stays as it is until an operator decides',
    ],
  ];
}

export function describeChange(change: RolloutChange): string {
  switch (change.is) {
    case 'upstreams': {
      const { model, add, drop, first } = change;
      const added = add.length === 0 ? [] : [`${add.join(', ')}${first ? ' first' : ' too'}`];
      const dropped = drop.length === 0 ? [] : [`${drop.join(', ')} no more`];
      return `calls of ${model} ask ${[...added, ...dropped].join(', and ')}`;
    }
    case 'version':
      return `${change.alias} means ${change.model}`;
    case 'settings':
      return `pipeline ${change.pipeline}: ${JSON.stringify(change.settings)}`;
  }
}

const CALLERS = { account: 'accounts', key: 'keys', request: 'calls' } as const;

export function describeShare({ stages, stickyBy }: Pick<Rollout, 'stages' | 'stickyBy'>, index: number): string {
  return `${percent(stages[index]?.share ?? 0)} of the ${CALLERS[stickyBy]}`;
}

function describeGuard({ name, above, times, minCalls }: Guard): string {
  const beyond = {
    errorRate: 'fail',
    p95FirstTokenMs: `take longer than ${times} times the control group's p95`,
    costRatio: `cost more than ${times} times the control group's median`,
  };
  return `at most ${percent(above)} more of the calls than of the control group's ${beyond[name]}, judged from ${minCalls} calls on`;
}

export function percent(share: number): string {
  return `${Number((share * 100).toFixed(4))} %`;
}

const UNITS = [
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const;

/** Formats a duration as the configuration file does: in the largest unit that divides it. */
function describeTime(ms: number): string {
  const [unit, size] = UNITS.find(([, each]) => ms >= each && ms % each === 0) ?? ['ms', 1];
  return `${ms / size}${unit}`;
}
