import { Counter } from 'prom-client';
import type { Counted, Ending } from '../../core/calls/call';
import { type Candidate, entryOf } from '../../core/catalog/catalog';
import { type Charge, chargeOf } from '../../core/catalog/price';
import type { Usage } from '../../core/catalog/usage';
import { log } from '../../core/log';
import { metrics } from '../../core/metrics';
import { MAX_AMOUNT_E8 } from '../../core/money';

export type Charged = Exclude<Ending, { billing: 'released' }>;

export interface CappedCharge extends Charge {
  /** What the upstream charges above the hold: the platform's. 0 where we only counted. */
  readonly excessE8: bigint;
}

/** What an ending costs: the customer pays at most what was held. */
export function chargeOfEnding(ending: Charged, heldE8: bigint): CappedCharge {
  const charge = chargeOf(
    partsOf(ending).map(({ usage, candidate }) => ({ usage, priceOf: (pass) => entryOf(candidate, pass).price })),
  );
  const { costE8 } = charge;
  if (costE8 <= heldE8) return { ...charge, excessE8: 0n };
  return { ...charge, costE8: heldE8, excessE8: ending.isEstimate ? 0n : atMost(MAX_AMOUNT_E8, costE8 - heldE8) };
}

function atMost(most: bigint, amount: bigint): bigint {
  return amount < most ? amount : most;
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

export type UsageFlag = 'unknown' | 'unpriced' | 'suspect';

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

const DOUBTS: Readonly<Record<UsageFlag, string>> = {
  unknown:
    'an upstream reports a number that no meter counts, and it is not charged: see docs/money.md, or name it in ignoreUsage',
  unpriced: 'an upstream reports what has no price, and the dearest price that could apply is charged: give it a price',
  suspect:
    'an upstream reports more than the call allows, and at most the hold is charged: compare with its invoice, or raise tokenizerFactor',
};

export function tell({ name: upstream }: Candidate['upstream'], kind: UsageFlag, what: string): void {
  const key = `${upstream} ${kind} ${what}`;
  if (logged.has(key) || logged.size === MOST_LOGGED) return;
  logged.add(key);
  log.warn({ upstream, what }, DOUBTS[kind]);
}
