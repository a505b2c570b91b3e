import { Counter } from 'prom-client';
import { log } from '../../core/base/log';
import { metrics } from '../../core/base/metrics';
import { clampToCountable } from '../../core/base/money';
import type { CallFacts, Ending, ModelRequest } from '../../core/calls/call';
import { unpricedUnseen } from '../../core/calls/candidates';
import { type Candidate, entryOf } from '../../core/catalog/catalog';
import { type PriceOf, upstreamPrice } from '../../core/catalog/customer-prices';
import { type Charge, chargeOf } from '../../core/catalog/price';
import { outputTokens, totalInputTokens, type Usage } from '../../core/catalog/usage';
import { piecesOf, pointsOutside, type ToolUse } from '../../core/protocols/cost-factors';
import { maxReportedTokens } from './hold';
import type { Covered } from './reserve';

export type Charged = Exclude<Ending, { billing: 'released' }>;

interface CappedCharge extends Charge {
  /** The cost above the hold at the customer's prices, which the platform pays, in E8 (1e-8 USD). 0 if the gateway only estimated the usage. */
  readonly excessE8: bigint;
}

/** Returns the cost of a call that has ended, at the customer's prices. The customer pays at most the hold. */
export function chargeOfEnding(ending: Charged, heldE8: bigint, customerPriceOf: PriceOf): CappedCharge {
  const { costE8, exactE14, unpriced } = costOf(ending, customerPriceOf);
  if (costE8 <= heldE8) return { costE8, exactE14, unpriced, excessE8: 0n };
  const excessE8 = ending.isEstimate ? 0n : clampToCountable(costE8 - heldE8);
  return { costE8: heldE8, exactE14, unpriced, excessE8 };
}

/** Returns the cost of a call that has ended, at the upstream's prices. */
export function upstreamCostOf(ending: Charged): bigint {
  return costOf(ending, upstreamPrice).costE8;
}

function costOf({ usage, candidate }: Charged, priceOf: PriceOf): Charge {
  return chargeOf(usage, (pass) => priceOf(entryOf(candidate, pass)));
}

/** Returns the model runs as the usage record shows them. A run names its model only if it differs from the requested one. */
export function recordedUsage({ usage, candidate }: Charged): Usage {
  if (usage.passes.every(({ model }) => model === undefined)) return usage;
  return {
    passes: usage.passes.map((pass) => {
      const { model, tier, speed, geo, counts } = pass;
      if (model === undefined) return pass;
      const { name } = entryOf(candidate, pass);
      return { model: name === candidate.model.name ? undefined : name, tier, speed, geo, counts };
    }),
  };
}

const registers = [metrics];

const doubts = new Counter({
  name: 'tollgate_usage_doubts_total',
  help: 'Answers whose reported usage cannot be charged as reported, by upstream and kind (unknown, unpriced, suspect).',
  labelNames: ['upstream', 'kind'],
  registers,
});
const excess = new Counter({
  name: 'tollgate_excess_usd_total',
  help: 'Cost in USD above the holds of calls, which the platform pays, by upstream and cause (request, upstream).',
  labelNames: ['upstream', 'cause'],
  registers,
});

/** Counts answers that were charged by the gateway's own estimate. A rise is an alarm: an upstream or an adapter counts wrongly. */
export const estimatedUsage = new Counter({
  name: 'tollgate_usage_estimated_total',
  help: 'Answers whose usage was missing or impossible and was estimated instead, by upstream.',
  labelNames: ['upstream'],
  registers,
});

type UsageFlag = 'unknown' | 'unpriced' | 'suspect';

const NO_FLAGS: ReadonlySet<UsageFlag> = new Set();

/**
 * Raises an alarm for counts without a meter, for usage without a price, and for a report that is contradictory or impossible for the call.
 * Returns the flags of the usage record. Names in the upstream's `ignoreUsage` raise no alarm.
 */
export function judgeUsage(
  charged: Charged,
  { unpriced, excessE8 }: CappedCharge,
  { request }: Covered,
): ReadonlySet<UsageFlag> {
  const { usage, candidate } = charged;
  const { upstream } = candidate;
  const isImpossible = cannotBe(charged, request, excessE8);
  const unseen = unpricedUnseen(request.reading, candidate);
  const isReported = usage.suspect !== undefined || usage.unknown !== undefined;
  if (!isReported && !isImpossible && excessE8 === 0n && unpriced.length + unseen.length === 0) return NO_FLAGS;
  const suspect = [...(usage.suspect ?? []), ...(isImpossible ? ['tokens'] : [])];
  if (excessE8 > 0n)
    excess.inc({ upstream: upstream.name, cause: suspect.length > 0 ? 'upstream' : 'request' }, Number(excessE8) / 1e8);
  const flags = new Set<UsageFlag>();
  const raise = (kind: UsageFlag, names: readonly string[]) => {
    const meant = names.filter((name) => !upstream.ignoreUsage.has(name));
    if (meant.length === 0) return;
    for (const name of meant)
      warnOnce(`${upstream.name} ${kind} ${name}`, { upstream: upstream.name, what: name }, DOUBTS[kind]);
    doubts.inc({ upstream: upstream.name, kind });
    flags.add(kind);
  };
  raise('unknown', usage.unknown ?? []);
  raise('unpriced', [...new Set([...unpriced, ...unseen])]);
  raise('suspect', suspect);
  return flags;
}

