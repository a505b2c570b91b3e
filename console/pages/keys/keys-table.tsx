import { addUsd, exactUsd, shareOf, shortUsd } from '../../money';
import { plural, showShortCount } from '../../numbers';
import { BoneRows } from '../../parts/states';
import { TableFrame } from '../../parts/table-frame';
import { hrefOf } from '../../router';
import type { ApiKey } from '../../shapes';
import { showAgo, showDate, showWhole } from '../../times';

interface Props {
  readonly keys: readonly ApiKey[] | undefined;
  readonly isStale: boolean;
  readonly onEdit: (key: ApiKey) => void;
  readonly onRevoke: (key: ApiKey) => void;
}

export function KeysTable({ keys, isStale, onEdit, onRevoke }: Props) {
  return (
    <TableFrame label="API keys" isStale={isStale}>
      <table class="keys">
        <caption class="unseen">API keys, newest first</caption>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Spent of its limit</th>
            <th scope="col" class="number from-m">
              Held
            </th>
            <th scope="col" class="from-l">
              Per day and month
            </th>
            <th scope="col" class="from-l">
              Rate
            </th>
            <th scope="col" class="from-m">
              Models
            </th>
            <th scope="col" class="from-m">
              Last used
            </th>
            <th scope="col" class="from-l">
              Created
            </th>
            <th scope="col" class="actions">
              <span class="unseen">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {keys === undefined && <BoneRows rows={5} columns={9} />}
          {keys?.map((key) => (
            <tr key={key.id}>
              <th scope="row">
                <a class="plain-link key-name cut" href={hrefOf(`/usage?key=${key.id}`)} title="Its usage records">
                  {key.name}
                </a>
                <span class="sub faint small mono">
                  {key.prefix}…{key.suffix}
                </span>
              </th>
              <td>
                <Spent apiKey={key} />
              </td>
              <td class="number from-m">{amount(key.heldUsd)}</td>
              <td class="from-l figure small">
                <Limits daily={key.dailyLimit} monthly={key.monthlyLimit} />
              </td>
              <td class="from-l figure small">
                <Rate calls={key.callsPerMinute} tokens={key.tokensPerMinute} />
              </td>
              <td class="from-m small">
                <Allowed models={key.allowedModels} />
              </td>
              <td class="from-m quiet small">
                {key.lastUsedAt === null ? (
                  'Never'
                ) : (
                  <time dateTime={key.lastUsedAt} title={showWhole(key.lastUsedAt)}>
                    {showAgo(key.lastUsedAt)}
                  </time>
                )}
              </td>
              <td class="from-l quiet small">
                <time dateTime={key.createdAt} title={showWhole(key.createdAt)}>
                  {showDate(key.createdAt)}
                </time>
              </td>
              <td class="actions">
                {key.status === 'revoked' ? (
                  <span class="faint small">Revoked{key.revokedAt !== null && ` ${showAgo(key.revokedAt)}`}</span>
                ) : (
                  <>
                    <button type="button" class="button slight" onClick={() => onEdit(key)}>
                      Edit<span class="unseen"> {key.name}</span>
                    </button>
                    <button type="button" class="button slight danger" onClick={() => onRevoke(key)}>
                      Revoke<span class="unseen"> {key.name}</span>
                    </button>
                  </>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </TableFrame>
  );
}

function amount(usd: string | null) {
  return usd === null ? '–' : <span title={exactUsd(usd)}>{shortUsd(usd)}</span>;
}

/** What is held may be spent in the next moment: it counts, in a lighter colour. */
function Spent({ apiKey }: { readonly apiKey: ApiKey }) {
  const { balanceLimit, spentUsd, heldUsd } = apiKey;
  if (spentUsd === null || heldUsd === null) return <span class="faint">–</span>;
  if (balanceLimit === null) {
    return (
      <span class="figure">
        {amount(spentUsd)} <span class="faint small">no limit</span>
      </span>
    );
  }
  const spent = shareOf(spentUsd, balanceLimit);
  const taken = shareOf(addUsd([spentUsd, heldUsd]), balanceLimit);
  return (
    <div class="spent">
      <span class="figure">
        {amount(spentUsd)} <span class="faint">of {shortUsd(balanceLimit)}</span>
      </span>
      <span class={taken >= 0.9 ? 'meter is-full' : 'meter'} aria-hidden="true">
        <span class="meter-held" style={{ width: `${taken * 100}%` }} />
        <span class="meter-spent" style={{ width: `${spent * 100}%` }} />
      </span>
    </div>
  );
}

function Limits({ daily, monthly }: { readonly daily: string | null; readonly monthly: string | null }) {
  if (daily === null && monthly === null) return <span class="faint">–</span>;
  return (
    <>
      {daily !== null && <span class="line">{shortUsd(daily)} a day</span>}
      {monthly !== null && <span class="line">{shortUsd(monthly)} a month</span>}
    </>
  );
}

function Rate({ calls, tokens }: { readonly calls: number | null; readonly tokens: number | null }) {
  if (calls === null && tokens === null) return <span class="faint">–</span>;
  return (
    <>
      {calls !== null && <span class="line">{showShortCount(calls)} calls/min</span>}
      {tokens !== null && <span class="line">{showShortCount(tokens)} tokens/min</span>}
    </>
  );
}

function Allowed({ models }: { readonly models: readonly string[] | null }) {
  if (models === null) return <span class="faint">All</span>;
  return models.length === 1 ? (
    <span class="mono cut model-name">{models[0]}</span>
  ) : (
    <span title={models.join(', ')}>{plural(models.length, 'model')}</span>
  );
}
