import assert from 'node:assert/strict';
import { type Interval, localDayOf, startOf, startsWithin, stepFrom } from '../../../core/records/time-zones';

const at = (text: string) => Date.parse(text);
const iso = (atMs: number) => new Date(atMs).toISOString();

describe('days, hours and months of a time zone', () => {
  for (const [interval, moment, timeZone, start] of [
    ['day', '2026-11-21T12:34:56.789Z', 'UTC', '2026-11-21T00:00:00.000Z'],
    ['day', '2026-11-21T23:30:00Z', 'Europe/Berlin', '2026-11-21T23:00:00.000Z'],
    ['day', '2026-11-21T00:10:00Z', 'America/New_York', '2026-11-20T05:00:00.000Z'],
    ['day', '2026-11-21T12:00:00Z', 'Asia/Kathmandu', '2026-11-20T18:15:00.000Z'],
    ['month', '2026-03-31T22:30:00Z', 'Europe/Berlin', '2026-03-31T22:00:00.000Z'],
    ['month', '2026-11-21T12:00:00Z', 'Pacific/Auckland', '2026-10-31T11:00:00.000Z'],
    ['hour', '2026-11-21T12:34:56Z', 'Asia/Kathmandu', '2026-11-21T12:15:00.000Z'],
    ['minute', '2026-11-21T12:34:56Z', 'Asia/Kathmandu', '2026-11-21T12:34:00.000Z'],
    // Santiago put its clocks forward at midnight on this day: the day began at one o'clock.
    ['day', '2026-09-06T12:00:00Z', 'America/Santiago', '2026-09-06T04:00:00.000Z'],
  ] as readonly (readonly [Interval, string, string, string])[]) {
    it(`begin at local time: the ${interval} of ${moment} in ${timeZone} began at ${start}`, () =>
      assert.equal(iso(startOf(interval, at(moment), timeZone)), start));
  }

  it('have their real length when the clocks change', () => {
    for (const [day, hours] of [
      ['2026-03-29', 23],
      ['2026-10-25', 25],
      ['2026-11-21', 24],
    ] as const) {
      const start = startOf('day', at(`${day}T12:00:00Z`), 'Europe/Berlin');
      const end = stepFrom('day', start, 'Europe/Berlin');
      assert.equal((end - start) / 3_600_000, hours);
      const inside = startsWithin('hour', { fromMs: start, toMs: end, timeZone: 'Europe/Berlin', most: 100 });
      assert.equal(inside.length, hours);
    }
  });

  it('follow each other without a gap, all year, in every time zone', () => {
    for (const timeZone of [
      'UTC',
      'Europe/Berlin',
      'America/St_Johns',
      'Australia/Lord_Howe',
      'America/Santiago',
      'Asia/Kathmandu',
    ]) {
      const range = { fromMs: at('2026-01-01T12:00:00Z'), toMs: at('2027-01-01T12:00:00Z'), timeZone, most: 1_000 };
      const starts = startsWithin('day', range);
      const days = starts.map((start) => localDayOf(start, timeZone));
      assert.equal(new Set(days).size, days.length, timeZone);
      assert.ok(days.length >= 365 && days.length <= 367, timeZone);
      for (const start of starts) assert.equal(startOf('day', start, timeZone), start, timeZone);
      for (const [index, start] of starts.slice(1).entries())
        assert.equal(stepFrom('day', start, timeZone, -1), starts[index], timeZone);
    }
  });
});
