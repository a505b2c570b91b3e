import { expect } from 'chai';
import { Redis } from 'ioredis';
import { ask } from '../support/calls';
import { startGateway } from '../support/gateway';
import { startPostgres } from '../support/postgres';
import { startRedis } from '../support/redis';
import { until } from '../support/until';
import { messagesStream, startUpstream } from '../support/upstream';

describe('A reserve (the operation that takes the hold of a call)', () => {
  it("that Redis executes after the reserve's timeout has its hold returned, and the call gets 503", async () => {
    const [redis, postgres] = await Promise.all([startRedis(), startPostgres()]);
    const stores = { redisUrl: redis.url, databaseUrl: await postgres.createDatabase() };
    const upstream = await startUpstream();
    const gateway = await startGateway({ stores, upstreams: { acme: { url: upstream.url } } });
    const client = new Redis(redis.url);
    try {
      const { key } = await gateway.newCustomer('10');
      upstream.always(messagesStream());
      expect((await gateway.call('/v1/messages', { key, body: ask({ stream: true }) })).status).to.equal(200);
      await client.call('CLIENT', 'PAUSE', '600', 'WRITE');
      const answer = await gateway.call('/v1/messages', { key, body: ask() });
      expect(answer.status).to.equal(503);
      expect(answer.json.error.code).to.equal('LEDGER_UNAVAILABLE');
      await until('nothing is held', async () => (await gateway.balance(key)).heldUsd === '0.00000000');
      expect(upstream.calls).to.have.length(1);
    } finally {
      client.disconnect();
      await gateway.stop();
      await redis.stop();
      await postgres.stop();
      await upstream.stop();
    }
  });
});