/**
 * Returns whether the reported usage is impossible for the call: more output than its limit, or more input than the context window in each
 * run. A cost above the hold can only come from input, and only if the body points to content outside of itself. Otherwise the report is
 * impossible.
 */
function cannotBe(ending: Charged, request: ModelRequest, excessE8: bigint): boolean {
  if (ending.isEstimate) return false;
  const { usage, candidate } = ending;
  const most = maxReportedTokens(request, candidate);
  if (totalInputTokens(usage) > most.input || (outputTokens(usage) ?? 0) > most.output) return true;
  return excessE8 > 0n && (!pointsOutside(request.reading) || hasMorePieces(usage, request, candidate));
}

/** Returns whether an answer reports more uses of a vendor's tool than the call allowed. */
function hasMorePieces({ passes }: Usage, { reading, choices }: ModelRequest, { model }: Candidate): boolean {
  for (const meter of model.price.pieces.keys()) {
    let most = 0;
    for (const tool of reading.toolUses ?? []) if (tool.meter === meter) most += piecesOf(tool, model) * choices;
    if (passes.reduce((sum, { counts }) => sum + (counts.get(meter) ?? 0), 0) > most) return true;
  }
  return false;
}

const DOUBTS: Readonly<Record<UsageFlag, string>> = {
  unknown:
    'an upstream reports usage that no meter counts, and it is not charged: see docs/money.md, or add it to ignoreUsage',
  unpriced:
    'a call used something without a price: tokens cost the highest price that could apply, all else nothing: add a price, or set unpricedTools',
  suspect:
    'an upstream reports more usage than the call allows, or counts that contradict others; at most the hold is charged, and no rest: compare with its invoice, raise tokenizerFactor, or set totalHas',
};

/** How many names the log receives at most. Each is logged once. Their number is limited, because clients and vendors may send any names. */
const MAX_LOGGED = 1_000;
const logged = new Set<string>();

function warnOnce(what: string, facts: object, message: string): void {
  if (logged.has(what) || logged.size === MAX_LOGGED) return;
  logged.add(what);
  log.warn(facts, message);
}

/** Matches a name that cannot contain a secret or a sentence. */
const PLAIN_NAME = /^[A-Za-z][A-Za-z0-9_.() -]{0,63}$/;

/**
 * Logs the names in a request that neither the gateway nor the settings of a called upstream know. Returns whether there are any. For a
 * call that reached no upstream, every name that the gateway does not know counts.
 */
export function noteUnknownMembers({ made }: Pick<CallFacts, 'made'>, { reading, protocol }: ModelRequest): boolean {
  const names = reading.unknownMembers;
  if (names.length === 0 || made.length === 0) return names.length > 0;
  let isUnknown = false;
  for (const { upstream } of made.map(({ candidate }) => candidate)) {
    for (const name of names) {
      if (upstream.freeMembers?.has(name) === true) continue;
      isUnknown = true;
      const member = PLAIN_NAME.test(name) ? name : '(a name that is not shown)';
      const facts = { upstream: upstream.name, protocol, member };
      warnOnce(`${upstream.name} member ${member}`, facts, 'a request has an unknown member');
    }
  }
  return isUnknown;
}

/** Adds usage that the vendor charges per call but does not report, such as the web search of a Chat call. */
export function withUnreported(ending: Charged, { reading: { toolUses } }: Pick<ModelRequest, 'reading'>): Charged {
  if (toolUses === undefined) return ending;
  const missing = toolUses.filter(
    ({ meter, isReported }) => !isReported && meter !== undefined && !has(ending.usage, meter),
  );
  if (missing.length === 0) return ending;
  return { ...ending, usage: withPieces(ending.usage, missing) };
}

function has({ passes }: Usage, meter: string): boolean {
  return passes.some(({ counts }) => counts.has(meter));
}

function withPieces({ passes, ...rest }: Usage, tools: readonly ToolUse[]): Usage {
  const [first = { counts: new Map<string, number>() }, ...others] = passes;
  const counts = new Map(first.counts);
  for (const { meter, pieces } of tools) if (meter !== undefined) counts.set(meter, pieces);
  return { ...rest, passes: [{ ...first, counts }, ...others] };
}
