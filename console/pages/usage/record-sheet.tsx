import type { ComponentChildren } from 'preact';
import { refetch } from '../../api';
import { exactUsd, fullUsd } from '../../money';
import { showCount, showMaybe } from '../../numbers';
import { Button } from '../../parts/button';
import { Dialog } from '../../parts/dialog';
import { Bone, Failed } from '../../parts/states';
import { type Column, Table } from '../../parts/table';
import { Badge, Copied, Fact } from '../../parts/values';
import { useResource } from '../../resource';
import { changeQuery } from '../../router';
import type { ExplainedRecord, Pass } from '../../shapes';
import { showDuration, showWhole } from '../../times';
import { Status, showTags } from './records';

/** What happened to the money of a call, by the record's `billing`; docs/money.md. */
const BILLING: Readonly<Record<ExplainedRecord['billing'], string>> = {
  actual: 'Charged by the reported usage',
  estimated: 'Charged by an estimate, because the upstream reported no usage',
  released: 'Not charged',
  partial: 'Charged until the client disconnected',
  expired: 'Not charged: the call was lost, and its hold released',
};

/** The sheet of one call: its cost with the reasons, and how it was answered. */
export function RecordSheet({ requestId, onClose }: { readonly requestId: string; readonly onClose: () => void }) {
  const { data, failure } = useResource<ExplainedRecord>(`usage/${encodeURIComponent(requestId)}`);
  return (
    <Dialog title="Call" kind="sheet" onClose={onClose}>
      {failure !== undefined ? (
        <Failed failure={failure} onRetry={failure.status === 404 ? undefined : refetch} />
      ) : data === undefined ? (
        <p class="record-cost">
          <Bone width="8ch" />
        </p>
      ) : (
        <Details record={data} />
      )}
    </Dialog>
  );
}

function Details({ record }: { readonly record: ExplainedRecord }) {
  const { cost, billing, status, errorCode } = record;
  return (
    <div class="record">
      <p class="record-cost figure">{fullUsd(cost)}</p>
      <p class="quiet small">{BILLING[billing]}</p>
      <dl class="facts">
        <Fact name="Status">
          <Status record={record} />
          {errorCode !== null && <code class="beside">{errorCode}</code>}
        </Fact>
        <Fact name="Time">
          <time dateTime={record.createdAt}>{showWhole(record.createdAt)}</time>
        </Fact>
        <Fact name="Model">
          <ModelName record={record} />
        </Fact>
        <Fact name="Key">{record.keyName ?? record.keyId}</Fact>
        <Fact name="Call">{`${record.protocol}${record.stream ? ', streamed' : ''}`}</Fact>
        <Fact name="Strategy">{record.strategy ?? '–'}</Fact>
        {record.region !== null && <Fact name="Region">{record.region.replaceAll(',', ', ')}</Fact>}
        {record.demands !== null && <Fact name="Demands">{record.demands}</Fact>}
        <Fact name="Answered by">
          {record.source === 'provider' ? (record.upstream ?? '–') : `the gateway (${status})`}
        </Fact>
      </dl>
      <Tokens record={record} />
      <Timing record={record} />
      <Routing record={record} />
      <h3>Identifiers</h3>
      <dl class="facts">
        <Fact name="Request">
          <Copied text={record.requestId} label="Copy the request id" />
        </Fact>
        <Narrowing title="Session" name="session" id={record.sessionId} />
        <Narrowing title="Agent" name="agent" id={record.agentId} />
        <Narrowing title="End user" name="endUser" id={record.endUserId} />
        <Narrowing title="Team" name="team" id={record.teamId} />
        <Narrowing title="Member" name="member" id={record.memberId} />
        <Narrowing title="Tags" name="tags" id={record.tags && showTags(record.tags)} />
        <Fact name="Path">
          <code>{record.path}</code>
        </Fact>
        <Fact name="Configuration">
          <code>{record.configRevision}</code>
        </Fact>
      </dl>
    </div>
  );
}

