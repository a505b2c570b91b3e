import { Counter } from 'prom-client';
import type { Candidate } from '../../core/catalog/catalog';
import { log } from '../../core/log';
import { metrics } from '../../core/metrics';
import type { Charged } from './charge';

const doubts = new Counter({
  name: 'tollgate_usage_doubts_total',
  help: 'Answers whose reported usage cannot be charged as reported, by upstream and kind (unknown, unpriced, suspect).',
  labelNames: ['upstream', 'kind'],
  registers: [metrics],
});

export type UsageFlag = 'unknown' | 'unpriced' | 'suspect';

/** The most names in the log. Each upstream and name is logged once, and the number is limited because a vendor may send any names. */
const MOST_LOGGED = 1_000;
const logged = new Set<string>();

/**
 * Raises an alarm for numbers that no meter counts, for usage without a price, and for a report above the call's limits. Returns
 * the flags of the usage record. Names in the upstream's `ignoreUsage` raise none.
 */
export function doubtsOf(
  { usage: { unknown = [] }, candidate: { upstream } }: Charged,
  unpriced: readonly string[],
  isSuspect: boolean,
): readonly UsageFlag[] {
  const flags: UsageFlag[] = [];
  const raise = (kind: UsageFlag, names: readonly string[]) => {
    const meant = names.filter((name) => !upstream.ignoreUsage.has(name));
    if (meant.length === 0) return;
    for (const name of meant) warn(upstream, kind, name);
    doubts.inc({ upstream: upstream.name, kind });
    flags.push(kind);
  };
  raise('unknown', unknown);
  raise('unpriced', unpriced);
  if (isSuspect) raise('suspect', ['tokens']);
  return flags;
}

const DOUBTS: Readonly<Record<UsageFlag, string>> = {
  unknown:
    'an upstream reports usage that no meter counts, and it is not charged: see docs/money.md, or add it to ignoreUsage',
  unpriced:
    'a call used something without a price: tokens cost the highest price that could apply, all else nothing: add a price, or set unpricedTools',
  suspect:
    'an upstream reports more usage than the call allows; at most the hold is charged: compare with its invoice, or raise tokenizerFactor',
};

function warn({ name: upstream }: Candidate['upstream'], kind: UsageFlag, what: string): void {
  const key = `${upstream} ${kind} ${what}`;
  if (logged.has(key) || logged.size === MOST_LOGGED) return;
  logged.add(key);
  log.warn({ upstream, what }, DOUBTS[kind]);
}
