import type { Model } from '../catalog/catalog';
import type { UpstreamHealth } from './health';

/** Returns the entries whose upstream is disabled neither in the configuration nor by an operator. */
export function routableEntries({ entries }: Model, health: UpstreamHealth): Model['entries'] {
  return entries.filter(
    ({ upstream: { name, disabled } }) => disabled === undefined && !health.upstream(name).isDisabledByOperator,
  );
}
