import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { ask } from '../support/calls';
import { newAuthority } from '../support/certificates';
import { temporaryFolder } from '../support/configuration-folder';
import { startGateway, type TestGateway } from '../support/gateway';
import { findProgram } from '../support/programs';
import { POD, startPrometheus, type TestPrometheus } from '../support/prometheus';
import { PROJECT, textOf } from '../support/sources';
import { until } from '../support/until';
import { messagesAnswer, messagesFailure, messagesStream, startUpstream, type TestUpstream } from '../support/upstream';

const run = promisify(execFile);
const USAGE = { input: 10, output: 5 };
/** A search, for which the model has no price. */
const SEARCHED = { server_tool_use: { web_search_requests: 1 } };

/** Metrics of sandboxes, which have series only after the first request to a supplier. */
const OF_SANDBOXES = ['tollgate_sandbox_orphans', 'tollgate_sandbox_supplier_calls_total'];

interface Dashboard {
  readonly panels: readonly { readonly targets: readonly { readonly expr: string }[] }[];
}

interface Rules {
  readonly groups: readonly { readonly rules: readonly { readonly expr: string }[] }[];
}

/** Returns the left side of an alert's expression, which has series even if the alert does not fire. */
function leftOf(expression: string): string {
  const { left } = /^(?<left>.+) (>|<|==) [\d.]+$/.exec(expression)?.groups ?? {};
  assert.ok(left, `an alert compares something with a number: ${expression}`);
  return left;
}

const { panels } = JSON.parse(textOf('deploy/grafana/tollgate.json')) as Dashboard;
const { groups } = parse(textOf('deploy/prometheus/alerts.yml')) as Rules;
/** The queries by which Prometheus Adapter finds the metric of the autoscaler, and then asks for its value. */
const [{ seriesQuery, metricsQuery }] = parse(textOf('deploy/helm/prometheus-adapter.yaml')).rules.custom;
const ADAPTER_QUERIES: readonly string[] = [
  seriesQuery,
  metricsQuery
    .replace('<<.Series>>', seriesQuery.split('{')[0])
    .replace('<<.LabelMatchers>>', `namespace="${POD.namespace}",pod=~"${POD.pod}"`)
    .replace('<<.GroupBy>>', 'pod'),
];

const QUERIES = [
  ...panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
  ...groups.flatMap(({ rules }) => rules.map(({ expr }) => leftOf(expr))),
  ...ADAPTER_QUERIES,
];

const namesIn = (query: string) =>
  [...query.matchAll(/\b(?:tollgate|nodejs|process)_[a-z0-9_]+/g)].map(([name]) => name.replace(/_bucket$/, ''));

describe('the dashboard, the alerts and the Prometheus adapter in deploy/', function () {
  this.timeout(120_000);
  let upstream: TestUpstream;
  let gateway: TestGateway;
  let prometheus: TestPrometheus;

  before(async () => {
    const folder = temporaryFolder({});
    const { ca, issue } = await newAuthority(folder);
    const admin = await issue('admin', ['127.0.0.1']);
    upstream = await startUpstream();
    gateway = await startGateway({
      stores: 'real',
      upstreams: { acme: { url: upstream.url } },
      configure: (config) => {
        const { port, hostname } = config['http'];
        delete config['http'];
        config['https'] = { port, hostname, tls: { default: admin } };
      },
      ca,
    });
    const { key } = await gateway.newCustomer('10');
    upstream.always(messagesAnswer({ usage: USAGE }));
    const token = { name: 'prometheus', role: 'metrics', expiresAt: null };
    const { json } = await gateway.admin('POST', '/admin/v1/tokens', token);
    prometheus = await startPrometheus(new URL(gateway.adminUrl).host, { credentials: json.token });
    await gateway.call('/v1/messages', { key, body: ask() });
    await until('Prometheus has scraped', async () => (await prometheus.series('tollgate_ledger_ready == 1')) === 1);
    upstream.next(messagesAnswer({ rawUsage: { ...SEARCHED, input_tokens: 10, output_tokens: 5 } }));
    await gateway.call('/v1/messages', { key, body: ask() });
    upstream.next(messagesStream({ texts: ['one'], usage: USAGE }));
    await gateway.call('/v1/messages', { key, body: ask({ stream: true }) });
    upstream.always(messagesFailure(500));
    await gateway.call('/v1/messages', { key, body: ask() });
    await gateway.call('/v1/messages', { key, body: ask({ model: 'unknown' }) });
  });
  after(async () => {
    await prometheus?.stop();
    await gateway?.stop();
    await upstream?.stop();
  });

  it('use only metrics that the gateway exposes', async () => {
    const { text } = await gateway.admin('GET', '/metrics');
    const known = new Set([...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name));
    const unknown = new Set(QUERIES.flatMap(namesIn).filter((name) => !known.has(name)));
    assert.deepEqual([...unknown], []);
  });

  for (const query of new Set(QUERIES)) {
    const names = namesIn(query);
    if (names.some((name) => OF_SANDBOXES.includes(name)))
      it(`use a valid query: ${query}`, () => prometheus.series(query));
    else
      it(`have a query that finds a series: ${query}`, () =>
        until('a series', async () => (await prometheus.series(query)) > 0, 60_000));
  }

  it('contain alert rules that promtool accepts, and that fire under their conditions', async () => {
    const cwd = join(PROJECT, 'deploy/prometheus');
    const promtool = (...args: readonly string[]) => run(findProgram('promtool'), args, { cwd });
    assert.match((await promtool('check', 'rules', 'alerts.yml')).stdout, /SUCCESS/);
    assert.match((await promtool('test', 'rules', 'alerts.test.yml')).stdout, /SUCCESS/);
  });
});
