import { addUsd, exactUsd, fullUsd, readUsd } from '../../money';
import { TableFrame } from '../../parts/table-frame';
import type { Period, Segment } from '../../shapes';
import { showDuration, showMoment } from '../../times';
import { StateBadge } from './states';

export function SegmentsTable({ segments }: { readonly segments: readonly Segment[] }) {
  return (
    <section class="panel" aria-labelledby="segments-title">
      <header class="panel-head">
        <h2 id="segments-title">Usage</h2>
      </header>
      <TableFrame label="Usage segments">
        <table>
          <caption class="unseen">Usage segments: how long it was in which state, and what that costs</caption>
          <thead>
            <tr>
              <th scope="col">State</th>
              <th scope="col" class="from-m">
                From
              </th>
              <th scope="col" class="number">
                Time
              </th>
              <th scope="col" class="number from-m">
                An hour
              </th>
              <th scope="col" class="number">
                Amount
              </th>
            </tr>
          </thead>
          <tbody>
            {segments.map(({ id, state, startsAt, endsAt, seconds, hourlyUsd, amount }) => (
              <tr key={id}>
                <th scope="row">
                  <StateBadge state={state} />
                </th>
                <td class="quiet from-m">{showMoment(startsAt)}</td>
                <td class="number">
                  {showDuration(seconds === null ? Date.now() - Date.parse(startsAt) : seconds * 1_000)}
                  {endsAt === null && <span class="faint"> so far</span>}
                </td>
                <td class="number quiet from-m">{exactUsd(hourlyUsd)}</td>
                <td class="number">{fullUsd(amount)}</td>
              </tr>
            ))}
          </tbody>
        </table>
        {segments.length === 0 && <p class="table-none quiet">Nothing is used before the supplier is ready.</p>}
      </TableFrame>
    </section>
  );
}

interface PeriodsProps {
  readonly periods: readonly Period[];
  readonly totalCost: string;
  /** None is missing, so that the sum is the whole. */
  readonly isWhole: boolean;
}

export function PeriodsTable({ periods, totalCost, isWhole }: PeriodsProps) {
  const sum = addUsd(periods.map(({ amount }) => amount ?? '0'));
  return (
    <section class="panel" aria-labelledby="periods-title">
      <header class="panel-head">
        <h2 id="periods-title">Billing periods</h2>
      </header>
      <TableFrame label="Billing periods">
        <table>
          <caption class="unseen">Billing periods: what was held, and what was charged</caption>
          <thead>
            <tr>
              <th scope="col">From</th>
              <th scope="col" class="from-m">
                Until
              </th>
              <th scope="col" class="number">
                Held
              </th>
              <th scope="col" class="number">
                Charged
              </th>
            </tr>
          </thead>
          <tbody>
            {periods.map(({ id, startedAt, endedAt, coversUntil, reservedAmount, amount }) => (
              <tr key={id}>
                <th scope="row">{showMoment(startedAt)}</th>
                <td class="quiet from-m">
                  {endedAt === null ? `covers ${showMoment(coversUntil)}` : showMoment(endedAt)}
                </td>
                <td class="number quiet">{exactUsd(reservedAmount)}</td>
                <td class="number">{amount === null ? <span class="faint">open</span> : fullUsd(amount)}</td>
              </tr>
            ))}
          </tbody>
          {isWhole && periods.length > 0 && (
            <tfoot>
              <tr>
                <th scope="row" colSpan={1}>
                  Settled
                </th>
                <td class="from-m" />
                <td class="number faint small">
                  {readUsd(sum) === readUsd(totalCost) ? '= the cost above' : 'being settled'}
                </td>
                <td class="number">{fullUsd(sum)}</td>
              </tr>
            </tfoot>
          )}
        </table>
      </TableFrame>
    </section>
  );
}
