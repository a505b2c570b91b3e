import assert from 'node:assert/strict';
import { newId } from '../../core/base/ids';
import { type Ledger, LedgerUnavailable } from '../../core/ledger/ledger';
import { openDesk, type TestAnswer, type TestDesk } from '../support/desk';

function refusedWith(answer: TestAnswer, status: number, code: string, param?: string): void {
  assert.equal(answer.status, status, JSON.stringify(answer.body));
  assert.equal(answer.body.error.code, code);
  if (param !== undefined) assert.equal(answer.body.error.param, param);
}

function made(answer: TestAnswer, status = 201) {
  assert.equal(answer.status, status, JSON.stringify(answer.body));
  return answer.body;
}

const DAY_MS = 86_400_000;

for (const name of ['Postgres', 'PGlite'] as const) {
  describe(`teams and budgets in the operator's API on ${name}`, () => {
    let desk: TestDesk;
    let accountId: string;
    let keyId: string;
    before(async function () {
      this.timeout(120_000);
      desk = await openDesk(name);
    });
    after(() => desk.close());
    beforeEach(async () => {
      ({ accountId, keyId } = await desk.customer('10'));
    });

    const newTeam = async (team = 'research', account = accountId) =>
      made(await desk.admin('POST', `/accounts/${account}/teams`, { name: team }));
    const newBudget = (budget: object, account = accountId) =>
      desk.admin('POST', `/accounts/${account}/budgets`, budget);
    const actionsOf = async (subject: string) =>
      (await desk.admin('GET', `/audit?subject=${subject}`)).body.items.map((item: { action: string }) => item.action);

    describe('a team', () => {
      it('is created, listed, renamed and deleted, with its scope in the ledger', async () => {
        const team = await newTeam();
        assert.deepEqual(Object.keys(team), [
          'id',
          'accountId',
          'name',
          'members',
          'requiredTags',
          'require',
          'createdAt',
        ]);
        assert.deepEqual([team.accountId, team.name, team.members], [accountId, 'research', []]);
        const scope = `t:${team.id}`;
        assert.notEqual(await desk.ledger.readScope(accountId, scope), undefined);
        const other = await newTeam('sales');
        const listed = await desk.admin('GET', `/accounts/${accountId}/teams?limit=1`);
        assert.deepEqual(listed.body.items, [other]);
        const rest = await desk.admin('GET', `/accounts/${accountId}/teams?cursor=${listed.body.nextCursor}`);
        assert.deepEqual(rest.body, { items: [team], nextCursor: null });
        const renamed = made(await desk.admin('PATCH', `/teams/${team.id}`, { name: 'labs' }), 200);
        assert.deepEqual(renamed, { ...team, name: 'labs' });
        const row = await desk.database('scopes').where({ scope }).first('rev', 'told_rev');
        assert.deepEqual([row.rev, row.told_rev], [1, 1]);

        await newBudget({ scope: 'team', scopeId: team.id, window: 'day', limitUsd: '1' });
        assert.deepEqual((await desk.ledger.readScope(accountId, scope))?.limits, { day: 100_000_000n });
        assert.deepEqual(made(await desk.admin('DELETE', `/teams/${team.id}`), 200), renamed);
        assert.deepEqual((await desk.ledger.readScope(accountId, scope))?.limits, {});
        assert.deepEqual((await desk.admin('GET', `/accounts/${accountId}/teams`)).body.items, [other]);
        assert.deepEqual((await desk.admin('GET', `/accounts/${accountId}/budgets`)).body.items, []);
        for (const [method, path, body] of [
          ['PATCH', `/teams/${team.id}`, { name: 'x' }],
          ['DELETE', `/teams/${team.id}`],
        ] as const)
          refusedWith(await desk.admin(method, path, body), 404, 'NOT_FOUND');
        assert.deepEqual(await actionsOf(`team:${team.id}`), ['team.delete', 'team.update', 'team.create']);
        await newTeam('labs');
      });

      it('has a name that no other team of the account has, even if two requests choose it at once', async () => {
        const create = () => desk.admin('POST', `/accounts/${accountId}/teams`, { name: 'twins' });
        const answers = await Promise.all([create(), create(), create()]);
        assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 409, 409]);
        for (const answer of answers.filter(({ status }) => status === 409))
          refusedWith(answer, 409, 'CONFLICT', 'name');
        const other = await newTeam('other');
        refusedWith(await desk.admin('PATCH', `/teams/${other.id}`, { name: 'twins' }), 409, 'CONFLICT', 'name');
        assert.equal((await desk.admin('PATCH', `/teams/${other.id}`, { name: 'other' })).status, 200);
        await newTeam('twins', (await desk.customer()).accountId);
      });

      it('cannot be deleted while it has active keys', async () => {
        const team = await newTeam();
        made(await desk.admin('PATCH', `/keys/${keyId}`, { teamId: team.id }), 200);
        const refused = await desk.admin('DELETE', `/teams/${team.id}`);
        refusedWith(refused, 409, 'CONFLICT');
        assert.match(refused.body.error.message, /still has 1 active key\. Revoke them or give them another `teamId`/);
        await desk.admin('DELETE', `/keys/${keyId}`);
        assert.equal((await desk.admin('DELETE', `/teams/${team.id}`)).status, 200);
      });

      it('gets and loses members, which are users of its account, however often the request is repeated', async () => {
        const team = await newTeam();
        const people = [await desk.person(accountId), await desk.person(accountId)].map(({ userId }) => userId);
        const [first, second] = people;
        const put = (userId: string | undefined) => desk.admin('PUT', `/teams/${team.id}/members/${userId}`, {});
        await put(first);
        await put(first);
        assert.deepEqual(made(await put(second), 200).members, people.sort());
        const remove = () => desk.admin('DELETE', `/teams/${team.id}/members/${first}`, {});
        await remove();
        assert.deepEqual(made(await remove(), 200).members, [second]);
        assert.deepEqual((await desk.admin('GET', `/accounts/${accountId}/teams`)).body.items[0].members, [second]);
        assert.deepEqual(await actionsOf(`team:${team.id}`), [
          'team.member.remove',
          'team.member.add',
          'team.member.add',
          'team.create',
        ]);
        const { userId: stranger } = await desk.person((await desk.customer()).accountId);
        for (const userId of [stranger, newId(), 'nobody']) refusedWith(await put(userId), 404, 'NOT_FOUND', 'userId');
        refusedWith(await desk.admin('PUT', `/teams/${newId()}/members/${second}`, {}), 404, 'NOT_FOUND');
        refusedWith(await desk.admin('DELETE', `/teams/${newId()}/members/${second}`), 404, 'NOT_FOUND');
        refusedWith(await desk.admin('PUT', `/teams/${team.id}/members/${first}`, { x: 1 }), 400, 'INVALID_FIELD', 'x');
        assert.equal((await desk.admin('DELETE', `/teams/${team.id}`)).status, 200);
      });

      it('refuses wrong bodies and unknown ids', async () => {
        const create = (body: unknown) => desk.admin('POST', `/accounts/${accountId}/teams`, body);
        refusedWith(await create({}), 400, 'INVALID_FIELD', 'name');
        refusedWith(await create({ name: '' }), 400, 'INVALID_FIELD', 'name');
        refusedWith(await create({ name: 'x', requiredTags: [] }), 400, 'INVALID_FIELD', 'requiredTags');
        for (const id of [newId(), '1']) {
          refusedWith(await desk.admin('POST', `/accounts/${id}/teams`, { name: 'x' }), 404, 'NOT_FOUND');
          refusedWith(await desk.admin('GET', `/accounts/${id}/teams`), 404, 'NOT_FOUND');
          refusedWith(await desk.admin('PATCH', `/teams/${id}`, { name: 'x' }), 404, 'NOT_FOUND');
          refusedWith(await desk.admin('DELETE', `/teams/${id}`), 404, 'NOT_FOUND');
        }
      });
    });

    describe('a budget', () => {
      it('of an account, team, member or key has the name of its scope, and its limit is in the ledger', async () => {
        const team = await newTeam();
        const { userId, email } = await desk.person(accountId);
        const budgets = [
          { scope: 'account', scopeId: null, window: 'month', expected: 'customer', ledger: `a:${accountId}` },
          { scope: 'team', scopeId: team.id, window: 'week', expected: 'research', ledger: `t:${team.id}` },
          { scope: 'member', scopeId: userId, window: 'day', expected: email, ledger: `m:${userId}` },
          { scope: 'key', scopeId: keyId, window: 'total', expected: 'first', ledger: `k:${keyId}` },
        ] as const;
        const all = [];
        for (const { scope, scopeId, window, expected, ledger } of budgets) {
          const asked = { scope, window, limitUsd: '2.5', ...(scopeId !== null && { scopeId }) };
          const budget = made(await newBudget(asked));
          const { id, resetsAt, ...shown } = budget;
          assert.deepEqual(shown, {
            ...{ accountId, scope, scopeId, name: expected, tag: null, value: null, window },
            ...{ limitUsd: '2.50000000', spentUsd: '0.00000000', heldUsd: '0.00000000', thresholds: [50, 80, 100] },
          });
          if (window === 'total') assert.equal(resetsAt, null);
          else assert.ok(Date.parse(resetsAt) > Date.now() && Date.parse(resetsAt) % DAY_MS === 0, resetsAt);
          if (window === 'week') assert.equal(new Date(resetsAt).getUTCDay(), 1);
          assert.equal((await desk.ledger.readScope(accountId, ledger))?.limits[window], 250_000_000n);
          assert.deepEqual((await desk.admin('GET', `/budgets/${id}`)).body, budget);
          const filtered = await desk.admin('GET', `/accounts/${accountId}/budgets?scope=${scope}`);
          assert.deepEqual(filtered.body.items, [budget]);
          assert.deepEqual(await actionsOf(`budget:${id}`), ['budget.create']);
          all.unshift(budget);
        }
        assert.deepEqual((await desk.admin('GET', `/accounts/${accountId}/budgets`)).body.items, all);
        const page = await desk.admin('GET', `/accounts/${accountId}/budgets?limit=3`);
        const next = await desk.admin('GET', `/accounts/${accountId}/budgets?cursor=${page.body.nextCursor}`);
        assert.deepEqual([...page.body.items, ...next.body.items], all);
        await desk.admin('PATCH', `/accounts/${accountId}`, { name: 'renamed' });
        const ofAccount = await desk.admin('GET', `/accounts/${accountId}/budgets?scope=account`);
        assert.equal(ofAccount.body.items[0].name, 'renamed');
        const { rev, told_rev: told } = await desk
          .database('scopes')
          .where({ scope: `a:${accountId}` })
          .first();
        assert.deepEqual([rev, told], [2, 2]);
      });

      it('is changed and deleted, and the ledger has the change when it is answered', async () => {
        const asked = { scope: 'account', window: 'total', limitUsd: '1', thresholds: [1, 1000] };
        const budget = made(await newBudget(asked));
        assert.deepEqual(budget.thresholds, [1, 1000]);
        const limits = async () => (await desk.ledger.readScope(accountId, `a:${accountId}`))?.limits;
        const raised = made(await desk.admin('PATCH', `/budgets/${budget.id}`, { limitUsd: '3' }), 200);
        assert.deepEqual(raised, { ...budget, limitUsd: '3.00000000' });
        assert.deepEqual(await limits(), { total: 300_000_000n });
        const told = made(await desk.admin('PATCH', `/budgets/${budget.id}`, { thresholds: [] }), 200);
        assert.deepEqual(told, { ...raised, thresholds: [] });
        const { rev } = await desk
          .database('scopes')
          .where({ scope: `a:${accountId}` })
          .first('rev');
        assert.equal(rev, 2, 'thresholds are no change for the ledger');
        assert.deepEqual(made(await desk.admin('DELETE', `/budgets/${budget.id}`), 200), told);
        assert.deepEqual(await limits(), {});
        for (const method of ['GET', 'DELETE'])
          refusedWith(await desk.admin(method, `/budgets/${budget.id}`), 404, 'NOT_FOUND');
        refusedWith(await desk.admin('PATCH', `/budgets/${budget.id}`, { limitUsd: '1' }), 404, 'NOT_FOUND');
        const { items } = (await desk.admin('GET', `/audit?subject=budget:${budget.id}`)).body;
        assert.deepEqual(
          items.map(({ action, before, after }: { action: string; before: never; after: never }) => [
            action,
            before?.['limitUsd'],
            after?.['limitUsd'],
          ]),
          [
            ['budget.delete', '3.00000000', undefined],
            ['budget.update', '3.00000000', '3.00000000'],
            ['budget.update', '1.00000000', '3.00000000'],
            ['budget.create', undefined, '1.00000000'],
          ],
        );
      });

      it('is one for each scope and window, even if several requests create it at once', async () => {
        const asked = { scope: 'key', scopeId: keyId, window: 'day', limitUsd: '1' };
        const answers = await Promise.all([newBudget(asked), newBudget(asked), newBudget(asked)]);
        assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 409, 409]);
        const { id } = answers.find(({ status }) => status === 201)?.body ?? {};
        for (const answer of answers.filter(({ status }) => status === 409)) {
          refusedWith(answer, 409, 'CONFLICT', 'window');
          assert.match(answer.body.error.message, new RegExp(`PATCH /admin/v1/budgets/${id}`));
        }
        made(await newBudget({ ...asked, window: 'week' }));
      });

      it('refuses wrong bodies, and ids that are unknown or of another account', async () => {
        const other = await desk.customer();
        const foreignTeam = await newTeam('theirs', other.accountId);
        const { userId: foreignUser } = await desk.person(other.accountId);
        const good = { scope: 'team', scopeId: newId(), window: 'day', limitUsd: '1' };
        for (const [change, param, code = 'INVALID_FIELD'] of [
          [{ scope: 'user' }, 'scope'],
          [{ window: 'year' }, 'window'],
          [{ limitUsd: 5 }, 'limitUsd'],
          [{ limitUsd: '-1' }, 'limitUsd'],
          [{ limitUsd: '1.000000001' }, 'limitUsd'],
          [{ limitUsd: undefined }, 'limitUsd', 'INVALID_FIELD'],
          [{ scopeId: undefined }, 'scopeId'],
          [{ scopeId: 'me' }, 'scopeId'],
          [{ scope: 'account' }, 'scopeId'],
          [{ thresholds: [80, 50] }, 'thresholds[1]'],
          [{ thresholds: [50, 50] }, 'thresholds'],
          [{ thresholds: [0] }, 'thresholds[0]'],
          [{ thresholds: [1001] }, 'thresholds[0]'],
          [{ thresholds: [1.5] }, 'thresholds[0]'],
          [{ thresholds: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11] }, 'thresholds'],
          [{ tag: 'customer' }, 'tag'],
          [{ value: '1' }, 'value'],
        ] as const)
          refusedWith(await newBudget({ ...good, ...change }), 400, code, param);
        for (const [scope, scopeId] of [
          ['team', newId()],
          ['team', foreignTeam.id],
          ['member', newId()],
          ['member', foreignUser],
          ['key', newId()],
          ['key', other.keyId],
        ])
          refusedWith(await newBudget({ ...good, scope, scopeId }), 404, 'NOT_FOUND');
        refusedWith(await newBudget({ ...good, scope: 'account', scopeId: undefined }, newId()), 404, 'NOT_FOUND');
        refusedWith(await desk.admin('GET', `/accounts/${newId()}/budgets`), 404, 'NOT_FOUND');
        refusedWith(
          await desk.admin('GET', `/accounts/${accountId}/budgets?scope=user`),
          400,
          'INVALID_FIELD',
          'scope',
        );
        for (const id of [newId(), '1'])
          refusedWith(await desk.admin('PATCH', `/budgets/${id}`, { limitUsd: '1' }), 404, 'NOT_FOUND');
        const { id } = made(await newBudget({ scope: 'account', window: 'day', limitUsd: '0' }));
        refusedWith(await desk.admin('PATCH', `/budgets/${id}`, { limitUsd: null }), 400, 'INVALID_FIELD', 'limitUsd');
        refusedWith(await desk.admin('PATCH', `/budgets/${id}`, { window: 'day' }), 400, 'INVALID_FIELD', 'window');
        refusedWith(
          await desk.admin('PATCH', `/budgets/${id}`, { thresholds: [2, 1] }),
          400,
          'INVALID_FIELD',
          'thresholds[1]',
        );
      });
    });

    describe('a budget of a tag', () => {
      const tagBudget = (budget: object) =>
        newBudget({ scope: 'tag', tag: 'customer', window: 'day', limitUsd: '1', ...budget });
      const reserve = async (usd: bigint, tags: string) => {
        const request = { accountId, keyId, rid: newId(), keyRev: 99, lifetimeMs: undefined };
        const answer = await desk.ledger.reserve({ ...request, amountE8: usd * 100_000_000n, tags });
        return { rid: request.rid, answer };
      };
      const refusalOf = async (usd: bigint, tags: string) => {
        const { answer } = await reserve(usd, tags);
        return 'limit' in answer ? `${answer.limit.name} ${answer.limit.window}` : answer.outcome;
      };

      it('binds each value of the name, or one value, and shows what the value has spent and holds', async () => {
        const ofName = made(await tagBudget({ limitUsd: '2' }));
        const { id: _, resetsAt, ...shown } = ofName;
        assert.ok(Date.parse(resetsAt) > Date.now());
        assert.deepEqual(shown, {
          ...{ accountId, scope: 'tag', scopeId: null, name: 'customer', tag: 'customer', value: null, window: 'day' },
          ...{ limitUsd: '2.00000000', spentUsd: null, heldUsd: null, thresholds: [50, 80, 100] },
        });
        assert.equal(await refusalOf(3n, 'customer=1'), 'customer=1 day');
        const ofValue = made(await tagBudget({ value: '1', window: 'total', limitUsd: '1.5' }));
        assert.deepEqual(
          [ofValue.name, ofValue.value, ofValue.spentUsd, ofValue.resetsAt],
          ['customer=1', '1', '0.00000000', null],
        );
        assert.equal(await refusalOf(2n, 'customer=1'), 'customer=1 total');
        const { rid, answer } = await reserve(1n, 'customer=1 session=s');
        assert.equal(answer.outcome, 'reserved');
        assert.equal((await desk.admin('GET', `/budgets/${ofValue.id}`)).body.heldUsd, '1.00000000');
        await desk.ledger.settle({ accountId, keyId, rid, costE8: 40_000_000n, record: '' });
        assert.equal((await desk.admin('GET', `/budgets/${ofValue.id}`)).body.spentUsd, '0.40000000');
        const { items } = (await desk.admin('GET', `/accounts/${accountId}/budgets?scope=tag`)).body;
        assert.deepEqual(
          items.map(({ name }: { name: string }) => name),
          ['customer=1', 'customer'],
        );
        const [created] = (await desk.admin('GET', `/audit?subject=budget:${ofValue.id}`)).body.items;
        assert.deepEqual([created.action, created.after.tag, created.after.value], ['budget.create', 'customer', '1']);
      });

      it('shows what Postgres has of a value that the ledger does not count now', async () => {
        const day = new Date().toISOString().slice(0, 10);
        const scope = `g:${accountId}:customer=old`;
        await desk.database('scope_spending').insert({ scope, day, spent_e8: 30_000_000 });
        const budget = made(await tagBudget({ value: 'old' }));
        assert.deepEqual([budget.spentUsd, budget.heldUsd], ['0.30000000', '0.00000000']);
        assert.equal(await refusalOf(1n, 'customer=old'), 'customer=old day');
      });

      it('is changed and deleted, and calls count no more once the name and its values have none', async () => {
        const ofName = made(await tagBudget({}));
        const ofValue = made(await tagBudget({ value: '1', limitUsd: '5' }));
        assert.equal(await refusalOf(2n, 'customer=2'), 'customer=2 day');
        assert.equal(await refusalOf(2n, 'customer=1'), 'reserved');
        made(await desk.admin('DELETE', `/budgets/${ofName.id}`), 200);
        assert.equal(await refusalOf(2n, 'customer=2'), 'reserved');
        made(await desk.admin('PATCH', `/budgets/${ofValue.id}`, { limitUsd: '3' }), 200);
        assert.equal(await refusalOf(2n, 'customer=1'), 'customer=1 day');
        made(await desk.admin('DELETE', `/budgets/${ofValue.id}`), 200);
        assert.equal(await refusalOf(2n, 'customer=1'), 'reserved');
        const rows = await desk.database('scopes').where('scope', 'like', `g:${accountId}:%`).select('rev', 'told_rev');
        for (const { rev, told_rev: told } of rows) assert.equal(told, rev);
        assert.equal(rows.length, 2);
      });

      it('is one for each name or value and window, and refuses wrong names, values and windows', async () => {
        made(await tagBudget({}));
        made(await tagBudget({ value: '1' }));
        made(await tagBudget({ window: 'week', value: null }));
        for (const value of [undefined, '1']) refusedWith(await tagBudget({ value }), 409, 'CONFLICT', 'window');
        for (const tag of ['session', 'agent', 'end_user']) made(await tagBudget({ tag }));
        for (const [change, param] of [
          [{ tag: undefined }, 'tag'],
          [{ tag: null }, 'tag'],
          [{ tag: 'Customer' }, 'tag'],
          [{ tag: 'a=b' }, 'tag'],
          [{ tag: 'x'.repeat(33) }, 'tag'],
          [{ value: '' }, 'value'],
          [{ value: 'a b' }, 'value'],
          [{ value: 'x'.repeat(65) }, 'value'],
          [{ value: 4711 }, 'value'],
          [{ window: 'total' }, 'window'],
          [{ scopeId: newId() }, 'scopeId'],
        ] as const)
          refusedWith(await tagBudget(change), 400, 'INVALID_FIELD', param);
      });
    });

    describe('the limits of a key', () => {
      const limitsOf = async () => {
        const { body } = await desk.admin('GET', `/accounts/${accountId}/keys`);
        const { balanceLimit, dailyLimit, monthlyLimit } = body.items[0];
        return [balanceLimit, dailyLimit, monthlyLimit];
      };
      const budgetsOf = async (): Promise<{ id: string; window: string; limitUsd: string }[]> =>
        (await desk.admin('GET', `/accounts/${accountId}/budgets?scope=key`)).body.items;
      const stateOf = async () => {
        const state = await desk.ledger.readKey({ accountId, keyId });
        return [state?.limitE8, state?.dailyLimitE8, state?.weeklyLimitE8, state?.monthlyLimitE8];
      };

      it('are its budgets, whichever route changes them', async () => {
        made(await desk.admin('PATCH', `/keys/${keyId}`, { balanceLimit: '3', monthlyLimit: '2' }), 200);
        const windows = async () => (await budgetsOf()).map(({ window, limitUsd }) => `${window} ${limitUsd}`).sort();
        assert.deepEqual(await windows(), ['month 2.00000000', 'total 3.00000000']);
        made(await newBudget({ scope: 'key', scopeId: keyId, window: 'day', limitUsd: '1' }));
        made(await newBudget({ scope: 'key', scopeId: keyId, window: 'week', limitUsd: '1.5' }));
        assert.deepEqual(await limitsOf(), ['3.00000000', '1.00000000', '2.00000000']);
        assert.deepEqual(await stateOf(), [300_000_000n, 100_000_000n, 150_000_000n, 200_000_000n]);
        const total = (await budgetsOf()).find(({ window }) => window === 'total');
        made(await desk.admin('PATCH', `/budgets/${total?.id}`, { limitUsd: '4', thresholds: [90] }), 200);
        made(await desk.admin('PATCH', `/keys/${keyId}`, { balanceLimit: '5', dailyLimit: null }), 200);
        const after = made(await desk.admin('GET', `/budgets/${total?.id}`), 200);
        assert.deepEqual([after.limitUsd, after.thresholds], ['5.00000000', [90]], 'it keeps its id and thresholds');
        assert.deepEqual(await limitsOf(), ['5.00000000', null, '2.00000000']);
        assert.deepEqual(await windows(), ['month 2.00000000', 'total 5.00000000', 'week 1.50000000']);
        assert.deepEqual(await stateOf(), [500_000_000n, undefined, 150_000_000n, 200_000_000n]);
        made(await desk.admin('DELETE', `/budgets/${total?.id}`), 200);
        assert.deepEqual(await limitsOf(), [null, null, '2.00000000']);
        const { rev, told_rev: told } = await desk.database('api_keys').where({ id: keyId }).first('rev', 'told_rev');
        assert.deepEqual([rev, told], [6, 6]);
      });

      it('are in the ledger as in the database after changes by both routes at once', async () => {
        const { id } = made(await newBudget({ scope: 'key', scopeId: keyId, window: 'day', limitUsd: '1' }));
        const answers = await Promise.all(
          Array.from({ length: 12 }, (_, index) =>
            index % 2 === 0
              ? desk.admin('PATCH', `/keys/${keyId}`, { dailyLimit: String(index), balanceLimit: String(index) })
              : desk.admin('PATCH', `/budgets/${id}`, { limitUsd: String(index) }),
          ),
        );
        assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
        const [total, day] = await stateOf();
        assert.deepEqual(
          (await limitsOf()).map((usd) => usd && BigInt(usd.replace('.', ''))),
          [total, day, null],
        );
      });

      it('are set with the key, and cannot be changed after it is revoked', async () => {
        const path = `/accounts/${accountId}/keys`;
        const limits = { balanceLimit: '1', dailyLimit: '0.5', monthlyLimit: '0.7', callsPerMinute: 5 };
        const key = made(await desk.admin('POST', path, { name: 'limited', ...limits }));
        assert.deepEqual(
          [key.balanceLimit, key.dailyLimit, key.monthlyLimit, key.callsPerMinute],
          ['1.00000000', '0.50000000', '0.70000000', 5],
        );
        const [budget] = await budgetsOf();
        assert.equal((await budgetsOf()).length, 3);
        await desk.admin('DELETE', `/keys/${key.id}`);
        refusedWith(await desk.admin('PATCH', `/budgets/${budget?.id}`, { limitUsd: '1' }), 409, 'CONFLICT');
        const week = { scope: 'key', scopeId: key.id, window: 'week', limitUsd: '1' };
        refusedWith(await newBudget(week), 409, 'CONFLICT');
        made(await desk.admin('DELETE', `/budgets/${budget?.id}`), 200);
      });
    });

    describe('the team and the member of a key', () => {
      it('are shown, sent to the ledger with a revision above 0, and removed by null', async () => {
        const team = await newTeam();
        const { userId } = await desk.person(accountId);
        const wanted = { name: 'of a team', teamId: team.id, memberId: userId };
        const key = made(await desk.admin('POST', `/accounts/${accountId}/keys`, wanted));
        assert.deepEqual([key.teamId, key.memberId], [team.id, userId]);
        const settings = async () => (await desk.ledger.readKey({ accountId, keyId: key.id }))?.settings;
        assert.deepEqual(await settings(), {
          ...{ rev: 1, name: 'of a team', allowedModels: undefined, markup: undefined },
          ...{ teamId: team.id, memberId: userId },
        });
        const other = await newTeam('other');
        const moved = made(await desk.admin('PATCH', `/keys/${key.id}`, { teamId: other.id, memberId: null }), 200);
        assert.deepEqual([moved.teamId, moved.memberId], [other.id, null]);
        const { teamId, memberId, rev } = (await settings()) ?? {};
        assert.deepEqual([teamId, memberId, rev], [other.id, undefined, 2]);
        const listed = await desk.admin('GET', `/accounts/${accountId}/keys`);
        assert.deepEqual([listed.body.items[0].teamId, listed.body.items[1].teamId], [other.id, null]);
        const { body } = await desk.admin('GET', `/audit?subject=key:${key.id}&limit=1`);
        assert.deepEqual([body.items[0].before.teamId, body.items[0].after.teamId], [team.id, other.id]);
      });

      it('must be of its account, and the user active', async () => {
        const { accountId: elsewhere } = await desk.customer();
        const foreign = await newTeam('theirs', elsewhere);
        const { userId: stranger } = await desk.person(elsewhere);
        const deleted = await newTeam('deleted');
        await desk.admin('DELETE', `/teams/${deleted.id}`);
        const { userId: disabled } = await desk.person(accountId);
        await desk.admin('PATCH', `/users/${disabled}`, { status: 'disabled' });
        for (const [change, status, code, param] of [
          [{ teamId: foreign.id }, 404, 'NOT_FOUND', 'teamId'],
          [{ teamId: newId() }, 404, 'NOT_FOUND', 'teamId'],
          [{ teamId: deleted.id }, 404, 'NOT_FOUND', 'teamId'],
          [{ memberId: stranger }, 404, 'NOT_FOUND', 'memberId'],
          [{ memberId: newId() }, 404, 'NOT_FOUND', 'memberId'],
          [{ memberId: disabled }, 409, 'CONFLICT', 'memberId'],
          [{ teamId: 'x' }, 400, 'INVALID_FIELD', 'teamId'],
          [{ memberId: 7 }, 400, 'INVALID_FIELD', 'memberId'],
        ] as const) {
          refusedWith(await desk.admin('PATCH', `/keys/${keyId}`, change), status, code, param);
          const created = await desk.admin('POST', `/accounts/${accountId}/keys`, { name: 'x', ...change });
          refusedWith(created, status, code, param);
        }
      });
    });
  });
}

