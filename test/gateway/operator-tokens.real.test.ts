import assert from 'node:assert/strict';
import { startGateway, type TestGateway } from '../support/gateway';

describe('Operator tokens of several nodes', function () {
  this.timeout(120_000);
  let one: TestGateway;
  let other: TestGateway;
  before(async () => {
    const upstreams = { acme: { url: 'http://127.0.0.1:9' } };
    one = await startGateway({ stores: 'real', upstreams });
    other = await startGateway({ stores: one.stores, upstreams });
  });
  after(async () => {
    await one.stop();
    await other.stop();
  });

  it('are accepted by every node once they are created, and by none once their revocation was answered', async () => {
    for (let round = 0; round < 20; round += 1) {
      const made = await one.admin('POST', '/admin/v1/tokens', { name: `t${round}`, role: 'owner', expiresAt: null });
      const headers = { authorization: `Bearer ${made.json.token}` };
      for (const node of [one, other])
        assert.equal((await node.admin('GET', '/admin/v1/accounts', undefined, headers)).status, 200);
      const revoked = await other.admin('DELETE', `/admin/v1/tokens/${made.json.id}`, undefined, headers);
      assert.equal(revoked.status, 200);
      for (const node of [one, other])
        assert.equal((await node.admin('GET', '/admin/v1/accounts', undefined, headers)).status, 401);
    }
  });
});
