import { useEffect, useRef } from 'preact/hooks';
import { type Column, Table } from '../../parts/table';
import { changeQuery, hrefOf, place } from '../../router';
import type { UsageRecord } from '../../shapes';
import { showDay, showSeconds, showWhole } from '../../times';
import { type RecordColumn, USUAL_COLUMNS } from './columns';

interface Props {
  readonly records: readonly UsageRecord[] | undefined;
  readonly columns: readonly RecordColumn[];
  readonly isStale: boolean;
  readonly isLive: boolean;
  /** The request id of the open record. */
  readonly opened: string | undefined;
}

const BONES = 12;

export function RecordsTable({ records, columns, isStale, isLive, opened }: Props) {
  const isNew = useNewcomers(records, isLive);
  // A user's own choice of columns is shown whole and scrolls.
  const isUsual = columns.map(({ id }) => id).join() === USUAL_COLUMNS.join();
  const linkTo = (requestId: string) => {
    const query = new URLSearchParams(place.value.query);
    query.set('record', requestId);
    return hrefOf(`/usage?${query}`);
  };
  const time: Column<UsageRecord> = {
    title: 'Time',
    cell: ({ requestId, createdAt }) => (
      <a class="plain-link" href={linkTo(requestId)} title={showWhole(createdAt)}>
        <time dateTime={createdAt}>
          <span class="day">{showDay(createdAt)}, </span>
          {showSeconds(createdAt)}
        </time>
      </a>
    ),
  };
  return (
    <Table
      label="Usage records"
      caption="Usage records, newest first"
      look="records"
      columns={[time, ...columns.map((column) => (isUsual ? column : { ...column, room: undefined }))]}
      rows={records}
      keyOf={({ requestId }) => requestId}
      bones={BONES}
      isStale={isStale}
      open={({ requestId }) => changeQuery({ record: requestId })}
      lookOf={(record) => `${isNew(record) ? 'is-new ' : ''}${record.requestId === opened ? 'is-opened' : ''}`}
    />
  );
}

/** Tells which records arrived while the page was open; those of the first load are not new. */
function useNewcomers(records: readonly UsageRecord[] | undefined, isLive: boolean) {
  const known = useRef<Set<string> | undefined>(undefined);
  useEffect(() => {
    if (records !== undefined) known.current = new Set(records.map(({ requestId }) => requestId));
  }, [records]);
  return ({ requestId }: UsageRecord) => isLive && known.current?.has(requestId) === false;
}
