import type { Model } from '../shapes';

type Facts = Model['facts'][number];

/** Shows the regions of an upstream, such as `eu, us`. */
export function regionOf({ region }: Pick<Facts, 'region'>): string {
  return Array.isArray(region) ? region.join(', ') : region;
}

/** Says in words what a vendor does with what it is sent. */
export function handlingOf({ retention, trains }: Pick<Facts, 'retention' | 'trains'>): string {
  const keeps =
    typeof retention === 'number' ? `keeps ${retention} days` : retention === 'none' ? 'keeps nothing' : undefined;
  const learns = trains === 'unknown' ? undefined : trains === 'no' ? 'does not train' : 'trains';
  return [keeps, learns].filter((each) => each !== undefined).join(', ') || 'unknown';
}

/** Lists kinds of content, such as `text, image`. */
export function kindsOf(kinds: Facts['inputs']): string {
  return Array.isArray(kinds) ? kinds.join(', ') : kinds;
}