interface NarrowingProps {
  readonly title: string;
  /** The name of the filter. */
  readonly name: string;
  readonly id: string | null;
}

/** An id of the call, such as its session, with a link to all calls with the same id. */
function Narrowing({ title, name, id }: NarrowingProps) {
  if (id === null) return null;
  const what = title.toLowerCase();
  return (
    <Fact name={title}>
      <Copied text={id} label={name === 'tags' ? 'Copy the tags' : `Copy the ${what} id`} />
      <Button look="slight" onClick={() => changeQuery({ [name]: id, record: undefined })}>
        {name === 'tags' ? 'All calls with these tags' : `All calls of this ${what}`}
      </Button>
    </Fact>
  );
}

function ModelName({ record: { model, modelRequested } }: { readonly record: ExplainedRecord }) {
  return (
    <>
      <code>{model ?? modelRequested ?? '–'}</code>
      {model !== null && modelRequested !== null && model !== modelRequested && (
        <span class="faint small beside">
          asked for as <code>{modelRequested}</code>
        </span>
      )}
    </>
  );
}

interface TokenRow {
  readonly name: string;
  readonly tokens: number | null;
  /** The price per million tokens in USD; in the last row the cost of the call. */
  readonly usd: ComponentChildren;
}

const TOKEN_COLUMNS: readonly Column<TokenRow>[] = [
  { title: 'Kind', cell: ({ name }) => name },
  { title: 'Tokens', isNumber: true, cell: ({ tokens }) => showMaybe(tokens) },
  { title: 'Per million', isNumber: true, cell: ({ usd }) => usd },
];

function Tokens({ record }: { readonly record: ExplainedRecord }) {
  const { price, inputTokens, cacheReadTokens, cacheCreationTokens } = record;
  const input = (inputTokens ?? 0) + (cacheReadTokens ?? 0) + (cacheCreationTokens ?? 0);
  const above = price !== null && price.above !== null && input > price.above.tokens ? price.above : undefined;
  const each = above ?? price;
  const row = (name: string, tokens: number | null, perMillion?: string): TokenRow => ({
    name,
    tokens,
    usd: <span class="quiet">{perMillion === undefined ? '–' : exactUsd(perMillion)}</span>,
  });
  const rows = record.passes?.flatMap(passRows).map(([name, count]) => row(name, count)) ?? [
    row('Input', inputTokens, each?.input),
    row('Cache read', cacheReadTokens, each?.cacheRead),
    row('Cache write', cacheCreationTokens, each?.cacheWrite),
    row('Output', record.outputTokens, each?.output),
  ];
  const total = { name: 'Total', tokens: record.totalTokens, usd: fullUsd(record.cost) };
  return (
    <>
      <h3>Tokens</h3>
      <Table
        caption="Tokens and their price per million"
        look="small-table"
        columns={TOKEN_COLUMNS}
        rows={[...rows, total]}
        keyOf={({ name }) => name}
        lookOf={(each) => (each === total ? 'sum' : '')}
      />
      {above !== undefined && (
        <p class="faint small">The price for more than {showCount(above.tokens)} input tokens.</p>
      )}
      {record.flags?.map((flag) => (
        <p key={flag} class="faint small">
          {FLAGS[flag]}
        </p>
      ))}
      {price !== null && !price.isCurrent && (
        <p class="faint small">The configuration has changed since the call. These are today's prices.</p>
      )}
    </>
  );
}

const METERS: Readonly<Record<string, string>> = {
  input: 'Input',
  cacheRead: 'Cache read',
  cacheWrite: 'Cache write',
  cacheWrite1h: 'Cache write, one hour',
  audioInput: 'Audio input',
  audioCacheRead: 'Audio input, cache read',
  imageInput: 'Image input',
  output: 'Output',
  audioOutput: 'Audio output',
  imageOutput: 'Image output',
  webSearch: 'Web searches',
  webFetch: 'Pages fetched',
  codeExecution: 'Code executions',
};

