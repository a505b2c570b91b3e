import type { Route } from '../../../core/api/route';
import { fail } from '../../../core/errors';
import { sendJson } from '../../../core/http/http';
import { readQuery, wordReader } from '../../../core/http/query';
import { listOf, object, oneOf, shape } from '../../../core/http/shape';
import { INTERVALS, type Interval, readTimeZone, startsWithin } from '../../../core/records/time-zones';
import { filterReaders, type Parts } from '../query';
import { GROUPED_BY, readSeries, SERIES_FIELDS } from '../summary';

const SERIES = object({
  timeZone: shape.text,
  interval: oneOf(...INTERVALS),
  from: shape.time,
  to: shape.time,
  starts: listOf(shape.time),
  ...SERIES_FIELDS,
});

export function showSeriesRoute(gateway: Parts): Route {
  const seriesQuery = {
    ...filterReaders(gateway),
    interval: wordReader(INTERVALS),
    by: wordReader(GROUPED_BY),
    timeZone: readTimeZone,
  };
  return {
    listener: 'public',
    auth: 'session',
    method: 'GET',
    path: '/console/api/usage/series',
    summary: 'Calls, cost and first tokens of the usage records that match the filters, by interval.',
    query: seriesQuery,
    answers: { 200: { description: 'The chart; every list is as long as `starts`.', schema: SERIES } },
    handle: async ({ accountId, query }, _request, response) => {
      const { interval: wanted, by = 'none', timeZone = 'UTC', ...filters } = readQuery(query, seriesQuery);
      const to = filters.to ?? new Date();
      const from = filters.from ?? new Date(to.getTime() - UNLESS_GIVEN_MS);
      const range = { fromMs: from.getTime(), toMs: to.getTime(), timeZone, most: POINTS_AT_MOST };
      const interval = wanted ?? readableInterval(range.toMs - range.fromMs);
      const starts = startsWithin(interval, range);
      if (starts.length > POINTS_AT_MOST) throw tooMany(interval);
      const series = await readSeries(gateway.database, { ...filters, from, to, account: accountId }, starts, by);
      sendJson(response, 200, {
        timeZone,
        interval,
        from: from.toISOString(),
        to: to.toISOString(),
        starts: starts.map((startMs) => new Date(startMs).toISOString()),
        ...series,
      });
    },
  };
}

const DAY_MS = 86_400_000;
const UNLESS_GIVEN_MS = 30 * DAY_MS;
const POINTS_AT_MOST = 750;

/** Returns the interval that divides the range into some dozens of points. */
function readableInterval(rangeMs: number): Interval {
  if (rangeMs <= DAY_MS / 8) return 'minute';
  if (rangeMs <= 4 * DAY_MS) return 'hour';
  return rangeMs <= 400 * DAY_MS ? 'day' : 'month';
}

function tooMany(interval: Interval) {
  const message = `interval: more than ${POINTS_AT_MOST} intervals of a ${interval} between from and to; use a longer interval`;
  return fail('INVALID_FIELD', { param: 'interval', message });
}
