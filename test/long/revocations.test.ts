import { expect } from 'chai';
import { ask, PATH } from '../support/calls';
import { freePort } from '../support/free-port';
import { startGateway, type TestGateway } from '../support/gateway';
import { realStores } from '../support/stores';
import { until } from '../support/until';
import { messagesAnswer, startUpstream, type TestUpstream } from '../support/upstream';

const NODES = 3;
const WORKERS = 2;
const CALLERS = 12;
/** How often each way to stop calls is tried. */
const ROUNDS = 10;
/** How many calls of a key are served from money in advance, at all nodes together, before the key is stopped. */
const FROM_ALLOWANCES = 100;
const CALLS_AFTER = 8 * CALLERS;
/** The status if Redis, or a node with money in advance, is late. The caller repeats its request as Retry-After says. */
const UNAVAILABLE = 503;

interface Way {
  readonly name: string;
  readonly refused: number;
  stop(node: TestGateway, payer: { accountId: string; keyId: string }): ReturnType<TestGateway['admin']>;
}

const WAYS: readonly Way[] = [
  {
    name: 'a key is revoked',
    refused: 401,
    stop: (node, { keyId }) => node.admin('DELETE', `/admin/v1/keys/${keyId}`),
  },
  {
    name: 'an account is frozen',
    refused: 403,
    stop: (node, { accountId }) => node.admin('POST', `/admin/v1/accounts/${accountId}/freeze`, {}),
  },
];

describe(`${NODES} nodes of ${WORKERS} workers that hold money in advance (allowances)`, function () {
  this.timeout(300_000);
  let upstream: TestUpstream;
  const nodes: TestGateway[] = [];

  before(async () => {
    upstream = await startUpstream();
    upstream.always(messagesAnswer({ usage: { input: 10, output: 5 } }));
    const stores = await realStores();
    const upstreams = { acme: { url: upstream.url } };
    for (let each = 0; each < NODES; each += 1) {
      const env = { WORKERS: String(WORKERS), ADMIN_PORT: String(await freePort()) };
      nodes.push(await startGateway({ stores, upstreams, env }));
    }
  });
  after(async () => {
    for (const each of nodes) await each.stop();
    await upstream?.stop();
  });

  const node = (index: number) => nodes[index % nodes.length] as TestGateway;

  /** Returns how many calls all nodes have served from allowances. */
  const served = async () => {
    const texts = await Promise.all(nodes.map(async (each) => (await each.admin('GET', '/metrics')).text));
    const counts = texts.map((text) => /^tollgate_ledger_reported_calls_total (\d+)/m.exec(text)?.[1]);
    return counts.reduce((sum, count) => sum + Number(count ?? 0), 0);
  };

  for (const { name, refused, stop } of WAYS) {
    it(`admit, under load, no further call after the admin API has confirmed that ${name}`, async () => {
      const times: number[] = [];
      const late: number[] = [];
      for (let round = 0; round < ROUNDS; round += 1) {
        const customer = await node(0).newCustomer('1000');
        let [isAnswered, isDone, after] = [false, false, 0];
        const caller = async (index: number) => {
          while (!isDone) {
            const wasAnswered = isAnswered;
            const { status } = await node(index).call(PATH.messages, { key: customer.key, body: ask() });
            if (!wasAnswered) continue;
            after += 1;
            if (status !== refused && status !== UNAVAILABLE) late.push(status);
          }
        };
        const before = await served();
        const calling = Array.from({ length: CALLERS }, (_, index) => caller(index));
        await until(
          'calls are served from allowances',
          async () => (await served()) > before + FROM_ALLOWANCES,
          60_000,
        );
        const begunMs = performance.now();
        await until(
          'it is answered',
          async () => {
            const { status } = await stop(node(round), customer);
            expect(status).to.be.oneOf([200, UNAVAILABLE]);
            return status === 200;
          },
          30_000,
        );
        isAnswered = true;
        times.push(performance.now() - begunMs);
        await until('calls are refused', () => after > CALLS_AFTER, 60_000);
        isDone = true;
        await Promise.all(calling);
      }
      times.sort((one, other) => one - other);
      if (process.env['SHOW_FIGURES'] !== undefined) {
        const [p50, worst] = [times[times.length >> 1] ?? 0, times.at(-1) ?? 0];
        console.log(
          `      ${times.length} times, answered after ${Math.round(p50)} ms (p50), ${Math.round(worst)} ms (worst)`,
        );
      }
      expect(late).to.deep.equal([]);
    });
  }

  it('have a ledger without violated invariants after these tests', async () => {
    await until(
      'the books agree',
      async () => {
        const { status, json } = await node(1).admin('GET', '/admin/v1/ledger/verify');
        if (status === 200 && json.items.length === 0) return true;
        throw new Error(JSON.stringify(json));
      },
      60_000,
    );
  });
});
