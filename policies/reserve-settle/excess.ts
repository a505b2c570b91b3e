import { Counter } from 'prom-client';
import type { ModelRequest } from '../../core/calls/call';
import { outputTokens, totalInputTokens } from '../../core/catalog/usage';
import { reachesOutside } from '../../core/dialects/reading';
import { metrics } from '../../core/metrics';
import type { Charged } from './charge';
import { mostTokens } from './hold';

const excess = new Counter({
  name: 'tollgate_excess_usd_total',
  help: 'Cost in USD above the holds of calls, which the platform pays, by upstream and cause (request, upstream, unpriced).',
  labelNames: ['upstream', 'cause'],
  registers: [metrics],
});

/**
 * Counts what an upstream charges above the hold. Returns whether its report is suspect: above the hold or the call's own limits,
 * although the vendor had nothing to read outside the body.
 */
export function judgeReport(
  ending: Charged,
  request: ModelRequest,
  { excessE8, isUnpriced }: { readonly excessE8: bigint; readonly isUnpriced: boolean },
): boolean {
  const upstream = ending.candidate.upstream.name;
  const isOutside = reachesOutside(request.reading);
  const ofRequest = isUnpriced ? 'unpriced' : 'request';
  if (excessE8 > 0n) excess.inc({ upstream, cause: isOutside ? ofRequest : 'upstream' }, usdOf(excessE8));
  return !isOutside && !ending.isEstimate && (excessE8 > 0n || isAboveLimits(ending, request));
}

/** True if a report has more tokens than the call allows. */
function isAboveLimits({ usage, candidate }: Charged, request: ModelRequest): boolean {
  const most = mostTokens(request, candidate);
  return totalInputTokens(usage) > most.input || (outputTokens(usage) ?? 0) > most.output;
}

/** Returns an amount as a plain number, because metrics are plain numbers. */
function usdOf(amountE8: bigint): number {
  return Number(amountE8) / 1e8;
}