describe('teams and budgets while the ledger is unreachable', () => {
  let desk: TestDesk;
  let isDown = false;
  before(async () => {
    desk = await openDesk('Postgres', {
      wrap: (ledger) =>
        new Proxy(ledger, {
          get: (target, property: keyof Ledger) => {
            const value = target[property];
            if (typeof value !== 'function') return value;
            return (...args: never[]) =>
              isDown
                ? Promise.reject(new LedgerUnavailable('no answer'))
                : (value as (...args: never[]) => unknown).apply(target, args);
          },
        }),
    });
  });
  afterEach(() => {
    isDown = false;
  });
  after(() => desk.close());

  it('are written, named by the 503, and shown without money', async () => {
    const { accountId, keyId } = await desk.customer('1');
    isDown = true;
    const team = await desk.admin('POST', `/accounts/${accountId}/teams`, { name: 'late' });
    refusedWith(team, 503, 'LEDGER_UNAVAILABLE');
    const { teamId } = team.body.error.details;
    const asked = { scope: 'team', scopeId: teamId, window: 'day', limitUsd: '1' };
    const budget = await desk.admin('POST', `/accounts/${accountId}/budgets`, asked);
    refusedWith(budget, 503, 'LEDGER_UNAVAILABLE');
    const { budgetId } = budget.body.error.details;
    const shown = await desk.admin('GET', `/budgets/${budgetId}`);
    assert.deepEqual([shown.status, shown.body.spentUsd, shown.body.heldUsd], [200, null, null]);
    const ofKey = { scope: 'key', scopeId: keyId, window: 'week', limitUsd: '1' };
    refusedWith(await desk.admin('POST', `/accounts/${accountId}/budgets`, ofKey), 503, 'LEDGER_UNAVAILABLE');
    isDown = false;
    const again = await desk.admin('PATCH', `/budgets/${budgetId}`, { limitUsd: '1' });
    assert.deepEqual([again.status, again.body.spentUsd], [200, '0.00000000'], JSON.stringify(again.body));
    assert.deepEqual((await desk.ledger.readScope(accountId, `t:${teamId}`))?.limits, { day: 100_000_000n });
  });

  it('lose a removed member, whose keys a repeated removal revokes in the ledger too', async () => {
    const { accountId, keyId, apiKey } = await desk.customer('1');
    const [{ userId }] = [await desk.person(accountId), await desk.person(accountId)];
    await desk.admin('PATCH', `/keys/${keyId}`, { memberId: userId });
    isDown = true;
    const removal = await desk.admin('DELETE', `/users/${userId}`);
    refusedWith(removal, 503, 'LEDGER_UNAVAILABLE');
    assert.deepEqual(removal.body.error.details, { userId });
    isDown = false;
    const { body } = await desk.admin('GET', `/accounts/${accountId}/users`);
    assert.ok(!body.items.some(({ id }: { id: string }) => id === userId));
    assert.equal((await desk.get('/v1/balance', apiKey)).status, 200);
    assert.equal((await desk.admin('DELETE', `/users/${userId}`)).body.status, 'removed');
    assert.equal((await desk.get('/v1/balance', apiKey)).status, 401);
  });

  it('limit an account that was created while the ledger was unreachable', async () => {
    isDown = true;
    const account = await desk.admin('POST', '/accounts', { name: 'half made' });
    const { accountId } = account.body.error.details;
    isDown = false;
    const budget = { scope: 'account', window: 'day', limitUsd: '1' };
    made(await desk.admin('POST', `/accounts/${accountId}/budgets`, budget));
    assert.equal((await desk.ledger.readAccount(accountId))?.status, 'active');
  });
});
