import { expect } from 'chai';
import { Redis } from 'ioredis';
import { ask } from '../support/calls';
import { startGateway, type TestGateway } from '../support/gateway';
import { watchCommands } from '../support/redis-monitor';
import { type RealStores, realStores } from '../support/stores';
import { until } from '../support/until';
import { after as afterMs, messagesAnswer, neverAnswer, startUpstream, type TestUpstream } from '../support/upstream';

const USAGE = { input: 1_000, output: 200 };
const COST = '0.00600000';
const NOTHING = '0.00000000';

describe('Idempotency-Key at two nodes', function () {
  this.timeout(120_000);
  let upstream: TestUpstream;
  let stores: RealStores;
  let nodes: [TestGateway, TestGateway];

  before(async () => {
    upstream = await startUpstream();
    stores = await realStores();
    const system = { ledger: { leaseSeconds: 5 }, answerStore: {} };
    const start = () => startGateway({ stores, upstreams: { acme: { url: upstream.url } }, system });
    nodes = await Promise.all([start(), start()]);
  });
  after(async () => {
    for (const node of nodes ?? []) await node.stop();
    await upstream?.stop();
  });
  beforeEach(() => upstream.reset());

  const call = (node: TestGateway, key: string) =>
    node.call('/v1/messages', { key, headers: { 'idempotency-key': 'order-1' }, body: ask() });
  const codeOf = async (node: TestGateway, key: string) => {
    const { status, json } = await call(node, key);
    return status === 200 ? 'answered' : String(json.error.code);
  };
  const spent = async (key: string) => (await nodes[1].balance(key)).key['spentUsd'];

  it('charges simultaneous repetitions of a call once, and only the node of the first call returns its answer', async () => {
    const { key } = await nodes[0].newCustomer('10');
    upstream.always(afterMs(300, messagesAnswer({ usage: USAGE })));
    const first = call(nodes[0], key);
    await upstream.call(1);
    expect(await codeOf(nodes[1], key)).to.equal('IDEMPOTENCY_KEY_IN_USE');
    expect((await first).status).to.equal(200);
    expect(await codeOf(nodes[1], key)).to.equal('ALREADY_CHARGED');
    expect(await codeOf(nodes[0], key)).to.equal('answered');
    const { key: other } = await nodes[0].newCustomer('10');
    const codes = await Promise.all(
      Array.from({ length: 20 }, (_, index) => codeOf(nodes[index % 2 === 0 ? 0 : 1], other)),
    );
    expect(codes.filter((code) => code === 'answered')).to.have.length.greaterThan(0);
    expect(await spent(other)).to.equal(COST);
    expect(upstream.calls).to.have.length(2);
  });

  it('adds no round trip to Redis: a call makes only a reserve and a settle', async () => {
    const { key, keyId } = await nodes[0].newCustomer('10');
    upstream.always(messagesAnswer({ usage: USAGE }));
    await nodes[0].call('/v1/messages', { key, body: ask() });
    let trips = 0;
    const monitor = await watchCommands(stores.redisUrl, ({ words, source }) => {
      if (source !== 'lua' && words.some((word) => word.endsWith(`:k:${keyId}`))) trips += 1;
    });
    const tripsOf = async (headers: Record<string, string>) => {
      trips = 0;
      expect((await nodes[0].call('/v1/messages', { key, headers, body: ask() })).status).to.equal(200);
      await until('both have been seen', () => trips >= 2);
      await new Promise((wake) => setTimeout(wake, 200));
      return trips;
    };
    try {
      expect(await tripsOf({})).to.equal(2);
      expect(await tripsOf({ 'idempotency-key': 'order-1' })).to.equal(2);
      expect(await tripsOf({ 'idempotency-key': 'order-2' })).to.equal(2);
    } finally {
      monitor.stop();
    }
  });

  it('recognizes a charged call after Redis was emptied and filled from Postgres', async () => {
    const { key } = await nodes[0].newCustomer('10');
    upstream.always(messagesAnswer({ usage: USAGE }));
    const first = await call(nodes[0], key);
    expect(first.status).to.equal(200);
    const id = first.headers['x-svc-request-id'] ?? '';
    await nodes[0].record(key, id);
    const redis = new Redis(stores.redisUrl);
    await redis.flushall();
    redis.disconnect();
    const repeated = await until('the ledger is filled', async () => {
      const answer = await call(nodes[1], key);
      return answer.status === 503 ? undefined : answer;
    });
    expect(repeated.status, repeated.text).to.equal(409);
    expect(repeated.json.error).to.deep.include({
      code: 'ALREADY_CHARGED',
      details: { requestId: id, costUsd: COST },
    });
    expect(upstream.calls).to.have.length(1);
  });

  it('charges a call only once if it is open while Redis is emptied and is repeated later', async () => {
    const { key } = await nodes[0].newCustomer('10');
    upstream.always(messagesAnswer({ usage: USAGE }));
    const earlier = await nodes[0].call('/v1/messages', { key, body: ask() });
    await nodes[0].record(key, earlier.headers['x-svc-request-id'] ?? '');
    upstream.next(afterMs(6_000, messagesAnswer({ usage: USAGE })));
    const first = call(nodes[0], key);
    await upstream.call(2);
    const redis = new Redis(stores.redisUrl);
    await redis.flushall();
    redis.disconnect();
    const code = await until('the ledger is filled', async () => {
      const now = await codeOf(nodes[1], key);
      return now === 'LEDGER_UNAVAILABLE' ? undefined : now;
    });
    expect(code).to.equal('answered');
    await first;
    await until(
      'the late settlement is written down',
      async () => {
        const { text } = await nodes[0].admin('GET', '/metrics');
        return (
          /^tollgate_ledger_spool_waiting 0$/m.test(text) && /spool_resent_total\{outcome="settled_late"\} 1/.test(text)
        );
      },
      30_000,
    );
    expect(await spent(key)).to.equal('0.01200000');
    expect(upstream.calls).to.have.length(3);
  });

  // Keep this test last, because it leaves one node.
  it('refuses repetitions of a call whose node was killed until its hold expires uncharged, then runs a new call', async () => {
    const { key } = await nodes[0].newCustomer('10');
    upstream.next(neverAnswer());
    upstream.always(messagesAnswer({ usage: USAGE }));
    const lost = call(nodes[0], key).catch(() => undefined);
    await upstream.call(1);
    await nodes[0].kill();
    await lost;
    expect(await codeOf(nodes[1], key)).to.equal('IDEMPOTENCY_KEY_IN_USE');
    await until('the lease has ended', async () => (await nodes[1].balance(key)).heldUsd === NOTHING, 30_000);
    expect(await codeOf(nodes[1], key)).to.equal('answered');
    expect(await codeOf(nodes[1], key)).to.equal('answered');
    expect(await spent(key)).to.equal(COST);
    expect(upstream.calls).to.have.length(2);
  });
});
