import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { fullUsd } from '../../money';
import { showMaybe } from '../../numbers';
import { Button } from '../../parts/button';
import { Icon } from '../../parts/icon';
import { Popover } from '../../parts/popover';
import { type Column, Table } from '../../parts/table';
import { Badge, NONE, type Tone } from '../../parts/values';
import type { Resource } from '../../resource';
import { changeQuery, hrefOf, place } from '../../router';
import type { List, UsageRecord } from '../../shapes';
import { showDay, showDuration, showSeconds, showWhole } from '../../times';

/** A column of the table of usage records. `room` hides one of the usual columns on narrow screens. */
interface RecordColumn extends Column<UsageRecord> {
  readonly id: string;
  readonly title: string;
}

const text = (value: string | null) => value ?? NONE;
const mono = (value: string | null) => (value === null ? NONE : <span class="mono">{value}</span>);
const took = (ms: number | null) => (ms === null ? NONE : showDuration(ms));

/** Shows tags as clients send them. */
export function showTags(tags: NonNullable<UsageRecord['tags']>): string {
  return Object.entries(tags)
    .map(([name, value]) => `${name}=${value}`)
    .join(',');
}

/** The columns that the table of usage records can show after the column of the time, in this order. */
export const COLUMNS: readonly RecordColumn[] = [
  { id: 'status', title: 'Status', cell: (record) => <Status record={record} /> },
  { id: 'model', title: 'Model', cell: ({ model, modelRequested }) => mono(model ?? modelRequested) },
  { id: 'key', title: 'Key', room: 'from-m', cell: ({ keyName }) => text(keyName) },
  {
    id: 'upstream',
    title: 'Upstream',
    room: 'from-l',
    cell: ({ upstream, attempts }) => (
      <>
        {mono(upstream)}
        {attempts > 1 && <span class="tag">{attempts} attempts</span>}
      </>
    ),
  },
  number('input', 'Input', ({ inputTokens }) => showMaybe(inputTokens), 'from-m'),
  number('output', 'Output', ({ outputTokens }) => showMaybe(outputTokens), 'from-m'),
  number('cacheRead', 'Cache read', ({ cacheReadTokens }) => showMaybe(cacheReadTokens)),
  number('cacheWrite', 'Cache write', ({ cacheCreationTokens }) => showMaybe(cacheCreationTokens)),
  number('total', 'Tokens', ({ totalTokens }) => showMaybe(totalTokens)),
  number('firstToken', 'First token', ({ firstTokenMs }) => took(firstTokenMs), 'from-l'),
  number('duration', 'Duration', ({ responseTimeMs }) => took(responseTimeMs), 'from-m'),
  number('cost', 'Cost', ({ cost }) => <Cost usd={cost} />),
  { id: 'billing', title: 'Billing', cell: ({ billing }) => billing },
  { id: 'protocol', title: 'Protocol', cell: ({ protocol }) => protocol },
  { id: 'strategy', title: 'Strategy', cell: ({ strategy }) => text(strategy) },
  { id: 'stream', title: 'Stream', cell: ({ stream }) => (stream ? 'yes' : 'no') },
  { id: 'asked', title: 'Requested model', cell: ({ modelRequested }) => mono(modelRequested) },
  { id: 'error', title: 'Error', cell: ({ errorCode }) => mono(errorCode) },
  { id: 'source', title: 'Answered by', cell: ({ source }) => source },
  { id: 'path', title: 'Path', cell: ({ path }) => mono(path) },
  { id: 'session', title: 'Session', cell: ({ sessionId }) => mono(sessionId) },
  { id: 'agent', title: 'Agent', cell: ({ agentId }) => mono(agentId) },
  { id: 'endUser', title: 'End user', cell: ({ endUserId }) => mono(endUserId) },
  { id: 'team', title: 'Team', cell: ({ teamId }) => mono(teamId) },
  { id: 'member', title: 'Member', cell: ({ memberId }) => mono(memberId) },
  { id: 'tags', title: 'Tags', cell: ({ tags }) => mono(tags && showTags(tags)) },
  { id: 'requestId', title: 'Request id', cell: ({ requestId }) => mono(requestId) },
  { id: 'revision', title: 'Configuration', cell: ({ configRevision }) => mono(configRevision) },
];

