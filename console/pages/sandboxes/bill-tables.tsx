import { addUsd, exactUsd, fullUsd, readUsd } from '../../money';
import { type Column, TablePanel } from '../../parts/table';
import type { Period, Segment } from '../../shapes';
import { showDuration, showMoment } from '../../times';
import { StateBadge } from './states';

const SEGMENT_COLUMNS: readonly Column<Segment>[] = [
  { title: 'State', cell: ({ state }) => <StateBadge state={state} /> },
  { title: 'From', room: 'from-m', look: 'quiet', cell: ({ startsAt }) => showMoment(startsAt) },
  {
    title: 'Time',
    isNumber: true,
    cell: ({ startsAt, endsAt, seconds }) => (
      <>
        {showDuration(seconds === null ? Date.now() - Date.parse(startsAt) : seconds * 1_000)}
        {endsAt === null && <span class="faint"> so far</span>}
      </>
    ),
  },
  { title: 'Per hour', isNumber: true, room: 'from-m', look: 'quiet', cell: ({ hourlyUsd }) => exactUsd(hourlyUsd) },
  { title: 'Amount', isNumber: true, cell: ({ amount }) => fullUsd(amount) },
];

const PERIOD_COLUMNS: readonly Column<Period>[] = [
  { title: 'From', cell: ({ startedAt }) => showMoment(startedAt) },
  {
    title: 'Until',
    room: 'from-m',
    look: 'quiet',
    cell: ({ endedAt, coversUntil }) => (endedAt === null ? `covers ${showMoment(coversUntil)}` : showMoment(endedAt)),
  },
  { title: 'Held', isNumber: true, look: 'quiet', cell: ({ reservedAmount }) => exactUsd(reservedAmount) },
  {
    title: 'Charged',
    isNumber: true,
    cell: ({ amount }) => (amount === null ? <span class="faint">open</span> : fullUsd(amount)),
  },
];

export function SegmentsTable({ segments }: { readonly segments: readonly Segment[] }) {
  return (
    <TablePanel
      title="Usage"
      caption="Usage segments: time in each state, and its cost"
      columns={SEGMENT_COLUMNS}
      rows={segments}
      keyOf={({ id }) => id}
      none="Usage starts when the supplier is ready."
    />
  );
}

interface PeriodsProps {
  readonly periods: readonly Period[];
  readonly totalCost: string;
  /** Whether all billing periods are loaded. Only then is the sum of the loaded periods the sandbox's total. */
  readonly isWhole: boolean;
}

export function PeriodsTable({ periods, totalCost, isWhole }: PeriodsProps) {
  const sum = addUsd(periods.map(({ amount }) => amount ?? '0'));
  return (
    <TablePanel
      title="Billing periods"
      caption="Billing periods: what was held, and what was charged"
      columns={PERIOD_COLUMNS}
      rows={periods}
      keyOf={({ id }) => id}
      foot={
        isWhole &&
        periods.length > 0 && (
          <tfoot>
            <tr>
              <th scope="row">Settled</th>
              <td class="from-m" />
              <td class="number faint small">
                {readUsd(sum) === readUsd(totalCost) ? '= the cost above' : 'being settled'}
              </td>
              <td class="number">{fullUsd(sum)}</td>
            </tr>
          </tfoot>
        )
      }
    />
  );
}
