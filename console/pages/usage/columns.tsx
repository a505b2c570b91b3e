import { fullUsd } from '../../money';
import { showMaybe } from '../../numbers';
import type { Column } from '../../parts/table';
import type { UsageRecord } from '../../shapes';
import { showDuration } from '../../times';
import { Status } from './status';

/** A column of the records. `room` hides a usual column on narrow screens. */
export interface RecordColumn extends Column<UsageRecord> {
  readonly id: string;
  readonly title: string;
}

const none = <span class="faint">–</span>;
const text = (value: string | null) => value ?? none;
const mono = (value: string | null) => (value === null ? none : <span class="mono">{value}</span>);
const took = (ms: number | null) => (ms === null ? none : showDuration(ms));

/** The columns that the table can show after the time, in order. */
export const COLUMNS: readonly RecordColumn[] = [
  { id: 'status', title: 'Status', cell: (record) => <Status record={record} /> },
  {
    id: 'model',
    title: 'Model',
    cell: ({ model, modelRequested }) => mono(model ?? modelRequested),
  },
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
  { id: 'input', title: 'Input', isNumber: true, room: 'from-m', cell: ({ inputTokens }) => showMaybe(inputTokens) },
  {
    id: 'output',
    title: 'Output',
    isNumber: true,
    room: 'from-m',
    cell: ({ outputTokens }) => showMaybe(outputTokens),
  },
  { id: 'cacheRead', title: 'Cache read', isNumber: true, cell: ({ cacheReadTokens }) => showMaybe(cacheReadTokens) },
  {
    id: 'cacheWrite',
    title: 'Cache write',
    isNumber: true,
    cell: ({ cacheCreationTokens }) => showMaybe(cacheCreationTokens),
  },
  { id: 'total', title: 'Tokens', isNumber: true, cell: ({ totalTokens }) => showMaybe(totalTokens) },
  {
    id: 'firstToken',
    title: 'First token',
    isNumber: true,
    room: 'from-l',
    cell: ({ firstTokenMs }) => took(firstTokenMs),
  },
  {
    id: 'duration',
    title: 'Duration',
    isNumber: true,
    room: 'from-m',
    cell: ({ responseTimeMs }) => took(responseTimeMs),
  },
  { id: 'cost', title: 'Cost', isNumber: true, cell: ({ cost }) => <Cost usd={cost} /> },
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
  { id: 'requestId', title: 'Request id', cell: ({ requestId }) => mono(requestId) },
  { id: 'revision', title: 'Configuration', cell: ({ configRevision }) => mono(configRevision) },
];

export const USUAL_COLUMNS: readonly string[] = [
  'status',
  'model',
  'key',
  'upstream',
  'input',
  'output',
  'firstToken',
  'duration',
  'cost',
];

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
