import { createHash } from 'node:crypto';
import type { Catalog } from '../../core/catalog';
import { asSessionRoute, sessionRoute } from '../../core/console-route';
import { fail } from '../../core/errors';
import type { Gateway } from '../../core/gateway';
import { sendJson } from '../../core/http';
import type { Route } from '../../core/plugin';
import { PAGE_READERS, pageOf, readQuery, wordReader } from '../../core/query';
import { showPrice } from '../../core/show-price';
import { INTERVALS, type Interval, readTimeZone, startsWithin } from '../../core/time-zones';
import { filterReaders, findRecord, listRecords } from './query';
import { type RecordRow, toRecord } from './record';
import { GROUPED_BY, readSeries, readTotals } from './summary';
import { csvRoute, noRecord } from './usage';

/** Usage records as the console shows them: docs/console.md. */
export function consoleRoutes(gateway: Pick<Gateway, 'database' | 'catalog' | 'configRevision'>): Route[] {
  const { database } = gateway;
  const filterQuery = filterReaders(gateway);
  const listQuery = { ...filterQuery, ...PAGE_READERS };
  const seriesQuery = {
    ...filterQuery,
    interval: wordReader(INTERVALS),
    by: wordReader(GROUPED_BY),
    timeZone: readTimeZone,
  };
  return [
    sessionRoute('GET', '/usage', async ({ accountId, query }, request, response) => {
      const filters = readQuery(query, listQuery);
      const page = await listRecords(database, { ...filters, account: accountId }, pageOf(filters), toRecord);
      const etag = `"${createHash('sha256').update(JSON.stringify(page)).digest('base64url').slice(0, 22)}"`;
      if (request.headers['if-none-match'] !== etag) return sendJson(response, 200, page, { etag });
      response.writeHead(304, { etag });
      response.end();
    }),
    sessionRoute('GET', '/usage/totals', async ({ accountId, query }, _request, response) => {
      const filters = readQuery(query, filterQuery);
      sendJson(response, 200, await readTotals(database, { ...filters, account: accountId }));
    }),
    sessionRoute('GET', '/usage/series', async ({ accountId, query }, _request, response) => {
      const { interval: wanted, by = 'none', timeZone = 'UTC', ...filters } = readQuery(query, seriesQuery);
      const to = filters.to ?? new Date();
      const from = filters.from ?? new Date(to.getTime() - UNLESS_GIVEN_MS);
      const range = { fromMs: from.getTime(), toMs: to.getTime(), timeZone, most: POINTS_AT_MOST };
      const interval = wanted ?? readableInterval(range.toMs - range.fromMs);
      const starts = startsWithin(interval, range);
      if (starts.length > POINTS_AT_MOST) throw tooMany(interval);
      const series = await readSeries(database, { ...filters, from, to, account: accountId }, starts, by);
      sendJson(response, 200, {
        timeZone,
        interval,
        from: from.toISOString(),
        to: to.toISOString(),
        starts: starts.map((startMs) => new Date(startMs).toISOString()),
        ...series,
      });
    }),
    asSessionRoute(csvRoute(gateway), '/usage.csv'),
    sessionRoute('GET', '/usage/{requestId}', async ({ accountId, params }, _request, response) => {
      const row = await findRecord(database, params['requestId'] ?? '', accountId);
      if (row === undefined) throw noRecord();
      sendJson(response, 200, { ...toRecord(row), routing: row.routing, price: priceOf(gateway, row) });
    }),
  ];
}

const DAY_MS = 86_400_000;
const UNLESS_GIVEN_MS = 30 * DAY_MS;
const POINTS_AT_MOST = 750;

/** Some dozens of points. */
function readableInterval(rangeMs: number): Interval {
  if (rangeMs <= DAY_MS / 8) return 'minute';
  if (rangeMs <= 4 * DAY_MS) return 'hour';
  return rangeMs <= 400 * DAY_MS ? 'day' : 'month';
}

function tooMany(interval: Interval) {
  const message = `interval: more than ${POINTS_AT_MOST} of a ${interval} between from and to; ask for longer ones`;
  return fail('INVALID_FIELD', { param: 'interval', message });
}

/** What tokens cost there now; null where it is configured no more. The configuration may have changed since the call. */
function priceOf({ catalog, configRevision }: { catalog: Catalog; configRevision: string }, row: RecordRow) {
  const model = catalog.models.find(({ name }) => name === row.model);
  const entry = model?.entries.find(({ upstream }) => upstream.name === row.upstream);
  if (entry === undefined) return null;
  return { ...showPrice(entry.model.price), isCurrent: row.config_revision === configRevision };
}
