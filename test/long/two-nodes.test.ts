import { expect } from 'chai';
import { ask, PATH } from '../support/calls';
import { startGateway, type TestGateway } from '../support/gateway';
import { realStores } from '../support/stores';
import { until } from '../support/until';
import { messagesAnswer, startUpstream, type TestUpstream } from '../support/upstream';

const COST_E8 = 10_500;
const CALLERS = 16;
const TOP_UPS = 100;
const TOP_UP_USD = '0.01';
const TOP_UP_E8 = 1_000_000;
/** The status if Redis did not answer within 250 ms. Nothing was done, and the request may be repeated. */
const BUSY = 503;

describe('Two nodes under load', function () {
  this.timeout(120_000);
  let upstream: TestUpstream;
  const nodes: TestGateway[] = [];

  before(async () => {
    upstream = await startUpstream();
    upstream.always(messagesAnswer({ usage: { input: 10, output: 5 } }));
    const stores = await realStores();
    const options = { stores, upstreams: { acme: { url: upstream.url } } };
    nodes.push(await startGateway(options), await startGateway(options));
  });
  after(async () => {
    for (const each of nodes) await each.stop();
    await upstream?.stop();
  });

  const node = (index: number) => nodes[index % nodes.length] as TestGateway;

  /** Sends calls to both nodes until it is stopped. Each answer has the `phase` in which its call was sent. */
  const startCallers = (key: string, phase = () => '') => {
    const answers: { readonly phase: string; readonly status: number; readonly code: string | undefined }[] = [];
    let stopped = false;
    const caller = async (index: number) => {
      while (!stopped) {
        const sent = phase();
        const { status, json } = await node(index).call(PATH.messages, { key, body: ask() });
        answers.push({ phase: sent, status, code: json?.error?.code });
      }
    };
    const calling = Array.from({ length: CALLERS }, (_, index) => caller(index));
    const stop = async () => {
      stopped = true;
      await Promise.all(calling);
    };
    return { answers, stop };
  };

  /** Returns the balance once nothing is held and it has fallen so far. */
  const settledE8 = (key: string, maxE8: number) =>
    until('nothing is held, and each call is charged', async () => {
      const { balanceUsd, heldUsd } = await node(0).balance(key);
      const balanceE8 = Math.round(Number(balanceUsd) * 1e8);
      return heldUsd === '0.00000000' && balanceE8 <= maxE8 ? balanceE8 : undefined;
    });
  const expectSoundBooks = () =>
    until('the books agree', async () => {
      const { status, json } = await node(1).admin('GET', '/admin/v1/ledger/verify');
      if (status === 200 && json.items.length === 0) return true;
      throw new Error(JSON.stringify(json));
    });

  it('book each of 100 credits once, although both nodes receive every credit at the same time', async () => {
    const { accountId, key } = await node(0).newCustomer('0.01');
    const { answers, stop } = startCallers(key);
    await until('calls are served', () => answers.length > CALLERS);
    for (let each = 0; each < TOP_UPS; each += 1) {
      const body = { amountUsd: TOP_UP_USD, idempotencyKey: `top-up-${each}` };
      const path = `/admin/v1/accounts/${accountId}/credits`;
      const book = async (index: number) => (await node(index).admin('POST', path, body)).status;
      const isBooked = (index: number) => async () => [200, 201].includes(await book(index));
      await Promise.all([0, 1].map((index) => until(`node ${index} has booked top-up ${each}`, isBooked(index))));
    }
    await stop();
    const served = answers.filter(({ status }) => status === 200).length;
    expect(served).to.be.above(100);
    expect(answers.filter(({ status }) => ![200, 402, BUSY].includes(status))).to.deep.equal([]);
    const leftE8 = (TOP_UPS + 1) * TOP_UP_E8 - served * COST_E8;
    expect(await settledE8(key, leftE8)).to.equal(leftE8);
    await expectSoundBooks();
  });
});
