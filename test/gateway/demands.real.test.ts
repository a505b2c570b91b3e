import assert from 'node:assert/strict';
import { ask } from '../support/calls';
import { startGateway, type TestGateway } from '../support/gateway';
import { messagesAnswer, startUpstream, type TestUpstream } from '../support/upstream';

describe('Demands of a key, a team and an account on two nodes that hold money in advance', function () {
  this.timeout(120_000);
  let upstream: TestUpstream;
  let one: TestGateway;
  let other: TestGateway;
  before(async () => {
    upstream = await startUpstream();
    upstream.always(messagesAnswer());
    const upstreams = {
      us: { url: upstream.url, tier: 'official', facts: { region: 'us' } },
      eu: { url: upstream.url, facts: { region: 'eu', trains: 'no' } },
    };
    const options = { upstreams, system: { ledger: { allowances: true } } };
    one = await startGateway({ stores: 'real', ...options });
    other = await startGateway({ stores: one.stores, ...options });
  });
  after(async () => {
    await one.stop();
    await other.stop();
    await upstream.stop();
  });

  it('hold at both nodes once each change is answered, in both directions', async () => {
    const { accountId, key, keyId } = await one.newCustomer('100');
    const call = async (node: TestGateway): Promise<string> => {
      const { status, json, headers } = await node.call('/v1/messages', { key, body: ask() });
      // On a busy machine Redis, a body or the upstream may be late. The call says nothing then.
      if ([408, 503, 504].includes(status)) return call(node);
      return headers['x-routing-provider'] ?? json.error.code;
    };
    const everywhere = async () =>
      new Set(await Promise.all([one, other].flatMap((node) => Array.from({ length: 6 }, () => call(node)))));
    const change = async (node: TestGateway, method: string, path: string, body: object) => {
      const answer = await node.admin(method, `/admin/v1${path}`, body);
      assert(answer.status < 300, answer.text);
      return answer.json;
    };
    assert.deepEqual(await everywhere(), new Set(['us']));
    await change(one, 'PATCH', `/accounts/${accountId}`, { require: 'region=eu' });
    assert.deepEqual(await everywhere(), new Set(['eu']));
    const team = await change(other, 'POST', `/accounts/${accountId}/teams`, { name: 'research' });
    await change(one, 'PATCH', `/teams/${team.id}`, { require: 'region=eu,us; trains=no' });
    await change(other, 'PATCH', `/keys/${keyId}`, { teamId: team.id, require: 'retention=none' });
    assert.deepEqual(await everywhere(), new Set(['NO_CANDIDATE_ALLOWED']));
    await change(one, 'PATCH', `/keys/${keyId}`, { require: null });
    assert.deepEqual(await everywhere(), new Set(['eu']));
    await change(other, 'PATCH', `/accounts/${accountId}`, { require: null });
    await change(one, 'PATCH', `/teams/${team.id}`, { require: null });
    assert.deepEqual(await everywhere(), new Set(['us']));
  });
});
