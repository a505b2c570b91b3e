import assert from 'node:assert/strict';
import { newId } from '../../../core/base/ids';
import { EVERYONE, type MemberRole } from '../../../core/sign-in/member-roles';
import { hashToken } from '../../../core/sign-in/sessions';
import { signedInBrowser, TestBrowser } from '../../support/console';
import { openDesk, type TestAnswer, type TestDesk } from '../../support/desk';
import { nameOf, ownRoutes } from '../../support/own-api';

const PASSWORD = 'a password of some length';

function refusedWith(answer: TestAnswer, status: number, code: string, param?: string): void {
  assert.deepEqual([answer.status, answer.body.error?.code], [status, code], JSON.stringify(answer.body));
  if (param !== undefined) assert.equal(answer.body.error.param, param);
}

function made(answer: TestAnswer, status = 201) {
  assert.equal(answer.status, status, JSON.stringify(answer.body));
  return answer.body;
}

const idsOf = (answer: TestAnswer) => made(answer, 200).items.map(({ id }: { id: string }) => id);

const consoleRoutes = ownRoutes().flatMap((route) =>
  route.listener === 'public' && route.auth === 'session' ? [route] : [],
);

for (const name of ['Postgres', 'PGlite'] as const) {
  describe(`members of an account in the console (${name})`, function () {
    this.timeout(120_000);
    let desk: TestDesk;
    let accountId: string;
    let owner: TestBrowser;
    before(async () => {
      desk = await openDesk(name);
    });
    after(() => desk.close());
    beforeEach(async () => {
      ({ accountId } = await desk.customer('5'));
      owner = await signIn('owner');
    });

    const signIn = (role: MemberRole, account = accountId) =>
      signedInBrowser(desk.publicUrl, desk.database, account, role);
    const newTeam = async (team: string, ...members: readonly TestBrowser[]) => {
      const { id } = made(await owner.send('POST', '/teams', { name: team }));
      for (const { userId } of members) made(await owner.send('PUT', `/teams/${id}/members/${userId}`, {}), 200);
      return String(id);
    };
    const newKey = async (browser: TestBrowser, key: object = {}) =>
      made(await browser.send('POST', '/keys', { name: 'a key', ...key }));
    const invite = async (body: object) => {
      const invitation = made(await owner.send('POST', '/invitations', body));
      return { ...invitation, token: /^\/console\/invitation#token=(.+)$/.exec(invitation.path)?.[1] ?? '' };
    };
    const accept = (token: string, password = PASSWORD, browser = new TestBrowser(desk.publicUrl)) =>
      browser.send('POST', '/session/invitation', { token, password });
    const changeRole = (browser: TestBrowser, userId: string, role: MemberRole) =>
      browser.send('PATCH', `/members/${userId}`, { role });
    const remove = (browser: TestBrowser, userId: string) => browser.send('DELETE', `/members/${userId}`);

    describe('a role', () => {
      for (const role of EVERYONE) {
        it(`decides which routes a user may ask, before the body is read: ${role}`, async () => {
          const browser = await signIn(role);
          // The desk serves no sandboxes, and a session that ends cannot ask further.
          const asked = consoleRoutes.filter(({ path }) => !/\/sandboxes|\/sessions?$/.test(path));
          assert.ok(asked.length > 25);
          for (const route of asked) {
            const path = route.path.replace('/console/api', '').replaceAll(/\{\w+\}/g, newId());
            const answer = await browser.send(route.method, path, route.method === 'GET' ? undefined : 'no object');
            assert.equal(answer.status === 403, !route.roles.includes(role), `${nameOf(route)} ${answer.status}`);
            if (answer.status === 403) refusedWith(answer, 403, 'FORBIDDEN');
          }
        });
      }

      it('is in the session, and a changed one holds at the next request', async () => {
        const member = await signIn('member');
        assert.equal((await member.get('/session')).body.user.role, 'member');
        refusedWith(await member.send('POST', '/teams', { name: 'x' }), 403, 'FORBIDDEN');
        const changed = made(await changeRole(owner, member.userId, 'admin'), 200);
        assert.deepEqual([changed.id, changed.role], [member.userId, 'admin']);
        made(await member.send('POST', '/teams', { name: 'x' }));
      });

      it('of an owner is given, changed and taken by owners only', async () => {
        const [admin, other] = [await signIn('admin'), await signIn('owner')];
        for (const refused of [
          await changeRole(admin, admin.userId, 'owner'),
          await changeRole(admin, other.userId, 'viewer'),
          await remove(admin, other.userId),
          await admin.send('POST', '/invitations', { email: 'boss@example.com', role: 'owner' }),
        ])
          refusedWith(refused, 403, 'FORBIDDEN');
        const { id } = await invite({ email: `${newId()}@example.com`, role: 'owner' });
        refusedWith(await admin.send('DELETE', `/invitations/${id}`), 403, 'FORBIDDEN');
        assert.deepEqual(idsOf(await owner.get('/invitations')), [id]);
        assert.equal((await changeRole(owner, admin.userId, 'owner')).status, 200);
      });

      it('leaves each account one owner, also when two owners demote or remove each other at once', async () => {
        for (const leave of [changeRole(owner, owner.userId, 'admin'), remove(owner, owner.userId)])
          refusedWith(await leave, 409, 'CONFLICT');
        for (const answer of [
          await desk.admin('DELETE', `/users/${owner.userId}`),
          await desk.admin('PATCH', `/users/${owner.userId}`, { role: 'viewer' }),
        ])
          refusedWith(answer, 409, 'CONFLICT');
        for (const take of [
          (browser: TestBrowser, userId: string) => changeRole(browser, userId, 'viewer'),
          (browser: TestBrowser, userId: string) => remove(browser, userId),
        ]) {
          const { accountId: account } = await desk.customer();
          const [one, two] = [await signIn('owner', account), await signIn('owner', account)];
          const answers = await Promise.all([take(one, two.userId), take(two, one.userId)]);
          // The later request finds that its user is the last owner, or that its own role or session has already ended.
          const statuses = answers.map(({ status }) => status).sort();
          assert.equal(statuses[0], 200);
          assert.ok([401, 403, 409].includes(statuses[1] ?? 0), String(statuses));
          const owners = await desk.database('users').where({ account_id: account, role: 'owner', status: 'active' });
          assert.equal(owners.length, 1);
        }
        const disabled = await signIn('owner');
        await desk.admin('PATCH', `/users/${disabled.userId}`, { status: 'disabled' });
        refusedWith(await remove(owner, owner.userId), 409, 'CONFLICT');
      });
    });

    describe('a member', () => {
      it('sees only its own keys, teams, budgets and itself, and gets 404 for those of others', async () => {
        const [member, other] = [await signIn('member'), await signIn('member')];
        const team = await newTeam('own', member, other);
        await newTeam('foreign', other);
        const [own, foreign] = [await newKey(member), await newKey(other)];
        assert.deepEqual(idsOf(await member.get('/keys')), [own.id]);
        assert.equal(idsOf(await owner.get('/keys')).length, 3);
        for (const [method, path, body] of [
          ['GET', ''],
          ['PATCH', '', { name: 'mine' }],
          ['DELETE', ''],
          ['POST', '/rotate', { graceSeconds: 0 }],
        ] as const)
          refusedWith(await member.send(method, `/keys/${foreign.id}${path}`, body), 404, 'NOT_FOUND');
        assert.deepEqual((await other.get(`/keys/${foreign.id}`)).body.suffix, foreign.suffix);

        const { items: teams } = made(await member.get('/teams'), 200);
        assert.deepEqual(
          teams.map(({ id, members }: { id: string; members: string[] }) => [id, members]),
          [[team, [member.userId]]],
        );
        assert.deepEqual(idsOf(await member.get('/members')), [member.userId]);

        const budgets = [
          { scope: 'account' },
          { scope: 'team', scopeId: team },
          { scope: 'member', scopeId: other.userId },
          { scope: 'key', scopeId: foreign.id },
          { scope: 'member', scopeId: member.userId },
          { scope: 'key', scopeId: own.id },
        ].map((scope) => ({ ...scope, window: 'week', limitUsd: '1' }));
        const ids: string[] = [];
        for (const budget of budgets) ids.push(made(await owner.send('POST', '/budgets', budget)).id);
        const seen = ids.slice(4).reverse();
        assert.deepEqual(idsOf(await member.get('/budgets')), seen);
        assert.deepEqual(idsOf(await member.get('/budgets?scope=key')), seen.slice(0, 1));
        for (const id of ids)
          assert.equal((await member.get(`/budgets/${id}`)).status, seen.includes(id) ? 200 : 404, id);
      });

      it('sees only the records of its own keys, and not what the account has', async () => {
        const [member, other] = [await signIn('member'), await signIn('member')];
        const [own, foreign] = [await newKey(member), await newKey(other)];
        for (const [requestId, { id: keyId, memberId: member_id }] of [
          [`req_own_${own.id}`, own],
          [`req_foreign_${own.id}`, foreign],
        ] as const)
          await desk.database('usage_records').insert({ ...recordOf(requestId, accountId, keyId), member_id });
        const requests = async (path: string) =>
          made(await member.get(path), 200).items.map(({ requestId }: { requestId: string }) => requestId);
        assert.deepEqual(await requests('/usage'), [`req_own_${own.id}`]);
        assert.deepEqual(await requests(`/usage?key=${foreign.id}`), []);
        assert.equal((await member.get(`/usage/req_own_${own.id}`)).status, 200);
        refusedWith(await member.get(`/usage/req_foreign_${own.id}`), 404, 'NOT_FOUND');
        refusedWith(await desk.get(`/v1/usage/req_foreign_${own.id}`, own.key), 404, 'NOT_FOUND');
        assert.equal((await desk.get('/v1/usage', own.key)).body.items.length, 1);
        for (const answer of [await member.get('/usage.csv'), await desk.get('/v1/usage.csv', own.key)]) {
          const csv = made(answer, 200);
          assert.ok(csv.includes(`req_own_${own.id}`) && !csv.includes('req_foreign_'));
        }
        for (const [browser, calls] of [
          [member, 1],
          [owner, 2],
        ] as const) {
          assert.equal(made(await browser.get('/usage/totals'), 200).calls, calls);
          const { groups } = made(await browser.get('/usage/series?interval=day&by=key'), 200);
          assert.equal(groups.length, calls);
          const overview = made(await browser.get('/overview'), 200);
          assert.equal(overview.spend.todayUsd, `0.0000000${calls}`);
          assert.equal(overview.balanceUsd, browser === member ? null : '5.00000000');
        }
      });

      it('makes keys of itself in its first team, or in another that it names', async () => {
        const [member, other] = [await signIn('member'), await signIn('member')];
        assert.equal((await newKey(member)).teamId, null);
        const first = await newTeam('first', member);
        const second = await newTeam('second', member);
        const foreign = await newTeam('foreign', other);
        const key = await newKey(member);
        assert.deepEqual([key.memberId, key.teamId], [member.userId, first]);
        const named = await newKey(member, { teamId: second, memberId: member.userId, balanceLimit: '1' });
        assert.deepEqual([named.memberId, named.teamId], [member.userId, second]);
        const create = (body: object) => member.send('POST', '/keys', { name: 'x', ...body });
        refusedWith(await create({ memberId: other.userId }), 403, 'FORBIDDEN', 'memberId');
        for (const teamId of [foreign, newId()]) refusedWith(await create({ teamId }), 403, 'FORBIDDEN', 'teamId');
      });

      it('does not move its keys, and lowers their limits but does not raise or remove them', async () => {
        const [member, other] = [await signIn('member'), await signIn('member')];
        const team = await newTeam('first', member);
        const second = await newTeam('second', member);
        const { id } = await newKey(member, { dailyLimit: '2', callsPerMinute: 10 });
        const change = (body: object) => member.send('PATCH', `/keys/${id}`, body);
        for (const [field, value] of [
          ['teamId', second],
          ['teamId', null],
          ['memberId', other.userId],
          ['memberId', null],
          ['dailyLimit', '2.00000001'],
          ['dailyLimit', null],
          ['callsPerMinute', 11],
          ['requiredTags', null],
          ['require', null],
        ] as const)
          refusedWith(await change({ [field]: value, name: 'changed' }), 403, 'FORBIDDEN', field);
        const kept = made(await owner.get(`/keys/${id}`), 200);
        assert.deepEqual([kept.name, kept.teamId, kept.dailyLimit], ['a key', team, '2.00000000']);
        const lower = { dailyLimit: '1', callsPerMinute: 10, monthlyLimit: '9', teamId: team, name: 'less' };
        const lowered = made(await change(lower), 200);
        assert.deepEqual(
          [lowered.dailyLimit, lowered.monthlyLimit, lowered.name],
          ['1.00000000', '9.00000000', 'less'],
        );
        // An owner raises the limit and passes the key on by name; then it is a key of another.
        made(await owner.send('PATCH', `/keys/${id}`, { dailyLimit: '5', memberId: other.userId }), 200);
        refusedWith(await change({ name: 'back' }), 404, 'NOT_FOUND');
        assert.deepEqual(idsOf(await other.get('/keys')), [id]);
      });

      it('of one account gives nothing of another', async () => {
        const stranger = await signIn('owner', (await desk.customer()).accountId);
        const team = await newTeam('team', owner);
        const budget = made(await owner.send('POST', '/budgets', { scope: 'account', window: 'day', limitUsd: '1' }));
        const { id } = await invite({ email: `${newId()}@example.com`, role: 'viewer', teamIds: [team] });
        for (const [method, path, body] of [
          ['PATCH', `/teams/${team}`, { name: 'taken' }],
          ['DELETE', `/teams/${team}`],
          ['PUT', `/teams/${team}/members/${stranger.userId}`, {}],
          ['DELETE', `/teams/${team}/members/${owner.userId}`],
          ['GET', `/budgets/${budget.id}`],
          ['PATCH', `/budgets/${budget.id}`, { limitUsd: '2' }],
          ['DELETE', `/budgets/${budget.id}`],
          ['DELETE', `/invitations/${id}`],
          ['PATCH', `/members/${owner.userId}`, { role: 'viewer' }],
          ['DELETE', `/members/${owner.userId}`],
        ] as const)
          refusedWith(await stranger.send(method, path, body), 404, 'NOT_FOUND');
        const foreign = { scope: 'team', scopeId: team, window: 'day', limitUsd: '1' };
        refusedWith(await stranger.send('POST', '/budgets', foreign), 404, 'NOT_FOUND', 'scopeId');
        for (const path of ['/teams', '/budgets', '/invitations'])
          assert.deepEqual(idsOf(await stranger.get(path)), []);
        assert.deepEqual(idsOf(await stranger.get('/members')), [stranger.userId]);
      });
    });

    describe('an invitation', () => {
      it('makes a user with its address, role and teams once, for whoever has the link', async () => {
        const team = await newTeam('team');
        const gone = await newTeam('gone');
        const email = `Ada-${newId()}@Example.com`;
        const { token, ...shown } = await invite({ email, role: 'member', teamIds: [team, gone] });
        assert.deepEqual(Object.keys(shown), ['id', 'email', 'role', 'teamIds', 'expiresAt', 'path', 'url']);
        assert.deepEqual([shown.email, shown.role, shown.teamIds], [email.toLowerCase(), 'member', [team, gone]]);
        const { path: _path, url: _url, ...listed } = shown;
        assert.deepEqual((await owner.get('/invitations')).body, { items: [listed], nextCursor: null });
        const stored = JSON.stringify(await desk.database('invitations'));
        assert.ok(stored.includes(hashToken(token)) && !stored.includes(token));
        const daysLeft = (Date.parse(shown.expiresAt) - Date.now()) / 86_400_000;
        assert.ok(daysLeft > 6.9 && daysLeft <= 7);

        await owner.send('DELETE', `/teams/${gone}`);
        refusedWith(await accept(token, 'too short'), 400, 'INVALID_FIELD', 'password');
        refusedWith(await accept(`${token}x`), 401, 'SIGN_IN_FAILED');
        const browser = new TestBrowser(desk.publicUrl);
        const { user, account } = made(await accept(token, PASSWORD, browser));
        assert.deepEqual([user.email, user.role, account.id], [email.toLowerCase(), 'member', accountId]);
        assert.deepEqual((await browser.get('/teams')).body.items[0].members, [user.id]);
        refusedWith(await accept(token), 401, 'SIGN_IN_FAILED');
        assert.deepEqual(idsOf(await owner.get('/invitations')), []);
        assert.equal((await new TestBrowser(desk.publicUrl).signIn(email, PASSWORD)).status, 201);
        const audit = await desk.admin('GET', `/audit?subject=user:${user.id}&action=user.create`);
        assert.deepEqual(audit.body.items[0].after.teamIds, [team]);
      });

      it('makes one session for two requests at once', async () => {
        const { token } = await invite({ email: `${newId()}@example.com`, role: 'viewer' });
        const answers = await Promise.all([accept(token), accept(token)]);
        assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 401]);
        assert.equal((await owner.get('/members')).body.items.length, 2);
      });

      it('does not work once it has expired, was withdrawn or replaced, or the address has got a user', async () => {
        const email = `${newId()}@example.com`;
        const replaced = await invite({ email, role: 'admin' });
        const expired = await invite({ email, role: 'viewer' });
        assert.deepEqual(idsOf(await owner.get('/invitations')), [expired.id]);
        await desk.database('invitations').where({ id: expired.id }).update({ expires_at: new Date() });
        const withdrawn = await invite({ email: `${newId()}@example.com`, role: 'viewer' });
        made(await owner.send('DELETE', `/invitations/${withdrawn.id}`), 200);
        refusedWith(await owner.send('DELETE', `/invitations/${withdrawn.id}`), 404, 'NOT_FOUND');
        const taken = await invite({ email: `${newId()}@example.com`, role: 'viewer' });
        const { accountId: elsewhere } = await desk.customer();
        const user = { email: taken.email, password: PASSWORD };
        made(await desk.admin('POST', `/accounts/${elsewhere}/users`, user));
        for (const { token } of [replaced, expired, withdrawn, taken])
          refusedWith(await accept(token), 401, 'SIGN_IN_FAILED');
        const again = await owner.send('POST', '/invitations', { email: taken.email.toUpperCase(), role: 'viewer' });
        refusedWith(again, 409, 'CONFLICT', 'email');
      });

      it('ends with the role of the user who made it', async () => {
        const admin = await signIn('admin');
        for (const [role, end] of [
          ['admin', () => changeRole(owner, admin.userId, 'viewer')],
          ['admin', () => desk.admin('PATCH', `/users/${admin.userId}`, { status: 'disabled' })],
          ['admin', () => remove(owner, admin.userId)],
        ] as const) {
          await desk.database('users').where({ id: admin.userId }).update({ role, status: 'active' });
          const again = await signedInAgain(admin);
          const body = { email: `${newId()}@example.com`, role };
          const { path } = made(await again.send('POST', '/invitations', body));
          assert.equal((await end()).status, 200);
          refusedWith(await accept(path.split('=')[1]), 401, 'SIGN_IN_FAILED');
        }
      });

      it('is refused for wrong bodies and for teams of other accounts', async () => {
        const send = (body: object) => owner.send('POST', '/invitations', { email: 'x@example.com', ...body });
        refusedWith(await send({}), 400, 'INVALID_FIELD', 'role');
        refusedWith(await send({ role: 'operator' }), 400, 'INVALID_FIELD', 'role');
        refusedWith(await send({ role: 'viewer', email: 'x' }), 400, 'INVALID_FIELD', 'email');
        refusedWith(await send({ role: 'viewer', teamIds: ['x'] }), 400, 'INVALID_FIELD', 'teamIds[0]');
        refusedWith(await send({ role: 'viewer', teamIds: [newId()] }), 404, 'NOT_FOUND', 'teamIds[0]');
        assert.deepEqual(idsOf(await owner.get('/invitations')), []);
      });

      it('is asked for in the same way by operators, and its wrong tokens are slowed by place', async () => {
        const body = { email: `${newId()}@example.com`, role: 'owner' };
        const invitation = made(await desk.admin('POST', `/accounts/${accountId}/invitations`, body));
        assert.deepEqual(idsOf(await desk.admin('GET', `/accounts/${accountId}/invitations`)), [invitation.id]);
        refusedWith(await desk.admin('POST', `/accounts/${newId()}/invitations`, body), 404, 'NOT_FOUND');
        const codes: string[] = [];
        for (let tries = 0; tries < 40 && !codes.includes('SIGN_IN_SLOWED'); tries += 1)
          codes.push((await accept('wrong')).body.error.code);
        assert.equal(codes.at(-1), 'SIGN_IN_SLOWED');
        await desk.database('sign_in_attempts').delete();
        made(await accept(invitation.path.split('=')[1]));
      });
    });

    describe('a removed member', () => {
      it('loses keys, sessions, teams and sign-in before the answer, and its address is free', async () => {
        const email = `${newId()}@example.com`;
        const team = await newTeam('team');
        const { token } = await invite({ email, role: 'member', teamIds: [team] });
        const member = new TestBrowser(desk.publicUrl);
        const { user } = made(await accept(token, PASSWORD, member));
        const { key, id } = await newKey(member);
        assert.equal((await desk.get('/v1/balance', key)).status, 200);
        const removed = made(await remove(owner, user.id), 200);
        assert.deepEqual([removed.id, removed.email, removed.status], [user.id, email, 'removed']);
        refusedWith(await desk.get('/v1/balance', key), 401, 'INVALID_API_KEY');
        refusedWith(await member.get('/session'), 401, 'NOT_SIGNED_IN');
        refusedWith(await new TestBrowser(desk.publicUrl).signIn(email, PASSWORD), 401, 'SIGN_IN_FAILED');
        assert.deepEqual(idsOf(await owner.get('/members')), [owner.userId]);
        assert.deepEqual((await owner.get('/teams')).body.items[0].members, []);
        assert.equal((await owner.get(`/keys/${id}`)).body.status, 'revoked');
        refusedWith(await owner.send('POST', '/keys', { name: 'x', memberId: user.id }), 404, 'NOT_FOUND', 'memberId');
        refusedWith(await desk.admin('PATCH', `/users/${user.id}`, { status: 'active' }), 404, 'NOT_FOUND');
        refusedWith(await desk.admin('POST', `/users/${user.id}/sign-in-link`, {}), 404, 'NOT_FOUND');
        assert.equal((await remove(owner, user.id)).status, 200);
        const { userId } = await invite({ email, role: 'viewer' }).then(async (next) => ({
          userId: made(await accept(next.token)).user.id,
        }));
        assert.notEqual(userId, user.id);
        refusedWith(await remove(owner, newId()), 404, 'NOT_FOUND');
      });
    });

    async function signedInAgain({ userId }: TestBrowser): Promise<TestBrowser> {
      const { body } = await desk.admin('POST', `/users/${userId}/sign-in-link`, {});
      const browser = new TestBrowser(desk.publicUrl);
      made(await browser.send('POST', '/session/link', { token: body.path.split('=')[1] }));
      return browser;
    }
  });
}

function recordOf(requestId: string, accountId: string, keyId: string): object {
  return {
    request_id: requestId,
    created_at: new Date(),
    account_id: accountId,
    key_id: keyId,
    protocol: 'messages',
    path: '/v1/messages',
    strategy: 'quality',
    model_requested: 'acme',
    model: 'acme',
    upstream: 'one',
    attempts: 1,
    fallback: false,
    stream: false,
    status: 200,
    source: 'provider',
    input_tokens: 1,
    output_tokens: 1,
    total_tokens: 2,
    cache_creation_tokens: 0,
    cache_read_tokens: 0,
    cost_e8: 1n,
    billing: 'actual',
    response_time_ms: 1,
    config_revision: 'revision',
  };
}
