import { expect } from 'chai';
import { startGateway } from '../support/gateway';
import { realStores, type Stores } from '../support/stores';
import { TestSocket } from '../support/test-socket';
import { until } from '../support/until';
import { responsesStream, startUpstream, type TestUpstream } from '../support/upstream';

describe('A WebSocket whose node is killed in the middle of a response', function () {
  this.timeout(120_000);
  let upstream: TestUpstream;
  let stores: Stores;

  before(async () => {
    upstream = await startUpstream();
    stores = await realStores();
  });
  after(() => upstream?.stop());

  const start = () =>
    startGateway({
      stores,
      upstreams: { acme: { url: upstream.url, webSocket: true } },
      system: { ledger: { leaseSeconds: 5 } },
    });

  it('is charged once for each finished call, and nothing for the interrupted call', async () => {
    const node = await start();
    const { key } = await node.newCustomer('10');
    const socket = await TestSocket.open(node, key);
    upstream.always(responsesStream());
    for (let count = 0; count < 5; count += 1) await socket.call();
    upstream.next(responsesStream({ cut: 'stall', cutAfter: 6 }));
    socket.send(TestSocket.create());
    await until('the sixth has begun', () => {
      return socket.frames.filter(({ type }) => type === 'response.output_text.delta').length === 6;
    });
    expect(Number((await node.balance(key)).heldUsd)).to.be.above(0);
    await node.kill();
    expect((await socket.closed).code).to.equal(1006);
    const next = await start();
    try {
      await until('the lease has ended', async () => (await next.balance(key)).heldUsd === '0.00000000', 30_000);
      expect((await next.balance(key)).balanceUsd).to.equal('9.99947500');
      const again = await TestSocket.open(next, key);
      await again.call();
      again.close();
      await again.closed;
      expect((await next.balance(key)).balanceUsd).to.equal('9.99937000');
      const records = await until('all records exist', async () => {
        const { items } = (await next.call('/v1/usage', { method: 'GET', key })).json;
        return items.length === 7 ? (items as { billing: string }[]) : undefined;
      });
      expect(records.map(({ billing }) => billing).sort()).to.deep.equal([...Array(6).fill('actual'), 'expired']);
    } finally {
      await next.stop();
    }
  });
});
