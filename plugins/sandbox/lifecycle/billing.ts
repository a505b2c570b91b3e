import { newId } from '../../../core/base/ids';
import { type BilledState, costE8, hourlyE8, larger } from '../offerings/offering';
import type { Aggregate, Change } from './aggregate';
import type { BillLine, Period, Segment } from './sandbox';
import type { Timings } from './settings';

/** Returns the bill line of the open segment (time at one price) within the OPEN billing period, up to a time. */
function openLine({ segment, period }: Aggregate, untilMs: number): BillLine | undefined {
  if (segment === undefined || period === undefined) return undefined;
  const startsAtMs = Math.max(segment.startsAtMs, period.startedAtMs);
  if (untilMs <= startsAtMs) return undefined;
  const amountE8 = costE8(segment.hourlyE8, untilMs - startsAtMs);
  return { periodId: period.id, segmentId: segment.id, startsAtMs, endsAtMs: untilMs, amountE8 };
}

function sumOf(lines: readonly BillLine[], periodId: string): bigint {
  return lines.filter((line) => line.periodId === periodId).reduce((sum, { amountE8 }) => sum + amountE8, 0n);
}

/** Returns the cost of the OPEN period if it ended at `untilMs`. */
export function dueE8(aggregate: Aggregate, untilMs: number): bigint {
  const { period, lines } = aggregate;
  if (period === undefined) return 0n;
  return sumOf(lines, period.id) + (openLine(aggregate, untilMs)?.amountE8 ?? 0n);
}

/** Returns the current hourly price. Until the sandbox runs, this is the higher one of provisioning and running. */
export function currentHourlyE8({ sandbox, segment }: Aggregate): bigint {
  const running = hourlyE8(sandbox.offering, 'RUNNING');
  if (sandbox.observedState === 'PROVISIONING') {
    const provisioning = hourlyE8(sandbox.offering, 'PROVISIONING');
    return larger(provisioning, running);
  }
  return segment?.hourlyE8 ?? running;
}

/** Closes the open segment (time at one price) and writes its bill line. */
export function closeSegment(aggregate: Aggregate, atMs: number): Pick<Change, 'segments' | 'lines'> {
  const { segment } = aggregate;
  if (segment === undefined) return {};
  const endsAtMs = Math.max(atMs, segment.startsAtMs);
  const line = openLine(aggregate, endsAtMs);
  return { segments: [{ ...segment, endsAtMs }], lines: line === undefined ? [] : [line] };
}

/** Returns a new segment: the time in one state at that state's price. Returns undefined for provisioning that costs nothing. */
export function newSegment({ sandbox }: Aggregate, state: BilledState, atMs: number): Segment | undefined {
  const hourly = hourlyE8(sandbox.offering, state);
  if (state === 'PROVISIONING' && hourly === 0n) return undefined;
  return {
    id: newId(),
    sandboxId: sandbox.id,
    sequence: sandbox.segmentSequence + 1,
    state,
    hourlyE8: hourly,
    startsAtMs: atMs,
    endsAtMs: null,
  };
}

/** A hold, and the time up to which it pays. The hold also includes the reserve for ending the sandbox. */
interface Cover {
  readonly reservedE8: bigint;
  readonly coversUntilMs: number;
}

/** Returns the hold that pays the amount due, the time ahead at this hourly price, and the reserve for ending the sandbox. */
export function coverFor(dueNowE8: bigint, hourly: bigint, nowMs: number, timings: Timings): Cover {
  const { holdAheadMs, endingReserveMs } = timings;
  return { reservedE8: dueNowE8 + costE8(hourly, holdAheadMs + endingReserveMs), coversUntilMs: nowMs + holdAheadMs };
}

