import { expect } from 'chai';
import { ask, PATH } from '../support/calls';
import { startGateway, type TestGateway } from '../support/gateway';
import { newStores, type Stores } from '../support/stores';
import { until } from '../support/until';
import { chatStream, messagesStream, startUpstream, type TestUpstream } from '../support/upstream';

const STREAMS = 50;
const USAGE = { input: 10, output: 5 };
const COST_USD = '0.00010500';
const FUNDS_E8 = 1_000_000_000;
const COST_E8 = 10_500;

describe(`SIGTERM while ${STREAMS} streams run`, function () {
  this.timeout(120_000);
  let stores: Stores;
  let upstream: TestUpstream;
  let gateway: TestGateway;
  let key: string;

  before(async () => {
    stores = await newStores();
    upstream = await startUpstream();
  });
  after(async () => {
    await gateway?.stop();
    await upstream?.stop();
  });
  const start = async () => {
    gateway = await startGateway({ stores, upstreams: { acme: { url: upstream.url } } });
  };

  /** Opens all streams, half in each protocol. Their last events wait for `finish`. */
  const openStreams = async () => {
    upstream.reset();
    let finish = (): void => undefined;
    const finished = new Promise<void>((resolve) => (finish = resolve));
    const ended = Array.from({ length: STREAMS }, async (_, index) => {
      const [path, script] =
        index % 2 === 0
          ? [PATH.messages, messagesStream({ texts: ['some'], usage: USAGE, waitFor: { before: 4, until: finished } })]
          : [PATH.chat, chatStream({ texts: ['some'], usage: USAGE, waitFor: { before: 2, until: finished } })];
      // Calls start one after the other, because each must get the script of its protocol.
      await until(`${index} streams run`, () => upstream.calls.length === index);
      upstream.next(script);
      return gateway.call(path, { key, body: ask({ stream: true }) });
    });
    await upstream.call(STREAMS);
    return { answers: Promise.allSettled(ended), finish };
  };

  it('lets all of them finish, settles each at its price, refuses new calls, and the process exits with 0', async () => {
    await start();
    ({ key } = await gateway.newCustomer('10'));
    const { answers, finish } = await openStreams();
    gateway.process.kill('SIGTERM');
    await until('readiness is 503', async () => (await gateway.call('/readyz', { method: 'GET' })).status === 503);
    const refused = await gateway.call(PATH.messages, { key, body: ask() });
    expect([refused.status, refused.json.error.code]).to.deep.equal([503, 'DRAINING']);
    finish();
    const requestIds: string[] = [];
    for (const [index, answer] of (await answers).entries()) {
      if (answer.status === 'rejected') throw answer.reason;
      const { status, text, headers } = answer.value;
      expect(status).to.equal(200);
      expect(text).to.contain(index % 2 === 0 ? 'event: message_stop' : 'data: [DONE]');
      expect(text).to.contain(COST_USD);
      requestIds.push(headers['x-svc-request-id'] ?? '');
    }
    expect(await gateway.ended).to.equal(0);
    await gateway.stop();

    await start();
    const { balanceUsd, heldUsd } = await gateway.balance(key);
    expect([balanceUsd, heldUsd]).to.deep.equal([((FUNDS_E8 - STREAMS * COST_E8) / 1e8).toFixed(8), '0.00000000']);
    for (const id of requestIds)
      expect(await gateway.record(key, id)).to.include({ cost: COST_USD, billing: 'actual', status: 200 });
    expect((await gateway.admin('GET', '/admin/v1/ledger/verify')).json.items).to.deep.equal([]);
  });

  it('ends the process at once with exit code 1 if it is sent twice, and no stream ends as if complete', async () => {
    const { answers, finish } = await openStreams();
    gateway.process.kill('SIGTERM');
    await until('readiness is 503', async () => (await gateway.call('/readyz', { method: 'GET' })).status === 503);
    gateway.process.kill('SIGTERM');
    expect(await gateway.ended).to.equal(1);
    for (const answer of await answers) {
      const text = answer.status === 'fulfilled' ? answer.value.text : '';
      expect(text).not.to.contain('message_stop').and.not.to.contain('[DONE]');
    }
    finish();
  });
});
