import { expect } from 'chai';
import { startGateway } from '../support/gateway';
import { startPostgres } from '../support/postgres';
import { startRedis } from '../support/redis';

describe('A stop', function () {
  this.timeout(120_000);

  it('ends the process although Redis and Postgres stay unreachable', async () => {
    const [redis, postgres] = await Promise.all([startRedis(), startPostgres()]);
    const stores = { redisUrl: redis.url, databaseUrl: await postgres.createDatabase() };
    const gateway = await startGateway({ stores, upstreams: { acme: { url: 'http://127.0.0.1:9' } } });
    await gateway.newCustomer('10');
    await Promise.all([redis.stop(), postgres.stop()]);
    const code = await gateway.stop();
    expect(code, gateway.output()).to.be.oneOf([0, 1]);
  });
});
