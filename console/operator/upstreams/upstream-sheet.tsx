import type { ComponentChildren } from 'preact';
import { refetch } from '../../api';
import { exactUsd, shortUsd } from '../../money';
import { plural, showCount, showMaybe, showPercent } from '../../numbers';
import { Dialog } from '../../parts/dialog';
import { handlingOf, kindsOf, regionOf } from '../../parts/facts';
import { Bone, Failed } from '../../parts/states';
import { type Column, Table } from '../../parts/table';
import { Amount, Badge, Fact, type Tone, UpstreamState, When } from '../../parts/values';
import { useResource } from '../../resource';
import { showMaybeDuration } from '../../times';
import type { Comparison, Upstream } from '../shapes';

const CREDENTIAL_TONES: Readonly<Record<Upstream['credentials'][number]['state'], Tone>> = {
  available: 'good',
  'rate-limited': 'warn',
  refused: 'bad',
  missing: 'bad',
};

/** The sheet of one upstream: its health, credentials and prices, and its vendor's usage report. */
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
            <When at={upstream.lastFailureAt} none="None" />
          </Fact>
          <Fact name="First token">{showMaybeDuration(upstream.firstTokenMs)}</Fact>
          <Fact name="Whole answer">{showMaybeDuration(upstream.wholeAnswerMs)}</Fact>
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
        <Table
          caption="Prices of its models"
          look="small-table"
          columns={PRICE_COLUMNS}
          rows={models}
          keyOf={({ name }) => name}
        />
        <h3>Facts</h3>
        <Table
          caption="What is declared of its models"
          look="small-table"
          columns={FACT_COLUMNS}
          rows={models}
          keyOf={({ name }) => name}
        />
        <Invoice name={upstream.name} />
      </div>
    </Dialog>
  );
}

const PRICE_COLUMNS: readonly Column<Upstream['models'][number]>[] = [
  { title: 'Model', look: 'mono', cell: ({ name }) => name },
  { title: 'Input', isNumber: true, cell: ({ pricePerMillion }) => <Amount usd={pricePerMillion.input} /> },
  { title: 'Output', isNumber: true, cell: ({ pricePerMillion }) => <Amount usd={pricePerMillion.output} /> },
  { title: 'Cache read', isNumber: true, cell: ({ pricePerMillion }) => <Amount usd={pricePerMillion.cacheRead} /> },
];

const FACT_COLUMNS: readonly Column<Upstream['models'][number]>[] = [
  { title: 'Model', look: 'mono', cell: ({ name }) => name },
  { title: 'Region', cell: ({ facts }) => regionOf(facts) },
  { title: 'Data', cell: ({ facts }) => handlingOf(facts) },
  { title: 'Reads', cell: ({ facts }) => kindsOf(facts.inputs) },
  { title: 'Retires', cell: ({ facts }) => facts.retires },
];

/** The panel that compares the vendor's usage report of yesterday with the gateway's records. */
function Invoice({ name }: { readonly name: string }) {
  const path = `/admin/v1/invoices/${encodeURIComponent(name)}/comparison`;
  const { data, failure } = useResource<Comparison>(path);
  const differing = data?.counts.filter(({ difference }) => difference !== 0) ?? [];
  return (
    <>
      <h3>
        Drift <span class="faint">the vendor's report of yesterday compared with the records</span>
      </h3>
      {failure?.code === 'CONFLICT' ? (
        <p class="quiet small">{failure.message}</p>
      ) : failure !== undefined ? (
        <Failed failure={failure} onRetry={refetch} />
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

/** Returns why the upstream receives no calls, or until when; undefined if it receives calls. */
export function reasonOf(upstream: Upstream): ComponentChildren {
  const { takenOut, ejectedUntil, restsUntil, disabledReason } = upstream;
  const until = ejectedUntil ?? restsUntil;
  if (takenOut !== null) {
    return (
      <>
        {takenOut.by}, <When at={takenOut.since} />
        {takenOut.reason !== null && `: ${takenOut.reason}`}
      </>
    );
  }
  if (disabledReason !== null) return disabledReason;
  if (until === null) return undefined;
  return (
    <>
      next attempt <When at={until} />
    </>
  );
}

export function Why({ upstream }: { readonly upstream: Upstream }) {
  const refused = upstream.credentials.filter(({ state }) => state !== 'available').length;
  const words = reasonOf(upstream) ?? (refused > 0 ? `${plural(refused, 'credential')} not usable` : undefined);
  return words === undefined ? null : <span class="sub faint small">{words}</span>;
}