function number(id: string, title: string, cell: RecordColumn['cell'], room?: RecordColumn['room']): RecordColumn {
  return { id, title, isNumber: true, cell, room };
}

export const USUAL_COLUMNS = 'status,model,key,upstream,input,output,firstToken,duration,cost'.split(',');

/** A cost with all decimals, so that amounts align. Trailing zeros are faint. */
function Cost({ usd }: { readonly usd: string }) {
  const [, shown = '', zeros = ''] = /^(.*?\.\d\d\d*?)(0*)$/.exec(fullUsd(usd)) ?? [];
  return (
    <>
      {shown}
      {zeros !== '' && <span class="zeros">{zeros}</span>}
    </>
  );
}

export function Status({ record }: { readonly record: Pick<UsageRecord, 'status' | 'errorCode'> }) {
  const { status, errorCode } = record;
  return (
    <span title={errorCode ?? undefined}>
      <Badge tone={toneOf(status, errorCode)}>
        <span class="figure">{status}</span>
        {/* A broken stream keeps the status that was sent. */}
        {status < 400 && errorCode !== null && <span class="unseen"> but {errorCode}</span>}
      </Badge>
    </span>
  );
}

function toneOf(status: number, errorCode: string | null): Tone {
  if (status >= 500) return 'bad';
  return status >= 400 || errorCode !== null ? 'warn' : 'good';
}

interface MenuProps {
  readonly chosen: readonly string[];
  readonly onChange: (chosen: readonly string[]) => void;
}

export function ColumnsMenu({ chosen, onChange }: MenuProps) {
  return (
    <Popover
      align="end"
      label={
        <>
          <Icon name="columns" /> Columns
        </>
      }
    >
      {() => (
        <fieldset class="columns-sheet">
          <legend class="unseen">Columns of the table</legend>
          <ul>
            {COLUMNS.map(({ id, title }) => (
              <li key={id}>
                <label class="check">
                  <input
                    type="checkbox"
                    checked={chosen.includes(id)}
                    // The last chosen column cannot be removed, because an empty choice means the usual columns.
                    disabled={chosen.length === 1 && chosen[0] === id}
                    onChange={() =>
                      onChange(chosen.includes(id) ? chosen.filter((each) => each !== id) : [...chosen, id])
                    }
                  />
                  <span>{title}</span>
                </label>
              </li>
            ))}
          </ul>
          <Button look="slight" onClick={() => onChange(USUAL_COLUMNS)}>
            Default columns
          </Button>
        </fieldset>
      )}
    </Popover>
  );
}

interface Props {
  readonly list: Resource<List<UsageRecord>>;
  readonly columns: readonly RecordColumn[];
  readonly isLive: boolean;
  /** The request id of the record that the sheet shows; undefined if the sheet is closed. */
  readonly opened: string | undefined;
  readonly empty: ComponentChildren;
}

const BONES = 12;

export function RecordsTable({ list, columns, isLive, opened, empty }: Props) {
  const isNew = useNewcomers(list.data?.items, isLive);
  // Columns that the user chose are shown on every screen width.
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
      list={list}
      keyOf={({ requestId }) => requestId}
      bones={BONES}
      open={({ requestId }) => changeQuery({ record: requestId })}
      empty={empty}
      lookOf={(record) => `${isNew(record) ? 'is-new ' : ''}${record.requestId === opened ? 'is-opened' : ''}`}
    />
  );
}

/** Returns which records arrived while the page was open. Records of the first load do not count as new. */
function useNewcomers(records: readonly UsageRecord[] | undefined, isLive: boolean) {
  const known = useRef<Set<string> | undefined>(undefined);
  useEffect(() => {
    if (records !== undefined) known.current = new Set(records.map(({ requestId }) => requestId));
  }, [records]);
  return ({ requestId }: UsageRecord) => isLive && known.current?.has(requestId) === false;
}
