import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import type { Knex } from 'knex';
import { ask, PATH } from '../support/calls';
import { startGateway, type TestGateway } from '../support/gateway';
import { watchCommands } from '../support/redis-monitor';
import { databaseOf, type RealStores, realStores } from '../support/stores';
import { until } from '../support/until';
import { messagesAnswer, startUpstream, type TestUpstream } from '../support/upstream';

/** The rest begins ten seconds after the last request; the loops' last usual pauses end soon after. */
const RESTS_AFTER_MS = 20_000;
const COUNTED_MS = 30_000;

describe('A gateway without calls', function () {
  this.timeout(120_000);
  let upstream: TestUpstream;
  let stores: RealStores;
  let gateway: TestGateway;
  let database: Knex;

  before(async () => {
    upstream = await startUpstream();
    stores = await realStores();
    gateway = await startGateway({ stores, upstreams: { acme: { url: upstream.url } } });
    database = await databaseOf(stores);
  });
  after(async () => {
    await database?.destroy();
    await gateway?.stop();
    await upstream?.stop();
  });

  const transactions = async () => {
    const { rows } = await database.raw<{ rows: { count: string }[] }>(
      'SELECT xact_commit::text AS count FROM pg_stat_database WHERE datname = current_database()',
    );
    return Number(rows[0]?.count);
  };
  const reportedAt = async () => {
    const row = await database('config_nodes').max<{ seen: Date }>('seen_at as seen').first();
    return row?.seen.getTime() ?? 0;
  };

  it('rarely queries Redis and Postgres, even while health probes arrive, and serves the next call as usual', async () => {
    const { key } = await gateway.newCustomer('1.00');
    upstream.always(messagesAnswer({ usage: { input: 10, output: 5 } }));
    expect((await gateway.call(PATH.messages, { key, body: ask() })).status).to.equal(200);
    const probing = setInterval(() => void gateway.call('/healthz'), 1_000);
    await sleep(RESTS_AFTER_MS);
    let commands = 0;
    const watching = await watchCommands(stores.redisUrl, ({ source }) => {
      if (source !== 'lua') commands += 1;
    });
    const before = await transactions();
    await sleep(COUNTED_MS);
    const asked = (await transactions()) - before;
    watching.stop();
    clearInterval(probing);
    // A process that does not rest asks Postgres 80 times and Redis 2,000 times.
    expect(asked).to.be.within(1, 50);
    expect(commands).to.be.within(1, 900);
    const seen = await reportedAt();
    expect((await gateway.call(PATH.messages, { key, body: ask() })).status).to.equal(200);
    await until('its loops run again', async () => (await reportedAt()) > seen);
  });
});
