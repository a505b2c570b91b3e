import { useEffect, useRef } from 'preact/hooks';
import { BoneRows } from '../../parts/states';
import { TableFrame } from '../../parts/table-frame';
import { changeQuery, hrefOf, place } from '../../router';
import type { UsageRecord } from '../../shapes';
import { showDay, showSeconds, showWhole } from '../../times';
import { type Column, USUAL_COLUMNS } from './columns';

interface Props {
  readonly records: readonly UsageRecord[] | undefined;
  readonly columns: readonly Column[];
  readonly isStale: boolean;
  readonly isLive: boolean;
  /** The request id of the record that is looked at. */
  readonly opened: string | undefined;
}

const BONES = 12;

export function RecordsTable({ records, columns, isStale, isLive, opened }: Props) {
  const isNew = useNewcomers(records, isLive);
  // Who has chosen columns sees them all, and scrolls.
  const isUsual = columns.map(({ id }) => id).join() === USUAL_COLUMNS.join();
  const classOf = ({ isNumber, room }: Column) => [isNumber && 'number', isUsual && room].filter(Boolean).join(' ');
  const open = (requestId: string) => changeQuery({ record: requestId });
  const linkTo = (requestId: string) => {
    const query = new URLSearchParams(place.value.query);
    query.set('record', requestId);
    return hrefOf(`/usage?${query}`);
  };
  return (
    <TableFrame label="Usage records" isStale={isStale}>
      <table class="records">
        <caption class="unseen">Usage records, newest first</caption>
        <thead>
          <tr>
            <th scope="col">Time</th>
            {columns.map((column) => (
              <th key={column.id} scope="col" class={classOf(column)}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {records === undefined && <BoneRows rows={BONES} columns={columns.length + 1} />}
          {records?.map((record) => (
            <tr
              key={record.requestId}
              class={`opens${isNew(record) ? ' is-new' : ''}${record.requestId === opened ? ' is-opened' : ''}`}
              onClick={(event) => {
                if (event.target instanceof Element && event.target.closest('a') !== null) return;
                if (window.getSelection()?.isCollapsed !== false) open(record.requestId);
              }}
            >
              <th scope="row">
                <a class="plain-link" href={linkTo(record.requestId)} title={showWhole(record.createdAt)}>
                  <time dateTime={record.createdAt}>
                    <span class="day">{showDay(record.createdAt)}, </span>
                    {showSeconds(record.createdAt)}
                  </time>
                </a>
              </th>
              {columns.map((column) => (
                <td key={column.id} class={classOf(column)}>
                  {column.cell(record)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </TableFrame>
  );
}

/** Whether a record came while one was looking; what came with the page did not. */
function useNewcomers(records: readonly UsageRecord[] | undefined, isLive: boolean) {
  const known = useRef<Set<string> | undefined>(undefined);
  useEffect(() => {
    if (records !== undefined) known.current = new Set(records.map(({ requestId }) => requestId));
  }, [records]);
  return ({ requestId }: UsageRecord) => isLive && known.current?.has(requestId) === false;
}
