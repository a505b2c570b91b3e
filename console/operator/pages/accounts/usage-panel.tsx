import { exactUsd } from '../../../money';
import { showMaybe } from '../../../numbers';
import { Badge } from '../../../parts/badge';
import { Failed } from '../../../parts/states';
import { type Column, Table } from '../../../parts/table';
import { useResource } from '../../../resource';
import type { List } from '../../../shapes';
import { showDuration, showMoment, showWhole } from '../../../times';
import type { UsageRecord } from '../../shapes';

const EVERY_MS = 3_000;
const ROWS = 10;

/** The newest calls of an account. */
export function UsagePanel({ accountId }: { readonly accountId: string }) {
  const usage = useResource<List<UsageRecord>>(`/admin/v1/usage?account=${accountId}&limit=${ROWS}`, {
    everyMs: EVERY_MS,
  });
  return (
    <section class="panel" aria-labelledby="usage-title">
      <header class="panel-head">
        <h2 id="usage-title">
          Usage <span class="faint">the newest {ROWS} calls</span>
        </h2>
        <span class="grow" />
        <a class="button" href={`/admin/v1/usage.csv?account=${accountId}`} download="usage.csv">
          CSV
        </a>
      </header>
      {usage.failure !== undefined && <Failed failure={usage.failure} onRetry={usage.reload} />}
      <Table
        label="Usage records"
        caption="Usage records, newest first"
        look="records"
        columns={COLUMNS}
        rows={usage.data?.items}
        keyOf={({ requestId }) => requestId}
        none="This account has made no call yet."
      />
    </section>
  );
}

const COLUMNS: readonly Column<UsageRecord>[] = [
  {
    title: 'Time',
    cell: ({ createdAt }) => (
      <time dateTime={createdAt} title={showWhole(createdAt)}>
        {showMoment(createdAt)}
      </time>
    ),
  },
  {
    title: 'Status',
    cell: ({ status, errorCode }) => (
      <Badge tone={status < 400 && errorCode === null ? 'good' : 'bad'}>{errorCode ?? status}</Badge>
    ),
  },
  { title: 'Model', look: 'mono', cell: ({ model, modelRequested }) => model ?? modelRequested ?? '–' },
  { title: 'Upstream', room: 'from-m', look: 'mono', cell: ({ upstream }) => upstream ?? '–' },
  { title: 'Key', room: 'from-m', cell: ({ keyName }) => keyName ?? '–' },
  { title: 'Tokens', isNumber: true, room: 'from-l', cell: ({ totalTokens }) => showMaybe(totalTokens) },
  { title: 'Duration', isNumber: true, room: 'from-m', cell: ({ responseTimeMs }) => showDuration(responseTimeMs) },
  { title: 'Cost', isNumber: true, cell: ({ cost }) => exactUsd(cost) },
];