/** Returns the time up to which the present hold pays at another price, but never past the maximum length of a billing period. */
export function reachOf(period: Period, dueNowE8: bigint, hourly: bigint, nowMs: number, timings: Timings): number {
  const maxMs = Math.max(nowMs, period.startedAtMs + timings.maxPeriodMs);
  if (hourly === 0n) return maxMs;
  const leftE8 = period.reservedE8 - dueNowE8;
  const paidMs = leftE8 <= 0n ? 0 : Number((leftE8 * 3_600_000n) / hourly);
  return Math.min(maxMs, nowMs + Math.max(0, paidMs - timings.endingReserveMs));
}

/**
 * Ends a billing period while the sandbox continues, and opens the next one with a hold of its own. The period ends at the supplier's last
 * confirmation, because unconfirmed time is never due. The ledger settles the ended period later.
 */
export function rollPeriod(aggregate: Aggregate, nowMs: number, timings: Timings): Change {
  const { sandbox, period, segment, lines } = aggregate;
  if (period === undefined) throw new Error('the sandbox has no open billing period that could end');
  const lastLineMs = Math.max(
    period.startedAtMs,
    ...lines.filter(({ periodId }) => periodId === period.id).map(({ endsAtMs }) => endsAtMs),
  );
  const confirmedMs = Math.min(sandbox.confirmedAtMs ?? 0, period.startedAtMs + timings.maxPeriodMs);
  const endedAtMs = Math.max(lastLineMs, confirmedMs);
  const line = openLine(aggregate, endedAtMs);
  const rate = currentHourlyE8(aggregate);
  const carriedMs = segment === undefined ? 0 : nowMs - Math.max(endedAtMs, segment.startsAtMs);
  const cover = coverFor(costE8(rate, carriedMs), rate, nowMs, timings);
  const next: Period = {
    ...period,
    ...cover,
    id: newId(),
    sequence: period.sequence + 1,
    holdId: newId(),
    startedAtMs: endedAtMs,
  };
  return {
    set: { reservedUntilMs: cover.coversUntilMs },
    lines: line === undefined ? [] : [line],
    periods: [{ ...period, status: 'SETTLING', dueE8: dueE8(aggregate, endedAtMs), endedAtMs }, next],
  };
}

/**
 * Undoes `rollPeriod` after the ledger refused the hold of the next billing period. Reopens the previous period and moves the next period's
 * bill lines into it. A segment that has ended meanwhile stays ended.
 */
export function unrollPeriod({ settling, period, segment, lines }: Aggregate): Change {
  const [ending] = settling;
  if (ending === undefined || period === undefined)
    throw new Error('the sandbox has no new billing period that could be undone');
  const moved = lines
    .filter(({ periodId }) => periodId === period.id)
    .map((line) => {
      const begun = lines.find(({ periodId, segmentId }) => periodId === ending.id && segmentId === line.segmentId);
      const { startsAtMs, amountE8 } = begun ?? { startsAtMs: line.startsAtMs, amountE8: 0n };
      return { ...line, periodId: ending.id, startsAtMs, amountE8: amountE8 + line.amountE8 };
    });
  return {
    set: { reservedUntilMs: ending.coversUntilMs },
    lines: moved,
    dropLines: segment === undefined ? [] : [{ periodId: ending.id, segmentId: segment.id }],
    dropPeriods: [period.id],
    periods: [{ ...ending, status: 'OPEN', dueE8: null, endedAtMs: null }],
  };
}

/** Ends the last billing period of a sandbox. The ledger settles the period later. */
export function endPeriod(aggregate: Aggregate, endedAtMs: number): Pick<Change, 'segments' | 'lines' | 'periods'> {
  const { period } = aggregate;
  if (period === undefined) return {};
  const closed = closeSegment(aggregate, endedAtMs);
  const due = sumOf([...aggregate.lines, ...(closed.lines ?? [])], period.id);
  const ended = { status: 'SETTLING' as const, dueE8: due, endedAtMs: Math.max(endedAtMs, period.startedAtMs) };
  return { ...closed, periods: [{ ...period, ...ended }] };
}
