import { expect } from 'chai';
import { Redis } from 'ioredis';
import { startHealthExchange } from '../../../core/health/exchange';
import { UpstreamHealth } from '../../../core/health/health';
import { FAILED, sampleCandidate } from '../../support/catalog-samples';
import { quiet } from '../../support/databases';
import { startRedis, type TestRedis } from '../../support/redis';
import { until } from '../../support/until';

const candidate = sampleCandidate('acme');
const BROKEN = { outcome: 'reset', status: undefined, verdict: 'next', retryAfterMs: undefined } as const;

describe('nodes that exchange the health of upstreams', function () {
  this.timeout(30_000);
  let redis: TestRedis;
  const stops: (() => Promise<void>)[] = [];

  before(async () => {
    redis = await startRedis();
  });
  after(() => redis.stop());
  afterEach(async () => {
    for (const stop of stops.splice(0)) await stop();
  });

  async function node(): Promise<UpstreamHealth> {
    const connection = new Redis(redis.url, { retryStrategy: () => 50, maxRetriesPerRequest: 0 });
    connection.on('error', () => undefined);
    const health = new UpstreamHealth();
    const stop = startHealthExchange({ redis: connection, health, log: quiet });
    stops.push(async () => {
      await stop();
      connection.disconnect();
    });
    return health;
  }
  const listeners = async () => {
    const client = new Redis(redis.url);
    const [, count] = (await client.pubsub('NUMSUB', 'tollgate:upstream-health:1')) as [string, number];
    client.disconnect();
    return count;
  };
  const allListen = (count: number) => until(`${count} nodes listen`, async () => (await listeners()) === count);
  const isOut = (health: UpstreamHealth) => health.upstream('acme').ejection.outUntilMs !== undefined;
  const eject = (health: UpstreamHealth) => {
    for (let call = 0; call < 5; call += 1) health.failed(candidate, BROKEN, FAILED);
  };

  it("apply each other's ejections, and the ends of these, within a second", async () => {
    const [one, two] = [await node(), await node()];
    await allListen(2);
    eject(one);
    await until('the other leaves it out', () => isOut(two), 1_000);
    one.enable('acme');
    await until('the other asks it again', () => !isOut(two), 1_000);
  });

  it('apply the measurements that other nodes published', async () => {
    const [one, two] = [await node(), await node()];
    await allListen(2);
    one.answered(candidate, { accountId: 'one', ms: 321, stream: true });
    await until('the other knows it', () => two.upstream('acme').latencies.stream.value === 321, 2_000);
    expect(one.upstream('acme').latencies.stream.value, 'nobody hears itself').to.equal(321);
  });

  it('request the list of ejected upstreams when they start', async () => {
    const one = await node();
    await allListen(1);
    eject(one);
    const two = await node();
    await until('the new one leaves it out', () => isOut(two));
  });

  it('apply events again after an outage of Redis', async () => {
    const [one, two] = [await node(), await node()];
    await allListen(2);
    const client = new Redis(redis.url);
    await client.client('KILL', 'TYPE', 'pubsub');
    eject(one);
    client.disconnect();
    await until('the other leaves it out', () => isOut(two));
  });

  it('ignore messages in an unknown format', async () => {
    const [one, two] = [await node(), await node()];
    await allListen(2);
    const client = new Redis(redis.url);
    const other = ['', '{', 'null', '{"node":"x"}', '{"node":"x","events":7}', '{"node":"x","events":[null]}'];
    for (const text of other) await client.publish('tollgate:upstream-health:1', text);
    client.disconnect();
    eject(one);
    await until('the other leaves it out', () => isOut(two));
  });
});
