import type { Rollout, RolloutChange } from './rollout';

export function describeChange(change: RolloutChange): string {
  switch (change.kind) {
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

export function percent(share: number): string {
  return `${Number((share * 100).toFixed(4))} %`;
}
