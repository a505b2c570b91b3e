import assert from 'node:assert/strict';
import { newId } from '../../core/base/ids';
import { ask, PATH } from '../support/calls';
import { operate } from '../support/command-line';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { messagesAnswer } from '../support/upstream';

describe('the command line', () => {
  const upstream = useUpstream();
  const gateway = useGateway(() => ({ upstreams: { acme: { url: upstream.url } } }));
  beforeEach(() => {
    upstream.reset();
    upstream.always(messagesAnswer({ usage: { input: 100, output: 50 } }));
  });

  const tollgate = (...args: string[]) => operate(gateway, args);
  const json = async (...args: string[]) => {
    const { status, out, notes } = await tollgate('--json', ...args);
    assert.equal(status, 0, notes);
    return JSON.parse(out);
  };
  const columnsOf = (out: string) => (out.split('\n')[0] ?? '').split(/ {2,}/);
  const newUser = async (accountId: string): Promise<string> =>
    (await json('users', 'create', accountId, `${newId()}@example.com`)).id;

  it('makes, renames, lists and removes a team, and adds a member to it and removes the member', async () => {
    const { accountId } = await gateway.newCustomer('1');
    const userId = await newUser(accountId);
    const made = await json('teams', 'create', accountId, 'search');
    assert.deepEqual(
      [made.accountId, made.name, made.members, typeof made.createdAt],
      [accountId, 'search', [], 'string'],
    );
    assert.equal((await json('teams', 'update', made.id, '--name', 'find')).name, 'find');
    assert.deepEqual((await json('teams', 'add', made.id, userId)).members, [userId]);
    const shown = await tollgate('teams', 'list', accountId);
    assert.deepEqual(columnsOf(shown.out), ['id', 'name', 'members', 'created']);
    assert.match(shown.out, new RegExp(`^${made.id} +find +${userId} +${made.createdAt}$`, 'm'));
    assert.deepEqual((await json('teams', 'leave', made.id, userId)).members, []);
    assert.equal((await json('teams', 'remove', made.id)).id, made.id);
    assert.deepEqual((await json('teams', 'list', accountId)).items, []);
  });

  it('invites, lists, changes and removes members', async () => {
    const { accountId } = await gateway.newCustomer('1');
    const owner = await newUser(accountId);
    const { id: team } = await json('teams', 'create', accountId, 'search');
    const email = `${newId()}@example.com`;
    const invited = await json('members', 'invite', accountId, email, '--role', 'viewer', '--teams', team);
    assert.deepEqual([invited.email, invited.role, invited.teamIds], [email, 'viewer', [team]]);
    const { out, notes } = await tollgate('members', 'invite', accountId, email, '--role', 'admin');
    const names = out.split('\n').map((line) => line.split(' ')[0]);
    assert.deepEqual(names.slice(0, 6), ['id', 'email', 'role', 'teams', 'expires', 'link']);
    assert.match(out, /\/console\/invitation#token=[\w-]{43}$/m);
    assert.match(notes, /PUBLIC_URL is not set/);
    const member = await newUser(accountId);
    assert.equal((await json('members', 'update', member, '--role', 'member')).role, 'member');
    const shown = await tollgate('members', 'list', accountId);
    assert.deepEqual(columnsOf(shown.out), ['id', 'email', 'role', 'status', 'created']);
    assert.match(shown.out, new RegExp(`^${member} +\\S+ +member +active `, 'm'));
    assert.match((await tollgate('members', 'remove', owner)).notes, /last active owner.*\(CONFLICT\)/);
    assert.equal((await json('members', 'remove', member)).status, 'removed');
    const { items } = await json('members', 'list', accountId);
    assert.deepEqual(
      items.map(({ id, role }: { id: string; role: string }) => [id, role]),
      [[owner, 'owner']],
    );
  });

  it('prints the reason why a team is not made or removed, and exits with 1', async () => {
    const { accountId, keyId } = await gateway.newCustomer('1');
    const { id } = await json('teams', 'create', accountId, 'search');
    assert.match((await tollgate('teams', 'create', accountId, 'search')).notes, /\(CONFLICT\)/);
    await json('keys', 'update', keyId, '--team', id);
    const refused = await tollgate('teams', 'remove', id);
    assert.equal(refused.status, 1);
    assert.match(refused.notes, /\(CONFLICT\)/);
    await json('keys', 'revoke', keyId);
    await json('teams', 'remove', id);
  });

  it('puts a key into a team and gives it a member, and removes both with "none"', async () => {
    const { accountId } = await gateway.newCustomer('1');
    const userId = await newUser(accountId);
    const team = await json('teams', 'create', accountId, 'search');
    await json('teams', 'add', team.id, userId);
    const made = await json('keys', 'create', accountId, 'web', '--team', team.id, '--member', userId);
    assert.deepEqual([made.teamId, made.memberId], [team.id, userId]);
    assert.match((await tollgate('keys', 'list', accountId)).out, new RegExp(`${team.id} +${userId} +never`));
    const without = await json('keys', 'update', made.id, '--team', 'none', '--member', 'none');
    assert.deepEqual([without.teamId, without.memberId], [null, null]);
    assert.equal((await json('keys', 'update', made.id, '--team', team.id)).teamId, team.id);
    const wrong = await tollgate('keys', 'update', made.id, '--team', newId());
    assert.equal(wrong.status, 1);
    assert.match(wrong.notes, /\(NOT_FOUND\)/);
  });

  it('requires tags of the calls of a key and a team, and no longer with "none"', async () => {
    const { accountId, keyId } = await gateway.newCustomer('1');
    const team = await json('teams', 'create', accountId, 'search', '--require-tags', 'customer', 'end_user');
    assert.deepEqual(team.requiredTags, ['customer', 'end_user']);
    const shown = await tollgate('keys', 'update', keyId, '--require-tags', 'project', 'session');
    assert.match(shown.out, /^required tags +project, session$/m);
    assert.equal((await json('teams', 'update', team.id, '--require-tags', 'none')).requiredTags, null);
    assert.equal((await json('keys', 'update', keyId, '--require-tags', 'none')).requiredTags, null);
    assert.deepEqual((await json('usage', 'totals', '--account', accountId, '--by', 'tag:customer')).groups, []);
    assert.match((await tollgate('usage', 'totals', '--account', accountId)).out, /^calls +0$/m);
  });

  it('makes, shows, changes and removes a budget', async () => {
    const { accountId } = await gateway.newCustomer('1');
    const window = ['--window', 'week', '--limit', '20'];
    const made = await json(
      'budgets',
      'create',
      accountId,
      '--scope',
      'account',
      ...window,
      '--thresholds',
      '50',
      '80',
    );
    assert.deepEqual(
      [made.accountId, made.scope, made.window, made.limitUsd],
      [accountId, 'account', 'week', '20.00000000'],
    );
    assert.deepEqual(made.thresholds, [50, 80]);
    assert.deepEqual(await json('budgets', 'show', made.id), made);
    const changed = await json('budgets', 'update', made.id, '--limit', '30', '--thresholds', '90');
    assert.deepEqual([changed.limitUsd, changed.thresholds], ['30.00000000', [90]]);
    assert.equal((await json('budgets', 'remove', made.id)).id, made.id);
    assert.match((await tollgate('budgets', 'show', made.id)).notes, /\(NOT_FOUND\)/);
  });

  it('makes and lists budgets of the name and of a value of a tag', async () => {
    const { accountId } = await gateway.newCustomer('1');
    const tag = ['--scope', 'tag', '--tag', 'customer', '--limit', '5'];
    const ofName = await json('budgets', 'create', accountId, ...tag, '--window', 'day');
    const ofValue = await json('budgets', 'create', accountId, ...tag, '--value', '4711', '--window', 'total');
    assert.deepEqual(
      [ofName.name, ofName.value, ofValue.name, ofValue.value],
      ['customer', null, 'customer=4711', '4711'],
    );
    const { out } = await tollgate('budgets', 'list', accountId, '--scope', 'tag');
    assert.match(out, / tag +customer=4711 +total +5\.00000000 +0\.00000000 +0\.00000000 +5\.00000000 /);
    assert.match(out, / tag +customer +day +5\.00000000 /);
  });

  it('lists the budgets of an account, or those of one kind of scope, with what each has spent and left', async () => {
    const { accountId, keyId, key } = await gateway.newCustomer('1');
    const userId = await newUser(accountId);
    const team = await json('teams', 'create', accountId, 'search');
    await json('keys', 'update', keyId, '--team', team.id, '--member', userId, '--daily', '0.5');
    for (const [scope, id, usd] of [
      ['team', team.id, '0.4'],
      ['member', userId, '0.7'],
    ])
      await json('budgets', 'create', accountId, '--scope', scope, '--id', id, '--window', 'total', '--limit', usd);
    assert.equal((await gateway.call(PATH.messages, { key, body: ask() })).status, 200);
    const spent = await until('the charge counts', async () => {
      const { items } = await json('budgets', 'list', accountId, '--scope', 'team');
      return items[0].spentUsd !== '0.00000000' && items[0].heldUsd === '0.00000000' ? items : undefined;
    });
    assert.deepEqual(
      spent.map((each: Record<string, unknown>) => [each['name'], each['scopeId'], each['spentUsd'], each['resetsAt']]),
      [['search', team.id, '0.00105000', null]],
    );
    const { out } = await tollgate('budgets', 'list', accountId);
    assert.deepEqual(columnsOf(out), [
      ...['id', 'scope', 'name', 'window'],
      ...['limit USD', 'spent USD', 'held USD', 'left USD', 'thresholds', 'resets'],
    ]);
    const counters = '0\\.00105000 +0\\.00000000';
    assert.match(
      out,
      new RegExp(` team +search +total +0\\.40000000 +${counters} +0\\.39895000 +50% 80% 100% +never$`, 'm'),
    );
    assert.match(out, new RegExp(` member +\\S+@example\\.com +total +0\\.70000000 +${counters} +0\\.69895000 `, 'm'));
    const [{ resetsAt }] = (await json('budgets', 'list', accountId, '--scope', 'key')).items;
    assert.match(out, new RegExp(` key +\\S+ +day +0\\.50000000 +${counters} +0\\.49895000 .* ${resetsAt}$`, 'm'));
  });

  it('sets a budget beyond which a call is 402 BUDGET_EXCEEDED, and raises it', async () => {
    const { accountId, keyId, key } = await gateway.newCustomer('1');
    const team = await json('teams', 'create', accountId, 'search');
    await json('keys', 'update', keyId, '--team', team.id);
    const month = ['--scope', 'team', '--id', team.id, '--window', 'month'];
    const budget = await json('budgets', 'create', accountId, ...month, '--limit', '0.0001');
    const refused = await gateway.call(PATH.messages, { key, body: ask() });
    assert.equal(refused.status, 402);
    const { code, details } = refused.json.error;
    assert.deepEqual(
      [code, details],
      [
        'BUDGET_EXCEEDED',
        {
          scope: 'team',
          name: 'search',
          window: 'month',
          limitUsd: '0.00010000',
          spentUsd: '0.00000000',
          heldUsd: '0.00000000',
          resetsAt: budget.resetsAt,
        },
      ],
    );
    await json('budgets', 'update', budget.id, '--limit', '0.9');
    assert.equal((await gateway.call(PATH.messages, { key, body: ask() })).status, 200);
  });

  for (const [args, reason] of [
    [['teams', 'update', 'x'], /--name/],
    [['members', 'update', 'x', '--role', 'boss'], /owner, admin, member, viewer/],
    [['budgets', 'create', 'x', '--scope', 'team'], /--window/],
    [
      ['budgets', 'create', 'x', '--scope', 'user', '--window', 'day', '--limit', '1'],
      /account, team, member, key, tag/,
    ],
    [['budgets', 'create', 'x', '--scope', 'account', '--window', 'year', '--limit', '1'], /total, day, week, month/],
    [['budgets', 'update', 'x'], /Give --limit or --thresholds/],
    [['budgets', 'update', 'x', '--thresholds', '50', '80%'], /whole percents such as 50 80, not "80%"/],
  ] as const)
    it(`refuses "tollgate ${args.join(' ')}" with status 2`, async () => {
      const { status, notes } = await tollgate(...args);
      assert.equal(status, 2);
      assert.match(notes, reason);
    });
});
