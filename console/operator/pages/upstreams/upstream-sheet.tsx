import { exactUsd, shortUsd } from '../../../money';
import { plural, showCount, showMaybe, showPercent } from '../../../numbers';
import { Ago } from '../../../parts/ago';
import { Badge, type Tone } from '../../../parts/badge';
import { Dialog } from '../../../parts/dialog';
import { Fact } from '../../../parts/fact';
import { Bone, Failed } from '../../../parts/states';
import { UpstreamState } from '../../../parts/upstream-state';
import { useResource } from '../../../resource';
import { showDuration } from '../../../times';
import type { Comparison, Upstream } from '../../shapes';
import { Why } from './why';

const CREDENTIAL_TONES: Readonly<Record<Upstream['credentials'][number]['state'], Tone>> = {
  available: 'good',
  'rate-limited': 'warn',
  refused: 'bad',
  missing: 'bad',
};

/** One upstream: its health, credentials and prices, and its vendor's report. */
export function UpstreamSheet({ upstream, onClose }: { readonly upstream: Upstream; readonly onClose: () => void }) {
  const { attempts, credentials, models } = upstream;
  return (
    <Dialog title={upstream.name} kind="sheet" onClose={onClose}>
      <div class="record">
        <UpstreamState state={upstream.state} />
        <Why upstream={upstream} />
        <dl class="facts">
          <Fact name="Address">
            <span class="mono">{upstream.url}</span>
          </Fact>
          <Fact name="Adapters">{upstream.adapters.join(', ')}</Fact>
          <Fact name="Tier, weight">
            {upstream.tier}, {upstream.weight}
          </Fact>
          <Fact name="Success">{upstream.successRate === null ? '–' : showPercent(upstream.successRate)}</Fact>
          <Fact name="Attempts">
            {plural(attempts.answered, 'answer')}, {plural(attempts.failed, 'failure')},{' '}
            {showCount(upstream.consecutiveFailures)} in a row
          </Fact>
          <Fact name="Last failure">
            {upstream.lastFailureAt === null ? 'None' : <Ago at={upstream.lastFailureAt} />}
          </Fact>
          <Fact name="First token">{took(upstream.firstTokenMs)}</Fact>
          <Fact name="Whole answer">{took(upstream.wholeAnswerMs)}</Fact>
        </dl>
        <h3>Credentials</h3>
        <dl class="facts">
          {credentials.length === 0 && <p class="quiet">It needs none.</p>}
          {credentials.map(({ name, state, refusedWith, missing }) => (
            <Fact key={name} name={name}>
              <Badge tone={CREDENTIAL_TONES[state]}>{state}</Badge>{' '}
              <span class="quiet">{missing ?? (refusedWith === null ? '' : `answered ${refusedWith}`)}</span>
            </Fact>
          ))}
        </dl>
        <h3>
          Prices <span class="faint">USD per million tokens</span>
        </h3>
        <table class="small-table">
          <caption class="unseen">Prices of its models</caption>
          <thead>
            <tr>
              <th scope="col">Model</th>
              <th scope="col" class="number">
                Input
              </th>
              <th scope="col" class="number">
                Output
              </th>
              <th scope="col" class="number">
                Cache read
              </th>
            </tr>
          </thead>
          <tbody>
            {models.map(({ name, pricePerMillion: price }) => (
              <tr key={name}>
                <th scope="row" class="mono">
                  {name}
                </th>
                {[price.input, price.output, price.cacheRead].map((usd, at) => (
                  // biome-ignore lint/suspicious/noArrayIndexKey: the item has no other key
                  <td key={at} class="number" title={exactUsd(usd)}>
                    {shortUsd(usd)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
        <Invoice name={upstream.name} />
      </div>
    </Dialog>
  );
}

/** The difference between the vendor's report of yesterday and the records. */
function Invoice({ name }: { readonly name: string }) {
  const path = `/admin/v1/invoices/${encodeURIComponent(name)}/comparison`;
  const { data, failure, reload } = useResource<Comparison>(path);
  const differing = data?.counts.filter(({ difference }) => difference !== 0) ?? [];
  return (
    <>
      <h3>
        Drift <span class="faint">the vendor's report of yesterday compared with the records</span>
      </h3>
      {failure?.code === 'CONFLICT' ? (
        <p class="quiet small">{failure.message}</p>
      ) : failure !== undefined ? (
        <Failed failure={failure} onRetry={reload} />
      ) : data === undefined ? (
        <Bone width="20ch" />
      ) : (
        <>
          <dl class="facts">
            {data.costs.map((cost) => (
              <Fact key={cost.day} name={cost.day}>
                <Badge tone={cost.isAlarm ? 'bad' : 'good'}>{exactUsd(cost.differenceUsd)} more reported</Badge>{' '}
                <span class="quiet">
                  {shortUsd(cost.reportedUsd)} reported, {shortUsd(cost.recordedUsd)} recorded
                </span>
              </Fact>
            ))}
          </dl>
          {differing.length === 0 ? (
            <p class="quiet small">All counts of tokens are the same.</p>
          ) : (
            <dl class="facts">
              {differing.map(({ day, model, meter, difference }) => (
                <Fact key={`${day} ${model} ${meter}`} name={meter}>
                  {showMaybe(difference)} more reported for <span class="mono">{model}</span>
                </Fact>
              ))}
            </dl>
          )}
        </>
      )}
    </>
  );
}

function took(ms: number | null): string {
  return ms === null ? '–' : showDuration(ms);
}