/**
 * Returns the table rows of one pass (one run of the model in a call). They name the pass if there are several. They name the model, tier,
 * speed or region if the upstream charged another one.
 */
function passRows({ model, tier, speed, geo, ...counts }: Pass, at: number, all: readonly Pass[]) {
  const own = [model, tier, speed, geo].filter((each) => each !== undefined);
  const words = [...(all.length > 1 ? [`Pass ${at + 1}`] : []), ...own];
  const beside = words.length === 0 ? '' : ` (${words.join(', ')})`;
  return Object.entries(counts).map(([meter, count]) => [`${METERS[meter] ?? meter}${beside}`, Number(count)] as const);
}

const FLAGS = {
  unknown:
    'The request had a member, or the upstream reported a count, that the gateway does not know. It was not charged.',
  unpriced:
    'The call used, or may have used, something without a price. Tokens were charged at the highest price that could apply, all else was not charged.',
  suspect:
    'The upstream reported more than the call allows, or counts that contradict others. The charge was limited to the hold.',
  translated: 'The call was translated, because the upstream does not speak its protocol.',
  weakened: 'The upstream could not be held to something that the request asked for, such as a strict schema.',
  region: 'The upstream reported that it processed the call in another region than was demanded.',
} as const;

function Timing({ record: { firstTokenMs, responseTimeMs } }: { readonly record: ExplainedRecord }) {
  const share = firstTokenMs === null ? 1 : Math.min(1, firstTokenMs / Math.max(1, responseTimeMs));
  return (
    <>
      <h3>Time</h3>
      <span class="timing" aria-hidden="true">
        <span class="timing-first" style={{ width: `${share * 100}%` }} />
      </span>
      <p class="timing-words small figure">
        <span>{firstTokenMs === null ? 'First token not measured' : `First token ${showDuration(firstTokenMs)}`}</span>
        <span class="quiet">{showDuration(responseTimeMs)} in all</span>
      </p>
    </>
  );
}

function Routing({ record: { routing, attempts, upstream } }: { readonly record: ExplainedRecord }) {
  if (routing === null) {
    return (
      <>
        <h3>Routing</h3>
        <p class="quiet small">
          {attempts === 0
            ? 'No upstream was called.'
            : `${upstream ?? 'One upstream'} was the only candidate, and it answered the first attempt.`}
        </p>
      </>
    );
  }
  return (
    <>
      <h3>Attempts</h3>
      {routing.attempts.length === 0 && <p class="quiet small">No upstream was called.</p>}
      <ol class="attempts">
        {routing.attempts.map(({ upstream: name, outcome, status, ms, why }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: one upstream may have two attempts
          <li key={index}>
            <p class="attempt-head small">
              <code>{name}</code>
              <Badge tone={outcome === 'answered' ? 'good' : 'bad'}>
                {[outcome === 'status' ? undefined : outcome, status ?? undefined].filter(Boolean).join(' ')}
              </Badge>
              <span class="grow" />
              <span class="figure quiet">{showDuration(ms)}</span>
            </p>
            {why !== null && why !== undefined && <p class="quiet small">{why}</p>}
          </li>
        ))}
      </ol>
      <h3>
        Candidates <span class="faint">lowest score first</span>
      </h3>
      <ol class="candidates small">
        {routing.candidates.map(({ upstream: name, score }) => (
          <li key={name}>
            <code>{name}</code>
            <span class="figure quiet">{showScore(score)}</span>
          </li>
        ))}
      </ol>
      {routing.of > routing.candidates.length && (
        <p class="faint small">and {routing.of - routing.candidates.length} more</p>
      )}
    </>
  );
}

function showScore(score: number): string {
  return Number.isInteger(score) ? showCount(score) : score.toFixed(2);
}
