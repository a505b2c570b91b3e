import assert from 'node:assert/strict';
import { Redis } from 'ioredis';
import { ask } from '../support/calls';
import { type Answered, MODEL, startGateway, type TestGateway } from '../support/gateway';
import { until } from '../support/until';
import { messagesAnswer, startUpstream, type TestUpstream } from '../support/upstream';

/** What a call of these tests holds, and costs: 5 output tokens. Its input is free, so that the hold is the cost. */
const COST_E8 = 7_500;
const OUTPUT_ONLY = { input: 0, output: 15, cacheWrite: 0, cacheWrite1h: 0, cacheRead: 0 };

describe('A budget of a team on two nodes that hold money in advance', function () {
  this.timeout(180_000);
  let upstream: TestUpstream;
  let one: TestGateway;
  let other: TestGateway;
  let company: Awaited<ReturnType<typeof newCompany>>;
  const options = () => ({
    upstreams: { one: { url: upstream.url, models: { [MODEL]: { price: OUTPUT_ONLY } } } },
    system: { ledger: { allowances: true } },
  });
  before(async () => {
    upstream = await startUpstream();
    upstream.always(messagesAnswer({ usage: { input: 10, output: 5 } }));
    one = await startGateway({ stores: 'real', ...options() });
    other = await startGateway({ stores: one.stores, ...options() });
  });
  after(async () => {
    await one.stop();
    await other.stop();
    await upstream.stop();
  });
  beforeEach(async () => {
    company = await newCompany();
  });

  const usd = (e8: number) => (e8 / 1e8).toFixed(8);
  const e8 = (text: string) => Math.round(Number(text) * 1e8);

  /** Sends a call. Repeats it if Redis was late on a busy machine; its hold is then given back. */
  async function call(node: TestGateway, key: string, tags?: string): Promise<Answered> {
    const headers = tags === undefined ? {} : { 'x-svc-tags': tags };
    for (;;) {
      const answer = await node.call('/v1/messages', { key, headers, body: ask({ max_tokens: 5 }) });
      if (answer.status !== 503) return answer;
    }
  }
  const codeOf = async (node: TestGateway, key: string) => {
    const { status, json } = await call(node, key);
    return status === 200 ? '200' : `${status} ${json.error.code}`;
  };
  const everywhere = (key: string) => Promise.all([codeOf(one, key), codeOf(other, key)]);
  const REFUSED = ['402 BUDGET_EXCEEDED', '402 BUDGET_EXCEEDED'];
  const ADMITTED = ['200', '200'];

  async function made(method: string, path: string, body?: object) {
    const answer = await until('the ledger takes a change', async () => {
      const given = await one.admin(method, `/admin/v1${path}`, body);
      return given.status === 503 ? undefined : given;
    });
    assert.ok(answer.status === 200 || answer.status === 201, answer.text);
    return answer.json;
  }

  /** Makes a team with 20 keys of 5 members, and a budget that covers much. */
  async function newCompany() {
    const { accountId } = await one.newCustomer('1000');
    const newTeam = async (name: string) => {
      const { id } = await made('POST', `/accounts/${accountId}/teams`, { name });
      const asked = { scope: 'team', scopeId: id, window: 'month', limitUsd: '500' };
      const budget = await made('POST', `/accounts/${accountId}/budgets`, asked);
      return { id: String(id), name, budgetId: String(budget.id) };
    };
    const team = await newTeam('research');
    const users: string[] = [];
    for (let each = 0; each < 5; each += 1) {
      const email = `${team.id}-${each}@example.com`;
      users.push((await made('POST', `/accounts/${accountId}/users`, { email, password: 'correct horse battery' })).id);
    }
    const keys: { readonly id: string; readonly key: string }[] = [];
    for (let each = 0; each < 20; each += 1) {
      const body = { name: `key ${each}`, teamId: team.id, memberId: users[each % 5] };
      keys.push(await made('POST', `/accounts/${accountId}/keys`, body));
    }
    const [first] = keys;
    assert.ok(first !== undefined);
    return { accountId, team, other: await newTeam('sales'), keys, first };
  }

  /** Calls with these keys until both nodes have money in advance. */
  async function warm(keys = company.keys, calls = 20) {
    const all = [one, other].flatMap((node) =>
      keys.flatMap(({ key }) => Array.from({ length: calls }, () => codeOf(node, key))),
    );
    assert.deepEqual([...new Set(await Promise.all(all))], ['200']);
  }

  /**
   * Makes a change that refuses further calls of these keys, while callers at both nodes call with money that the nodes have in advance. No
   * call that begins after the change was answered may be admitted.
   */
  async function duringCalls(keys: typeof company.keys, change: () => Promise<unknown>) {
    await warm(keys, 400 / keys.length);
    let isAnswered = false;
    let isDone = false;
    let made = 0;
    let late = 0;
    const caller = async (node: TestGateway, index: number) => {
      for (let next = index; !isDone; next += 1) {
        const wasAnswered = isAnswered;
        const { status } = await call(node, keys[next % keys.length]?.key ?? '');
        made += 1;
        if (wasAnswered && status === 200) late += 1;
      }
    };
    const callers = [one, other].flatMap((node) => Array.from({ length: 10 }, (_, index) => caller(node, 2 * index)));
    await until('all callers are at work', () => made > 100);
    await change();
    isAnswered = true;
    const then = made;
    await until('all callers have begun calls after it', () => made > then + 100);
    isDone = true;
    await Promise.all(callers);
    assert.equal(late, 0, 'calls were admitted after the answer');
  }

  /** Sets the team's budget to what is spent and this much more. */
  async function leave(moreE8: number, { budgetId } = company.team) {
    const { spentUsd } = await made('GET', `/budgets/${budgetId}`);
    const limitUsd = usd(e8(spentUsd) + moreE8);
    await made('PATCH', `/budgets/${budgetId}`, { limitUsd });
    return limitUsd;
  }

  it('for ten calls admits exactly ten of 200 at once, from 20 keys of 5 members, and refuses none while money is there', async () => {
    const { team, keys, first } = company;
    await warm();
    const limitUsd = await leave(10 * COST_E8);
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, index) => call(index % 2 === 0 ? one : other, keys[index % 20]?.key ?? '')),
    );
    const refused = answers.filter(({ status }) => status !== 200);
    assert.equal(refused.length, 190);
    const { resetsAt } = await made('GET', `/budgets/${team.budgetId}`);
    for (const { status, json } of refused) {
      assert.deepEqual([status, json.error.code], [402, 'BUDGET_EXCEEDED']);
      const { spentUsd, heldUsd, ...details } = json.error.details;
      assert.deepEqual(details, { scope: 'team', name: 'research', window: 'month', limitUsd, resetsAt });
      assert.ok(e8(limitUsd) - e8(spentUsd) - e8(heldUsd) < COST_E8, 'no money is there');
    }
    await until('all is settled', async () => {
      const { spentUsd, heldUsd } = await made('GET', `/budgets/${team.budgetId}`);
      return spentUsd === limitUsd && heldUsd === '0.00000000';
    });
    await leave(COST_E8);
    assert.equal(await codeOf(other, first.key), '200', 'a raised budget admits the next call at once');
    assert.deepEqual(await everywhere(first.key), REFUSED);
  });

  it('for ten calls of each customer admits exactly ten of 200 at once, and is so for both nodes when it is answered', async () => {
    const { accountId, keys, first } = company;
    await warm();
    const asked = { scope: 'tag', tag: 'customer', window: 'day', limitUsd: usd(10 * COST_E8) };
    await made('POST', `/accounts/${accountId}/budgets`, asked);
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, index) =>
        call(index % 2 === 0 ? one : other, keys[index % 20]?.key ?? '', `project=a,customer=${index % 2}`),
      ),
    );
    const refused = answers.filter(({ status }) => status !== 200);
    assert.equal(refused.length, 180);
    const names = refused.map(({ status, json }) => `${status} ${json.error.code} ${json.error.details.name}`);
    assert.deepEqual([...new Set(names)].sort(), ['402 BUDGET_EXCEEDED customer=0', '402 BUDGET_EXCEEDED customer=1']);
    assert.deepEqual(await everywhere(first.key), ADMITTED);
    assert.equal((await call(other, first.key, 'customer=2')).status, 200);
    const value = { ...asked, value: '1', limitUsd: usd(11 * COST_E8) };
    const { id } = await made('POST', `/accounts/${accountId}/budgets`, value);
    assert.equal((await call(other, first.key, 'customer=1')).status, 200, "a value's own budget comes first");
    assert.equal((await call(one, first.key, 'customer=1')).status, 402);
    await until('all is settled', async () => {
      const { spentUsd, heldUsd } = await made('GET', `/budgets/${id}`);
      return spentUsd === usd(11 * COST_E8) && heldUsd === '0.00000000';
    });
  });

  it('that is set, lowered or deleted is so on both nodes when it is answered', async () => {
    const { accountId, team, keys, first } = company;
    for (let round = 0; round < 3; round += 1) {
      await duringCalls(keys, () => made('PATCH', `/budgets/${team.budgetId}`, { limitUsd: usd(COST_E8) }));
      assert.deepEqual(await everywhere(first.key), REFUSED);
      await made('PATCH', `/budgets/${team.budgetId}`, { limitUsd: '500' });
    }
    await made('PATCH', `/budgets/${team.budgetId}`, { limitUsd: '0' });
    assert.deepEqual(await everywhere(first.key), REFUSED);
    await made('DELETE', `/budgets/${team.budgetId}`);
    assert.deepEqual(await everywhere(first.key), ADMITTED);
    const asked = { scope: 'account', window: 'day', limitUsd: '0' };
    await duringCalls(keys, () => made('POST', `/accounts/${accountId}/budgets`, asked));
    assert.deepEqual(await everywhere(first.key), REFUSED);
  });

  it('holds for a key that is moved to the team, on both nodes when the move is answered', async () => {
    const { team, other: sales, first } = company;
    await leave(0, sales);
    for (let round = 0; round < 3; round += 1) {
      await duringCalls([first], () => made('PATCH', `/keys/${first.id}`, { teamId: sales.id }));
      const refused = await Promise.all([call(one, first.key), call(other, first.key)]);
      for (const { status, json } of refused) assert.deepEqual([status, json.error.details.name], [402, 'sales']);
      await made('PATCH', `/keys/${first.id}`, { teamId: team.id });
      assert.deepEqual(await everywhere(first.key), ADMITTED);
    }
    await until('nothing of the other team is held', async () => {
      const { spentUsd, heldUsd } = await made('GET', `/budgets/${sales.budgetId}`);
      return spentUsd === '0.00000000' && heldUsd === '0.00000000';
    });
  });

  it('still refuses after Redis was emptied, and the ledger has no violations', async () => {
    const { accountId, first, team } = company;
    await warm([first], 50);
    await made('PATCH', `/keys/${first.id}`, { dailyLimit: '400' });
    await leave(0);
    assert.deepEqual(await everywhere(first.key), REFUSED);
    const found = async () => (await one.admin('GET', `/admin/v1/ledger/verify?account=${accountId}`)).json.items;
    await until('all is written', async () => (await found())?.length === 0);
    const { spentUsd } = await made('GET', `/budgets/${team.budgetId}`);
    if (!('redisUrl' in one.stores)) throw new Error('the stores are real');
    const redis = new Redis(one.stores.redisUrl);
    await redis.flushall();
    await redis.quit();
    const third = await startGateway({ stores: one.stores, ...options() });
    try {
      assert.equal(await codeOf(third, first.key), '402 BUDGET_EXCEEDED');
      assert.deepEqual(await everywhere(first.key), REFUSED);
      const after = await made('GET', `/budgets/${team.budgetId}`);
      assert.equal(after.spentUsd, spentUsd);
      const ofKey = await made('GET', `/accounts/${accountId}/budgets?scope=key`);
      assert.deepEqual([ofKey.items[0].limitUsd, ofKey.items[0].spentUsd], ['400.00000000', spentUsd]);
      assert.deepEqual(await found(), []);
    } finally {
      await third.stop();
    }
  });
});
