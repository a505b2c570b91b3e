import { expect } from 'chai';
import { ask } from '../support/calls';
import { type Link, linkTo } from '../support/link';
import { realStores } from '../support/stores';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { closedPort, messagesAnswer } from '../support/upstream';

describe('While Postgres is away', () => {
  const upstream = useUpstream();
  let link: Link;
  let postgresPort: number;
  let key: string;

  const gateway = useGateway(async () => {
    upstream.always(messagesAnswer());
    const { redisUrl, databaseUrl } = await realStores();
    const url = new URL(databaseUrl);
    postgresPort = Number(url.port);
    link = await linkTo(postgresPort);
    url.host = `127.0.0.1:${link.port}`;
    const stores = { redisUrl, databaseUrl: url.href };
    return { stores, upstreams: { acme: { url: upstream.url } } };
  });

  before(async () => {
    ({ key } = await gateway.newCustomer('10'));
  });
  after(async () => {
    await link?.stop();
  });
  afterEach(() => giveBack());

  /** Ends connections to Postgres and refuses new ones. */
  const takeAway = async () => {
    link.turnTo(Number(new URL(await closedPort()).port));
    link.mend();
  };
  const giveBack = () => link?.turnTo(postgresPort);
  const isAway = async () => (await gateway.admin('GET', '/admin/v1/accounts')).status === 503;
  const isBack = async () => (await gateway.admin('GET', '/admin/v1/accounts')).status === 200;

  it('operators get 503 with the reason and Retry-After, while calls are still served', async () => {
    await takeAway();
    for (const path of ['/admin/v1/accounts', '/admin/v1/usage', '/admin/v1/audit']) {
      const answer = await gateway.admin('GET', path);
      expect(answer.status, answer.text).to.equal(503);
      expect(answer.json.error).to.include({ type: 'server_error', code: 'DATABASE_UNAVAILABLE', retryable: true });
      expect(Number(answer.headers['retry-after'])).to.be.at.least(1);
    }
    expect((await gateway.admin('POST', '/admin/v1/accounts', { name: 'new' })).status).to.equal(503);
    // On a busy machine Redis may be too slow, and the gateway refuses a call. The test repeats it.
    const isServed = async () => (await gateway.call('/v1/messages', { key, body: ask() })).status === 200;
    await until('a call is served', isServed);
    giveBack();
    await until('operators are answered', isBack);
  });

  it('connections that hang are closed and reported, and records are written again afterwards', async function () {
    this.timeout(150_000);
    const before = gateway.output().length;
    link.silence();
    await until('it is reported', () => gateway.output().slice(before).includes('Postgres is unreachable'), 60_000);
    await until('operators are answered', isBack, 60_000);
    const answer = await gateway.call('/v1/messages', { key, body: ask() });
    await gateway.record(key, String(answer.headers['x-svc-request-id']));
  });

  it('the log gets one line at the failure, one at the recovery, and none from a database library', async () => {
    const before = gateway.output().length;
    await takeAway();
    for (let round = 0; round < 20; round += 1) await until('the database is away', isAway);
    giveBack();
    await until('operators are answered', isBack);
    await until('the log says so', () => gateway.output().slice(before).includes('Postgres is reachable again'));
    const lines = gateway.output().slice(before).trim().split('\n');
    const from = (level: number) => lines.map((line) => JSON.parse(line)).filter((line) => line.level >= level);
    expect(from(30).filter(({ msg }) => /knex/i.test(msg))).to.deep.equal([]);
    const told = from(30).filter(({ msg }) => /Postgres is (unreachable|reachable again)/.test(msg));
    expect(told.map(({ level }) => level)).to.deep.equal([50, 30]);
    expect(from(40).length, lines.join('\n')).to.equal(1);
  });
});
