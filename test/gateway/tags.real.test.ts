import assert from 'node:assert/strict';
import { ask } from '../support/calls';
import { startGateway, type TestGateway } from '../support/gateway';
import { messagesAnswer, startUpstream, type TestUpstream } from '../support/upstream';

describe('Required tags on two nodes that hold money in advance', function () {
  this.timeout(120_000);
  let upstream: TestUpstream;
  let one: TestGateway;
  let other: TestGateway;
  before(async () => {
    upstream = await startUpstream();
    upstream.always(messagesAnswer());
    const options = { upstreams: { one: { url: upstream.url } }, system: { ledger: { allowances: true } } };
    one = await startGateway({ stores: 'real', ...options });
    other = await startGateway({ stores: one.stores, ...options });
  });
  after(async () => {
    await one.stop();
    await other.stop();
    await upstream.stop();
  });

  it('hold at both nodes once the change of the key or the team is answered, and no longer once they are removed', async () => {
    const { accountId, key, keyId } = await one.newCustomer('100');
    const call = async (node: TestGateway, tags?: string): Promise<string> => {
      const headers: Record<string, string> = tags === undefined ? {} : { 'x-svc-tags': tags };
      const { status, text } = await node.call('/v1/messages', { key, headers, body: ask() });
      // Redis may be late on a busy machine.
      if (status === 503) return call(node, tags);
      return status === 200 ? 'answered' : `${status} ${/requires the tag \w+/.exec(text)?.[0] ?? text}`;
    };
    const everywhere = async (tags?: string) =>
      new Set(await Promise.all([one, other].flatMap((node) => Array.from({ length: 20 }, () => call(node, tags)))));
    const made = async (node: TestGateway, method: string, path: string, body: object) => {
      const answer = await node.admin(method, `/admin/v1${path}`, body);
      assert(answer.status < 300, answer.text);
      return answer.json;
    };
    const answered = new Set(['answered']);
    const team = await made(one, 'POST', `/accounts/${accountId}/teams`, { name: 'research' });
    await made(other, 'PATCH', `/keys/${keyId}`, { teamId: team.id });
    assert.deepEqual(await everywhere(), answered);
    await made(one, 'PATCH', `/teams/${team.id}`, { requiredTags: ['customer'] });
    assert.deepEqual(await everywhere(), new Set(['400 requires the tag customer']));
    assert.deepEqual(await everywhere('customer=1'), answered);
    await made(other, 'PATCH', `/keys/${keyId}`, { requiredTags: ['project'] });
    assert.deepEqual(await everywhere('customer=1'), new Set(['400 requires the tag project']));
    await made(one, 'PATCH', `/keys/${keyId}`, { requiredTags: null });
    await made(other, 'PATCH', `/teams/${team.id}`, { requiredTags: null });
    assert.deepEqual(await everywhere(), answered);
  });
});
