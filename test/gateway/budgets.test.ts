import assert from 'node:assert/strict';
import { ask } from '../support/calls';
import { MODEL } from '../support/gateway';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { messagesAnswer, when } from '../support/upstream';

/** What a call of these tests holds, and costs: 5 output tokens. Its input is free, so that the hold is the cost. */
const COST_E8 = 7_500;
const OUTPUT_ONLY = { input: 0, output: 15, cacheWrite: 0, cacheWrite1h: 0, cacheRead: 0 };
const PASSWORD = 'correct horse battery';

describe('A budget', function () {
  this.timeout(120_000);
  const upstream = useUpstream();
  const gateway = useGateway(() => ({
    upstreams: { one: { url: upstream.url, models: { [MODEL]: { price: OUTPUT_ONLY } } } },
  }));
  beforeEach(() => {
    upstream.reset();
    upstream.always(messagesAnswer({ usage: { input: 10, output: 5 } }));
  });

  const usd = (e8: number) => (e8 / 1e8).toFixed(8);
  const call = (key: string) => gateway.call('/v1/messages', { key, body: ask({ max_tokens: 5 }) });
  const made = async (method: string, path: string, body?: object, status = 201) => {
    const answer = await gateway.admin(method, `/admin/v1${path}`, body);
    assert.equal(answer.status, status, answer.text);
    return answer.json;
  };
  const people = { made: 0 };
  const newUser = async (accountId: string) => {
    people.made += 1;
    const email = `budget-${process.pid}-${Date.now()}-${people.made}@example.com`;
    const { id } = await made('POST', `/accounts/${accountId}/users`, { email, password: PASSWORD });
    return { id, email };
  };
  const settled = (key: string) =>
    until('nothing is held', async () => (await gateway.balance(key)).heldUsd === '0.00000000');

  /** Makes an account with a key of a team and a member. */
  async function newCompany() {
    const { accountId, keyId, key } = await gateway.newCustomer('10');
    const team = await made('POST', `/accounts/${accountId}/teams`, { name: 'research' });
    const user = await newUser(accountId);
    await made('PUT', `/teams/${team.id}/members/${user.id}`, {}, 200);
    await made('PATCH', `/keys/${keyId}`, { teamId: team.id, memberId: user.id }, 200);
    return { accountId, keyId, key, teamId: String(team.id), user };
  }

  for (const [scope, window] of [
    ['account', 'day'],
    ['team', 'week'],
    ['member', 'month'],
    ['team', 'total'],
  ] as const) {
    it(`of ${scope} and ${window} refuses the call that it does not cover, and names itself in the answer`, async () => {
      const { accountId, key, teamId, user } = await newCompany();
      const scopeId = { account: undefined, team: teamId, member: user.id }[scope];
      const name = { account: 'customer', team: 'research', member: user.email }[scope];
      assert.equal((await call(key)).status, 200);
      await settled(key);
      const limitUsd = usd(2 * COST_E8);
      const asked = { scope, window, limitUsd, ...(scopeId !== undefined && { scopeId }) };
      const budget = await made('POST', `/accounts/${accountId}/budgets`, asked);
      assert.equal(budget.spentUsd, usd(COST_E8), 'it counts what was spent before it');
      assert.equal((await call(key)).status, 200);
      await settled(key);
      const refused = await call(key);
      assert.equal(refused.status, 402, refused.text);
      const { type, code, details } = refused.json.error;
      assert.deepEqual([type, code], ['Payment Required', 'BUDGET_EXCEEDED']);
      const { resetsAt } = await made('GET', `/budgets/${budget.id}`, undefined, 200);
      const spentUsd = usd(2 * COST_E8);
      assert.deepEqual(details, { scope, name, window, limitUsd, spentUsd, heldUsd: '0.00000000', resetsAt });
      assert.equal(resetsAt === null, window === 'total');
      await made('PATCH', `/budgets/${budget.id}`, { limitUsd: usd(3 * COST_E8) }, 200);
      assert.equal((await call(key)).status, 200);
      await settled(key);
      assert.equal((await call(key)).status, 402);
      await made('DELETE', `/budgets/${budget.id}`, undefined, 200);
      assert.equal((await call(key)).status, 200);
    });
  }

  it('names its account or team as they are called when it refuses a call', async () => {
    const { accountId, key, teamId } = await newCompany();
    const budget = { window: 'day', limitUsd: '0' };
    const { id } = await made('POST', `/accounts/${accountId}/budgets`, { scope: 'team', scopeId: teamId, ...budget });
    await made('PATCH', `/teams/${teamId}`, { name: 'new name of the team' }, 200);
    assert.equal((await call(key)).json.error.details.name, 'new name of the team');
    await made('DELETE', `/budgets/${id}`, undefined, 200);
    await made('POST', `/accounts/${accountId}/budgets`, { scope: 'account', ...budget });
    await made('PATCH', `/accounts/${accountId}`, { name: 'new name of the account' }, 200);
    assert.equal((await call(key)).json.error.details.name, 'new name of the account');
  });

  it('of a key and a week is a limit of the key', async () => {
    const { accountId, keyId, key } = await newCompany();
    const asked = { scope: 'key', scopeId: keyId, window: 'week', limitUsd: usd(COST_E8) };
    await made('POST', `/accounts/${accountId}/budgets`, asked);
    assert.equal((await call(key)).status, 200);
    await settled(key);
    const refused = await call(key);
    assert.deepEqual([refused.status, refused.json.error.code], [402, 'KEY_LIMIT_EXCEEDED']);
    assert.equal(refused.json.error.details.availableUsd, '0.00000000');
  });

  it('of a team for 10 calls admits exactly 10 of 200 at once, with 20 keys of 5 members', async () => {
    const { accountId, teamId } = await newCompany();
    const users: string[] = [];
    for (let each = 0; each < 5; each += 1) users.push((await newUser(accountId)).id);
    const keys: string[] = [];
    for (let each = 0; each < 20; each += 1) {
      const body = { name: `key ${each}`, teamId, memberId: users[each % 5] };
      keys.push((await made('POST', `/accounts/${accountId}/keys`, body)).key);
    }
    const asked = { scope: 'team', scopeId: teamId, window: 'day', limitUsd: usd(10 * COST_E8) };
    await made('POST', `/accounts/${accountId}/budgets`, asked);
    let open = (): void => undefined;
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    upstream.always(when(opened, messagesAnswer({ usage: { input: 10, output: 5 } })));
    let refused = 0;
    const answers = Array.from({ length: 200 }, async (_, index) => {
      // A busy machine may answer 503 and give the hold back. The call is then repeated.
      for (;;) {
        const answer = await call(keys[index % 20] ?? '');
        if (answer.status === 503) continue;
        if (answer.status === 402) refused += 1;
        return answer;
      }
    });
    await until('each is refused or open', () => refused + upstream.calls.length >= 200, 30_000);
    open();
    const all = await Promise.all(answers);
    assert.equal(all.filter(({ status }) => status === 200).length, 10);
    for (const { json } of all.filter(({ status }) => status !== 200))
      assert.deepEqual([json.error.code, json.error.details.heldUsd], ['BUDGET_EXCEEDED', usd(10 * COST_E8)]);
  });

  it('of a tag refuses the calls of the value that has spent it, names the value, and covers each other value', async () => {
    const { accountId, key } = await newCompany();
    const budget = await made('POST', `/accounts/${accountId}/budgets`, {
      scope: 'tag',
      tag: 'end_user',
      window: 'week',
      limitUsd: usd(COST_E8),
    });
    assert.deepEqual([budget.name, budget.value, budget.spentUsd], ['end_user', null, null]);
    const callFor = async (user: string) => {
      const body = ask({ max_tokens: 5, metadata: { user_id: user } });
      const answer = await gateway.call('/v1/messages', { key, body });
      await settled(key);
      return answer;
    };
    assert.equal((await callFor('u-1')).status, 200);
    const refused = await callFor('u-1');
    assert.equal(refused.status, 402, refused.text);
    const { resetsAt, ...details } = refused.json.error.details;
    assert.equal(resetsAt, budget.resetsAt);
    const spent = { limitUsd: usd(COST_E8), spentUsd: usd(COST_E8), heldUsd: '0.00000000' };
    assert.deepEqual(details, { scope: 'tag', name: 'end_user=u-1', window: 'week', ...spent });
    assert.equal((await callFor('u-2')).status, 200);
    assert.equal((await call(key)).status, 200, 'a call without the tag');
    for (const tag of ['customer', 'project'])
      await made('POST', `/accounts/${accountId}/budgets`, { scope: 'tag', tag, window: 'day', limitUsd: '1' });
    const body = ask({ max_tokens: 5, metadata: { user_id: 'u-3' } });
    const three = await gateway.call('/v1/messages', { key, headers: { 'x-svc-tags': 'customer=1,project=a' }, body });
    assert.deepEqual([three.status, three.json.error.code], [400, 'TOO_MANY_LIMITED_TAGS']);
  });

  it('counts calls in the team that the key had when they began, and later ones in its new team', async () => {
    const { accountId, keyId, key, teamId } = await newCompany();
    const other = await made('POST', `/accounts/${accountId}/teams`, { name: 'sales' });
    const limitUsd = usd(10 * COST_E8);
    const budget = async (scopeId: string) =>
      (await made('POST', `/accounts/${accountId}/budgets`, { scope: 'team', scopeId, window: 'month', limitUsd })).id;
    const budgets = [await budget(teamId), await budget(other.id)];
    const spent = async () =>
      Promise.all(budgets.map(async (id) => (await made('GET', `/budgets/${id}`, undefined, 200)).spentUsd));
    await call(key);
    await made('PATCH', `/keys/${keyId}`, { teamId: other.id }, 200);
    await call(key);
    await call(key);
    await settled(key);
    assert.deepEqual(await spent(), [usd(COST_E8), usd(2 * COST_E8)]);
    await made('PATCH', `/keys/${keyId}`, { teamId: null }, 200);
    await call(key);
    await settled(key);
    assert.deepEqual(await spent(), [usd(COST_E8), usd(2 * COST_E8)]);
  });
});
