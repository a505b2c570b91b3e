import type { Model } from '../catalog/catalog';
import type { UpstreamHealth } from './health';

/** The entries that calls can go to now: neither disabled nor taken out by an operator. */
export function routableEntries({ entries }: Model, health: UpstreamHealth): Model['entries'] {
  return entries.filter(
    ({ upstream: { name, disabled } }) => disabled === undefined && !health.upstream(name).isDisabledByOperator,
  );
}
