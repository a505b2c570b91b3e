import { exactUsd, fullUsd } from '../../money';
import { showCount, showMaybe } from '../../numbers';
import { Badge } from '../../parts/badge';
import { CopyButton } from '../../parts/copy-button';
import { Dialog } from '../../parts/dialog';
import { Fact } from '../../parts/fact';
import { Bone, Failed } from '../../parts/states';
import { useResource } from '../../resource';
import { changeQuery } from '../../router';
import type { ExplainedRecord, Pass } from '../../shapes';
import { showDuration, showWhole } from '../../times';
import { Status } from './status';

/** What happened to the money, for each ending of a call; docs/money.md. */
const BILLING: Readonly<Record<ExplainedRecord['billing'], string>> = {
  actual: 'Charged by the reported usage',
  estimated: 'Charged by an estimate, because the upstream reported no usage',
  released: 'Not charged',
  partial: 'Charged until the client disconnected',
  expired: 'Not charged: the call was lost, and its hold released',
};

/** One call in full: its cost and the reasons for it, and how it was answered. */
export function RecordSheet({ requestId, onClose }: { readonly requestId: string; readonly onClose: () => void }) {
  const record = useResource<ExplainedRecord>(`usage/${encodeURIComponent(requestId)}`);
  const { data, failure } = record;
  return (
    <Dialog title="Call" kind="sheet" onClose={onClose}>
      {failure !== undefined ? (
        <Failed failure={failure} onRetry={failure.status === 404 ? undefined : record.reload} />
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
        <Narrowing name="session" id={record.sessionId} />
        <Narrowing name="agent" id={record.agentId} />
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

/** A session or an agent, with a link to all of its calls. */
function Narrowing({ name, id }: { readonly name: 'session' | 'agent'; readonly id: string | null }) {
  if (id === null) return null;
  return (
    <Fact name={name === 'session' ? 'Session' : 'Agent'}>
      <Copied text={id} label={`Copy the ${name} id`} />
      <button
        type="button"
        class="button slight"
        onClick={() => changeQuery({ [name]: id, record: undefined })}
      >{`All calls of this ${name}`}</button>
    </Fact>
  );
}

function Copied({ text, label }: { readonly text: string; readonly label: string }) {
  return (
    <span class="copied">
      <code class="cut">{text}</code>
      <CopyButton text={text} label={label} />
    </span>
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

function Tokens({ record }: { readonly record: ExplainedRecord }) {
  const { price, inputTokens, cacheReadTokens, cacheCreationTokens } = record;
  const input = (inputTokens ?? 0) + (cacheReadTokens ?? 0) + (cacheCreationTokens ?? 0);
  const above = price !== null && price.above !== null && input > price.above.tokens ? price.above : undefined;
  const each = above ?? price;
  const rows = record.passes?.flatMap(passRows) ?? [
    { name: 'Input', tokens: inputTokens, price: each?.input },
    { name: 'Cache read', tokens: cacheReadTokens, price: each?.cacheRead },
    { name: 'Cache write', tokens: cacheCreationTokens, price: each?.cacheWrite },
    { name: 'Output', tokens: record.outputTokens, price: each?.output },
  ];
  return (
    <>
      <h3>Tokens</h3>
      <table class="small-table">
        <caption class="unseen">Tokens and their price per million</caption>
        <thead>
          <tr>
            <th scope="col">Kind</th>
            <th scope="col" class="number">
              Tokens
            </th>
            <th scope="col" class="number">
              Per million
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ name, tokens, price: perMillion }) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td class="number">{showMaybe(tokens)}</td>
              <td class="number quiet">{perMillion === undefined ? '–' : exactUsd(perMillion)}</td>
            </tr>
          ))}
          <tr class="sum">
            <th scope="row">Total</th>
            <td class="number">{showMaybe(record.totalTokens)}</td>
            <td class="number">{fullUsd(record.cost)}</td>
          </tr>
        </tbody>
      </table>
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

/** Returns the rows of a pass. The pass is named if there are several, or if another model, tier, speed or region was charged. */
function passRows({ model, tier, speed, geo, ...counts }: Pass, at: number, all: readonly Pass[]) {
  const own = [model, tier, speed, geo].filter((each) => each !== undefined);
  const words = [...(all.length > 1 ? [`Pass ${at + 1}`] : []), ...own];
  const beside = words.length === 0 ? '' : ` (${words.join(', ')})`;
  return Object.entries(counts).map(([meter, count]) => ({
    name: `${METERS[meter] ?? meter}${beside}`,
    tokens: Number(count),
    price: undefined,
  }));
}

const FLAGS = {
  unknown:
    'The request had a member, or the upstream reported a count, that the gateway does not know. It was not charged.',
  unpriced:
    'The call used, or may have used, something without a price. Tokens were charged at the highest price that could apply, all else was not charged.',
  suspect: 'The upstream reported more than the call allows. The charge was limited to the hold.',
  translated: 'The call was translated, because the upstream does not speak its protocol.',
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
            <p class="attempt-head">
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
      <ol class="candidates">
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
