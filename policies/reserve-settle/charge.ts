import { Counter } from 'prom-client';
import type { Counted, Ending } from '../../core/calls/call';
import { type Candidate, entryOf } from '../../core/catalog/catalog';
import { type Charge, chargeOf } from '../../core/catalog/price';
import type { Usage } from '../../core/catalog/usage';
import { log } from '../../core/log';
import { metrics } from '../../core/metrics';

type Charged = Exclude<Ending, { billing: 'released' }>;

/** What an ending costs. What was only counted by us never costs more than was promised. */
export function chargeOfEnding(ending: Charged, heldE8: bigint): Charge {
  const charge = chargeOf(
    partsOf(ending).map(({ usage, candidate }) => ({ usage, priceOf: (pass) => entryOf(candidate, pass).price })),
  );
  return ending.isEstimate && charge.costE8 > heldE8 ? { ...charge, costE8: heldE8 } : charge;
}

function partsOf({ parts, usage, candidate }: Charged): NonNullable<Counted['parts']> {
  return parts ?? [{ usage, candidate }];
}

/** The passes as the record has them: a model is named where another one than was asked has answered. */
export function recordedUsage({ usage: { passes }, candidate }: Charged): Usage {
  return {
    passes: passes.map((pass) => {
      if (pass.model === undefined) return pass;
      const { name } = entryOf(candidate, pass);
      return { ...pass, model: name === candidate.model.name ? undefined : name };
    }),
  };
}

const doubts = new Counter({
  name: 'tollgate_usage_doubts_total',
  help: 'Answers whose report names what has no price or no meter, by upstream and kind (unknown, unpriced).',
  labelNames: ['upstream', 'kind'],
  registers: [metrics],
});

export type UsageFlag = 'unknown' | 'unpriced';

/** Each upstream and name is logged once; so many at most, because a vendor may send any names. */
const MOST_LOGGED = 1_000;
const logged = new Set<string>();

/**
 * Raises an alarm for numbers that no meter counts and for what has no price, and returns the flags of the record. A path or a name
 * that the upstream's `ignoreUsage` has is no doubt.
 */
export function doubtsOf({ usage, candidate: { upstream } }: Charged, { unpriced }: Charge): readonly UsageFlag[] {
  const { unknown = [] } = usage;
  if (unknown.length === 0 && unpriced.length === 0) return [];
  const isNew = (kind: UsageFlag, names: readonly string[]): boolean => {
    const meant = names.filter((name) => !upstream.ignoreUsage.has(name));
    for (const name of meant) tell(upstream, kind, name);
    if (meant.length > 0) doubts.inc({ upstream: upstream.name, kind });
    return meant.length > 0;
  };
  const flags: UsageFlag[] = [];
  if (isNew('unknown', unknown)) flags.push('unknown');
  if (isNew('unpriced', unpriced)) flags.push('unpriced');
  return flags;
}

function tell({ name: upstream }: Candidate['upstream'], kind: UsageFlag, what: string): void {
  const key = `${upstream} ${kind} ${what}`;
  if (logged.has(key) || logged.size === MOST_LOGGED) return;
  logged.add(key);
  const why =
    kind === 'unknown'
      ? 'an upstream reports a number that no meter counts, and it is not charged: see docs/money.md, or name it in ignoreUsage'
      : 'an upstream reports what has no price, and the dearest price that could apply is charged: give it a price';
  log.warn({ upstream, what }, why);
}
