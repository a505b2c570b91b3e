import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { ask } from '../support/calls';
import { freePort } from '../support/free-port';
import type { TestGateway } from '../support/gateway';
import { faultsOf, linesOf, readMetrics } from '../support/metrics';
import { findProgram } from '../support/programs';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { messagesAnswer, messagesStream } from '../support/upstream';

/** The number of accounts in these tests, more than may have their own series. */
const ACCOUNTS = 40;
const WITH_SERIES = 5;
const MADE_UP = 'made-up-by-a-client';

describe('The metrics', function () {
  this.timeout(180_000);
  const upstream = useUpstream();
  let key: string;

  const gateway = useGateway(() => ({
    upstreams: { acme: { url: upstream.url } },
    system: { metrics: { accounts: WITH_SERIES }, log: { calls: 1e-9 } },
  }));

  before(async () => {
    ({ key } = await gateway.newCustomer('10'));
  });
  beforeEach(() => upstream.always(messagesAnswer({ usage: { input: 10, output: 5 } })));

  const call = (body: Record<string, unknown> = ask(), path = '/v1/messages', by = key) =>
    gateway.call(path, { key: by, body });

  it('pass the checks of promtool, except for the metrics of Node.js', async () => {
    await call();
    const { text, headers } = await gateway.admin('GET', '/metrics');
    expect(headers['content-type']).to.equal('text/plain; version=0.0.4; charset=utf-8');
    const faults = await faultsOf(text);
    expect(faults.filter((line) => !line.startsWith('nodejs_'))).to.deep.equal([]);
    expect(await faultsOf(`${text}\ntollgate_wrong_ms{ 1\n`)).not.to.deep.equal(faults);
  });

  it('are read by Prometheus as OpenMetrics, and answer queries', async () => {
    upstream.always(messagesStream({ usage: { input: 10, output: 5 } }));
    await call(ask({ stream: true }));
    const { headers } = await gateway.admin('GET', '/metrics', undefined, { accept: ACCEPT_OF_PROMETHEUS });
    expect(headers['content-type']).to.equal('application/openmetrics-text; version=1.0.0; charset=utf-8');
    const prometheus = await startPrometheus(gateway);
    try {
      await until('Prometheus has scraped it', async () => (await prometheus.query('up'))[0] === 1, 30_000);
      const median = 'histogram_quantile(0.5, sum by (le) (tollgate_call_first_token_seconds_bucket))';
      expect((await prometheus.query(median))[0]).to.be.within(0, 60);
      expect(await prometheus.query(`tollgate_calls_total{strategy="quality",status="2xx"}`)).to.have.length(1);
      expect(
        await prometheus.query('sum(tollgate_account_cost_usd_total) - sum(tollgate_cost_usd_total)'),
      ).to.deep.equal([0]);
    } finally {
      await prometheus.stop();
    }
  });

  it('have no series with names that clients make up', async () => {
    await everything('first');
    const before = new Set((await readMetrics(gateway)).keys());
    for (const round of ['second', 'third']) await everything(round);
    const after = [...(await readMetrics(gateway)).keys()];
    // Other causes than calls make these series come and go.
    const isOfOthers = (name: string) =>
      /^(nodejs_|tollgate_(account|ledger_reports|ledger_violations|redis))/.test(name);
    expect(after.filter((name) => !before.has(name) && !isOfOthers(name))).to.deep.equal([]);
    expect(after.filter((name) => name.includes(MADE_UP))).to.deep.equal([]);
    expect(after.length).to.be.below(1_500);
  });

  /** Sends calls with every value that a client can choose, with new values in each round. */
  async function everything(round: string): Promise<void> {
    const made = `${MADE_UP}-${round}`;
    for (let at = 0; at < 20; at += 1) {
      const name = `${made}-${at}`;
      await call(ask({ model: name }));
      await call(ask({ [name]: 1 }));
      await call(ask(), `/${name}/v1/messages`);
      await call(ask(), `/v1/${name}`);
      await call(ask(), '/v1/messages', `sk-svc-${name}`);
      await gateway.call('/v1/messages', { method: 'PATCH', key });
      await gateway.call(`/v1/usage/${name}`, { method: 'GET', key });
      await gateway.call('/v1/messages', { key, body: ask(), headers: { 'x-session-id': name, 'x-svc-code': name } });
      await gateway.call('/v1/messages', { key, body: ask(), headers: { 'anthropic-version': name } });
      await gateway.admin('GET', `/admin/v1/${name}`);
    }
  }

  it('have one series for each of the configured number of accounts and one for all others, and no counter falls', async () => {
    const highest = new Map<string, number>();
    const look = async () => {
      const samples = [...(await readMetrics(gateway))];
      const shown = samples.filter(([name]) => name.startsWith('tollgate_account_calls_total'));
      for (const [name, calls] of shown) {
        expect(calls, name).to.be.at.least(highest.get(name) ?? 0);
        highest.set(name, calls);
      }
      return shown.length;
    };
    const sum = () => [...highest.values()].reduce((one, other) => one + other);
    await look();
    const before = sum();
    let made = 0;
    for (let at = 0; at < ACCOUNTS; at += 1) {
      const customer = await gateway.newCustomer('1');
      for (let time = 0; time <= at % 3; time += 1) {
        expect((await call(ask(), '/v1/messages', customer.key)).status).to.equal(200);
        made += 1;
      }
      expect(await look()).to.be.at.most(WITH_SERIES + 1);
    }
    expect(sum() - before).to.equal(made);
  });

  it('count calls that have no log line, too: with a small logged share, only failed calls have a line', async () => {
    const before = linesOf(gateway, 'call').length;
    expect((await call()).status).to.equal(200);
    const refused = await call(ask({ model: MADE_UP }));
    const id = refused.headers['x-svc-request-id'];
    await until('the refused call has its line', () =>
      linesOf(gateway, 'call').some(({ requestId }) => requestId === id),
    );
    expect(linesOf(gateway, 'call').length).to.equal(before + 1);
    const isRefused = ({ status }: Record<string, unknown>) => Number(status) >= 400;
    expect(linesOf(gateway, 'call').every(isRefused)).to.equal(true);
  });
});

/** The Accept header of Prometheus 2.42. */
const ACCEPT_OF_PROMETHEUS =
  'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1';

async function startPrometheus({ adminUrl, adminToken }: TestGateway) {
  const folder = await mkdtemp(join(tmpdir(), 'prometheus-'));
  const job = {
    job_name: 'tollgate',
    authorization: { credentials: adminToken },
    static_configs: [{ targets: [new URL(adminUrl).host] }],
  };
  // JSON is valid YAML.
  await writeFile(
    join(folder, 'config.yml'),
    JSON.stringify({ global: { scrape_interval: '1s' }, scrape_configs: [job] }),
  );
  const address = `127.0.0.1:${await freePort()}`;
  const files = [`--config.file=${folder}/config.yml`, `--storage.tsdb.path=${folder}/data`];
  const child: ChildProcess = spawn(findProgram('prometheus'), [...files, `--web.listen-address=${address}`], {
    stdio: 'ignore',
  });
  const query = async (text: string): Promise<readonly number[]> => {
    const response = await fetch(`http://${address}/api/v1/query?query=${encodeURIComponent(text)}`);
    const { data } = (await response.json()) as { data: { result: { value: [number, string] }[] } };
    return data.result.map(({ value }) => Number(value[1]));
  };
  const stop = async () => {
    const ended = once(child, 'exit');
    child.kill();
    await ended;
    await rm(folder, { recursive: true, force: true });
  };
  return { query, stop };
}
