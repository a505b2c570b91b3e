import { expect } from 'chai';
import { ask } from '../support/calls';
import { startGateway, type TestGateway } from '../support/gateway';
import { type Link, linkTo } from '../support/link';
import { realStores } from '../support/stores';
import { until } from '../support/until';
import { closedPort, messagesAnswer, messagesStream, startUpstream, type TestUpstream } from '../support/upstream';

describe('Ids of objects that a vendor keeps, at two nodes,', function () {
  this.timeout(120_000);
  let upstream: TestUpstream;
  let link: Link;
  let postgresPort: number;
  let nodes: [TestGateway, TestGateway];

  before(async () => {
    upstream = await startUpstream();
    const { redisUrl, databaseUrl } = await realStores();
    const url = new URL(databaseUrl);
    postgresPort = Number(url.port);
    link = await linkTo(postgresPort);
    url.host = `127.0.0.1:${link.port}`;
    const stores = { redisUrl, databaseUrl: url.href };
    const start = () => startGateway({ stores, upstreams: { acme: { url: upstream.url } } });
    nodes = [await start(), await start()];
  });
  after(async () => {
    for (const node of nodes ?? []) await node.stop();
    await link?.stop();
    await upstream?.stop();
  });

  const create = async (node: TestGateway, key: string, id: string, stream = false) => {
    upstream.next(stream ? messagesStream({ id }) : messagesAnswer({ id }));
    const { status, text } = await node.call('/v1/messages', {
      key,
      body: ask({ thread: { type: 'create' }, stream }),
    });
    expect(status, text).to.equal(200);
  };
  const follow = (node: TestGateway, key: string, id: string) => {
    upstream.always(messagesAnswer({ id: 'msg_next' }));
    return node.call('/v1/messages', { key, body: ask({ thread: { type: 'continue', previous_message_id: id } }) });
  };

  it('are known at the other node as soon as the answer with the id has ended', async () => {
    const { key } = await nodes[0].newCustomer('10');
    const { key: stranger } = await nodes[0].newCustomer('10');
    for (let turn = 0; turn < 20; turn += 1) {
      const id = `msg_${turn}`;
      await create(nodes[0], key, id, turn % 2 === 0);
      expect((await follow(nodes[1], key, id)).status, id).to.equal(200);
      expect((await follow(nodes[1], stranger, id)).status, id).to.equal(404);
    }
  });

  it('get 503 while Postgres is unavailable, except ids that the node has just received', async () => {
    const { key } = await nodes[0].newCustomer('10');
    await create(nodes[0], key, 'msg_before');
    link.turnTo(Number(new URL(await closedPort()).port));
    link.mend();
    await until('it is away', async () => (await nodes[0].admin('GET', '/admin/v1/accounts')).status === 503);
    const { status, json, headers } = await follow(nodes[0], key, 'msg_before');
    expect([status, json.error.code]).to.deep.equal([503, 'DATABASE_UNAVAILABLE']);
    expect(Number(headers['retry-after'])).to.be.at.least(1);
    await create(nodes[0], key, 'msg_meanwhile');
    expect((await follow(nodes[0], key, 'msg_meanwhile')).status).to.equal(200);
    link.turnTo(postgresPort);
    await until('the other node knows it', async () => (await follow(nodes[1], key, 'msg_meanwhile')).status === 200);
    expect((await follow(nodes[1], key, 'msg_before')).status).to.equal(200);
  });
});
