import type { Knex } from 'knex';
import type { Catalog, Upstream } from '../../core/catalog/catalog';
import type { Egress } from '../../core/wire/egress';
import { type Comparison, compare } from './compare';
import { boundsOf, DAY_MS, type Days, dayOf } from './days';
import { countExpired, sumAttempts, sumCharges, sumCounts } from './own-attempts';
import { readReport } from './read-report';

export interface Books {
  readonly database: Knex;
  readonly egress: Egress;
  readonly catalog: Catalog;
}

/** Reads a vendor's report of these days and compares it with the records. @throws like `readReport` */
export async function compareUpstream(
  { database, egress, catalog }: Books,
  upstream: Upstream,
  days: Days,
  signal?: AbortSignal,
): Promise<Comparison> {
  const report = await readReport(egress, upstream, days, signal);
  const names = catalog.upstreams.filter((each) => isOnSameBill(each, upstream)).map(({ name }) => name);
  const recorded = {
    counts: await sumCounts(database, upstream.name, days),
    attempts: await sumAttempts(database, names, days),
    expired: await countExpired(database, days),
    chargedE8: await sumCharges(database, names, days),
  };
  return compare(upstream, daysIn(days), report, recorded);
}

/** Tells whether two upstreams share a bill. A vendor reports costs by workspace or organisation, not by API key. */
function isOnSameBill({ name, reporting }: Upstream, other: Upstream): boolean {
  if (name === other.name) return true;
  const its = other.reporting;
  if (reporting === undefined || its === undefined) return false;
  return (
    reporting.url.href === its.url.href &&
    reporting.credential === its.credential &&
    reporting.workspaceId === its.workspaceId
  );
}

function daysIn(days: Days): readonly string[] {
  const { start, end } = boundsOf(days);
  const count = (end.getTime() - start.getTime()) / DAY_MS;
  return Array.from({ length: count }, (_, at) => dayOf(start.getTime() + at * DAY_MS));
}
