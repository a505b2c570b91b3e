import { sessionRoute } from '../../../core/api/json-routes';
import type { Route } from '../../../core/api/route';
import { MORE_PRICE_FIELDS, PRICE_FIELDS, showPrice } from '../../../core/api/show-price';
import { invalidParam } from '../../../core/base/errors';
import type { UsageRecordRow } from '../../../core/catalog/usage-fields';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { contentTag } from '../../../core/http/etag';
import { sendJson } from '../../../core/http/http';
import { PAGE_READERS, pageOf, wordReader } from '../../../core/http/query';
import { listOf, object, objectWith, oneOf, orNull, pageShape, shape } from '../../../core/http/shape';
import { INTERVALS, type Interval, readTimeZone, startsWithin } from '../../../core/records/time-zones';
import { EVERYONE } from '../../../core/sign-in/member-roles';
import { filterReaders, listRecords, readGroupedBy, requireRecord, type UsageQueryContext } from '../query';
import { CONSOLE_RECORD_FIELDS, toConsoleRecord, toRecord, USAGE_RECORD } from '../record';
import { readSeries, SERIES_FIELDS } from '../summary';

export function consoleListRecordsRoute(gateway: UsageQueryContext): Route {
  return sessionRoute('GET /console/api/usage', {
    roles: EVERYONE,
    summary: "Usage records of the account, newest first; the page asks again with the answer's tag.",
    query: { ...filterReaders(gateway), ...PAGE_READERS },
    headers: { 'If-None-Match': 'The `ETag` of the answer that the page has.' },
    answers: {
      200: {
        description: 'A page of records.',
        schema: pageShape(USAGE_RECORD),
        headers: { ETag: 'For `If-None-Match`.' },
      },
      304: { description: 'Nothing has changed.' },
    },
    handle: async ({ accountId, memberId, filters }, request, response) => {
      const own = { ...filters, account: accountId, memberId };
      const page = await listRecords(gateway.database, own, pageOf(filters), toRecord);
      const etag = contentTag(JSON.stringify(page));
      if (request.headers['if-none-match'] !== etag) return sendJson(response, 200, page, { etag });
      response.writeHead(304, { etag });
      response.end();
    },
  });
}

const PRICED_RECORD = object({
  ...CONSOLE_RECORD_FIELDS,
  price: orNull(objectWith({ ...PRICE_FIELDS, isCurrent: shape.yes }, MORE_PRICE_FIELDS)),
});

export function consoleShowRecordRoute(gateway: UsageQueryContext & Pick<PluginGateway, 'configRevision'>): Route {
  return sessionRoute('GET /console/api/usage/{requestId}', {
    roles: EVERYONE,
    summary: 'One usage record with its route, and what a million tokens cost there.',
    answers: { 200: { description: 'The record.', schema: PRICED_RECORD } },
    handle: async ({ accountId, memberId, params }) => {
      const row = await requireRecord(gateway.database, params.requestId, { account: accountId, memberId });
      return { ...toConsoleRecord(row), price: priceOf(gateway, row) };
    },
  });
}

/** Returns the current token prices of the record's upstream; null if the configuration no longer has it. Prices may have changed since the call. */
function priceOf({ catalog, configRevision }: Pick<PluginGateway, 'catalog' | 'configRevision'>, row: UsageRecordRow) {
  const model = catalog.models.find(({ name }) => name === row.model);
  const entry = model?.entries.find(({ upstream }) => upstream.name === row.upstream);
  if (entry === undefined) return null;
  return { ...showPrice(entry.model.price), isCurrent: row.config_revision === configRevision };
}

const SERIES = object({
  timeZone: shape.text,
  interval: oneOf(...INTERVALS),
  from: shape.time,
  to: shape.time,
  starts: listOf(shape.time),
  ...SERIES_FIELDS,
});

const SERIES_READERS = { interval: wordReader(INTERVALS), by: readGroupedBy, timeZone: readTimeZone };

export function showSeriesRoute(gateway: UsageQueryContext): Route {
  return sessionRoute('GET /console/api/usage/series', {
    roles: EVERYONE,
    summary: 'Calls, cost and first tokens of the usage records that match the filters, by interval.',
    query: { ...filterReaders(gateway), ...SERIES_READERS },
    answers: { 200: { description: 'The chart; every list is as long as `starts`.', schema: SERIES } },
    handle: async ({ accountId, memberId, filters: given }) => {
      const { interval: wanted, by = 'none', timeZone = 'UTC', ...filters } = given;
      const to = filters.to ?? new Date();
      const from = filters.from ?? new Date(to.getTime() - UNLESS_GIVEN_MS);
      const range = { fromMs: from.getTime(), toMs: to.getTime(), timeZone, most: MAX_POINTS };
      const interval = wanted ?? readableInterval(range.toMs - range.fromMs);
      const starts = startsWithin(interval, range);
      if (starts.length > MAX_POINTS) throw tooMany(interval);
      const series = await readSeries(
        gateway.database,
        { ...filters, from, to, account: accountId, memberId },
        starts,
        by,
      );
      return {
        timeZone,
        interval,
        from: from.toISOString(),
        to: to.toISOString(),
        starts: starts.map((startMs) => new Date(startMs).toISOString()),
        ...series,
      };
    },
  });
}

const DAY_MS = 86_400_000;
const UNLESS_GIVEN_MS = 30 * DAY_MS;
const MAX_POINTS = 750;

/** Returns the length of a chart's intervals, which divide the requested time range into a few dozen points. */
function readableInterval(rangeMs: number): Interval {
  if (rangeMs <= DAY_MS / 8) return 'minute';
  if (rangeMs <= 4 * DAY_MS) return 'hour';
  return rangeMs <= 400 * DAY_MS ? 'day' : 'month';
}

function tooMany(interval: Interval) {
  const problem = `more than ${MAX_POINTS} intervals of a ${interval} between from and to; use a longer interval`;
  return invalidParam('interval', problem);
}
