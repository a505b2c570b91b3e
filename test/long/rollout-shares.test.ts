import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { Pool } from 'undici';
import { ask } from '../support/calls';
import { MODEL, startGateway, type TestGateway } from '../support/gateway';
import { emptyRedis, newDatabase } from '../support/shared';
import { until } from '../support/until';

/** How many calls are sent; `npm run rollout:shares` sends ten times as many. */
const CALLS = Number(process.env['ROLLOUT_CALLS'] ?? 10_000);
const STICKY_CALLS = CALLS / 5;
const SHARE = 30;
const CONNECTIONS = 24;
const KEYS = 200;
const OTHER = 'acme-small';

const ANSWER = JSON.stringify({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: MODEL,
  content: [{ type: 'text', text: 'a' }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 1, output_tokens: 1 },
});

/** Returns six standard deviations around the share. A correct share is outside once in 500 million runs. */
function boundsOf(calls: number): readonly [number, number] {
  const share = SHARE / 100;
  const deviation = 6 * Math.sqrt(calls * share * (1 - share));
  return [calls * share - deviation, calls * share + deviation];
}

describe(`A rollout to 30 % with ${CALLS} calls at two nodes`, function () {
  this.timeout(600_000);
  let upstream: Server;
  let nodes: readonly TestGateway[];
  let pools: readonly Pool[] = [];
  let keys: readonly string[];

  before(async () => {
    upstream = createServer((request, response) => {
      request.resume().once('end', () => response.setHeader('content-type', 'application/json').end(ANSWER));
    });
    upstream.keepAliveTimeout = 60_000;
    await new Promise<void>((done) => void upstream.listen(0, '127.0.0.1', done));
    const url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
    const stores = { redisUrl: await emptyRedis(), databaseUrl: await newDatabase() };
    const served = { url, models: { [MODEL]: {}, [OTHER]: {} } };
    const start = () =>
      startGateway({
        stores,
        upstreams: { acme: served, beta: served },
        configure: (config) => {
          const rollout = (model: string, stickyBy: string) => ({
            change: { upstreams: { model, add: ['beta'] } },
            stickyBy,
            stages: [{ share: SHARE, hold: '24h' }],
          });
          config['rollouts'] = { drawn: rollout(MODEL, 'request'), sticky: rollout(OTHER, 'key') };
        },
      });
    nodes = await Promise.all([start(), start()]);
    pools = nodes.map((node) => new Pool(node.url, { connections: CONNECTIONS }));
    const { accountId, key } = await (nodes[0] as TestGateway).newCustomer('1000000');
    const made = Array.from({ length: KEYS - 1 }, async () => {
      const answer = await nodes[0]?.admin('POST', `/admin/v1/accounts/${accountId}/keys`, { name: 'key' });
      return String(answer?.json.key);
    });
    keys = [key, ...(await Promise.all(made))];
  });
  after(async () => {
    await Promise.all(pools.map((pool) => pool.destroy()));
    await Promise.all((nodes ?? []).map((node) => node.stop()));
    upstream?.closeAllConnections();
    upstream?.close();
  });

  /** Sends calls to both nodes as fast as possible. Returns which upstream served each key, and how often. */
  async function load(model: string, calls: number): Promise<readonly Readonly<Record<string, number>>[]> {
    const body = JSON.stringify(ask({ model }));
    const served = keys.map((): Record<string, number> => ({}));
    let begun = 0;
    const work = async (pool: Pool, index: number) => {
      while (begun < calls) {
        const of = begun % KEYS;
        begun += 1;
        const provider = await call(pool, keys[of] ?? '', body);
        const counts = served[of] as Record<string, number>;
        const at = `${provider} at ${index}`;
        counts[at] = (counts[at] ?? 0) + 1;
      }
    };
    const workers = pools.flatMap((pool, index) => Array.from({ length: CONNECTIONS }, () => work(pool, index)));
    await Promise.all(workers);
    return served;
  }

  /** Sends a call, and repeats it if its reserve was late because the machine is busy. */
  async function call(pool: Pool, key: string, body: string): Promise<string> {
    for (;;) {
      const {
        statusCode,
        headers,
        body: answer,
      } = await pool.request({
        path: '/v1/messages',
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-api-key': key },
        body,
      });
      await answer.dump();
      if (statusCode === 200) return String(headers['x-routing-provider']);
      if (statusCode !== 503) throw new Error(`a call was answered ${statusCode}`);
    }
  }

  const sum = (served: readonly Readonly<Record<string, number>>[], provider: string) =>
    served.flatMap(Object.entries).reduce((all, [at, count]) => (at.startsWith(provider) ? all + count : all), 0);

  it('gives the treatment its share of the calls, and counts every call', async () => {
    const startedMs = performance.now();
    const served = await load(MODEL, CALLS);
    const [control, treatment] = [sum(served, 'acme'), sum(served, 'beta')];
    const seconds = (performance.now() - startedMs) / 1_000;
    const bounds = boundsOf(CALLS);
    tell({ calls: control + treatment, treatment, bounds, callsPerSecond: Math.round(CALLS / seconds) });
    expect(control + treatment).to.equal(CALLS);
    expect(treatment).to.be.within(...bounds);
    for (const node of [0, 1]) expect(sum(served, `beta at ${node}`)).to.be.above(0);
    const { inAll } = await until('all are counted', async () => {
      const { json } = (await nodes[0]?.admin('GET', '/admin/v1/rollouts/drawn')) ?? {};
      return json.inAll.control.calls + json.inAll.treatment.calls >= CALLS ? json : undefined;
    });
    expect([inAll.control.calls, inAll.treatment.calls]).to.deep.equal([control, treatment]);
  });

  it('gives each caller the same group in every call on either node', async () => {
    const served = await load(OTHER, STICKY_CALLS);
    const unfaithful = served.filter((counts) => new Set(Object.keys(counts).map((at) => at.split(' ')[0])).size > 1);
    const seenAtBoth = served.filter((counts) => Object.keys(counts).length === 2).length;
    const inTreatment = served.filter((counts) => Object.keys(counts).some((at) => at.startsWith('beta'))).length;
    tell({ calls: STICKY_CALLS, keys: KEYS, inTreatment, seenAtBoth, unfaithful: unfaithful.length });
    expect(unfaithful).to.deep.equal([]);
    expect(seenAtBoth).to.be.above(KEYS / 2);
    expect(inTreatment).to.be.within(...boundsOf(KEYS));
  });

  function tell(figures: object): void {
    if (process.env['SHOW_FIGURES'] !== undefined) console.log(JSON.stringify(figures));
  }
});
