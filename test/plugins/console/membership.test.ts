import assert from 'node:assert/strict';
import { limitKeysOf, pushKeysOf } from '../../../core/accounts/keys';
import { openEgress } from '../../../core/wire/egress';
import { TestBrowser } from '../../support/console';
import { openDesk, type TestDesk } from '../../support/desk';
import { startProvider, type TestProvider } from '../../support/oidc';
import { until } from '../../support/until';

const IDS = ['00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-000000000002'] as const;
const [OURS, FOREIGN] = IDS;

describe('an identity provider that decides teams', function () {
  this.timeout(60_000);
  let provider: TestProvider;
  let desk: TestDesk;
  let accountId: string;
  let person: { userId: string; email: string };
  const egress = openEgress();

  before(async () => {
    provider = await startProvider();
    const { url: issuer, clientId } = provider;
    const oidc = {
      ...{ name: 'Acme', issuer, clientId, clientSecret: { env: 'TEST_OIDC_SECRET' }, allowPrivate: true },
      teams: [
        { group: 'search', team: OURS },
        { group: 'leads', team: OURS },
        { group: 'search', team: FOREIGN },
      ],
    };
    process.env['TEST_OIDC_SECRET'] = provider.clientSecret;
    desk = await openDesk('Postgres', { egress, settings: { oidc } });
    ({ accountId } = await desk.customer('5'));
    const { accountId: elsewhere } = await desk.customer();
    const teams = [accountId, elsewhere].map((account, at) => ({ id: IDS[at], account_id: account, name: 'team' }));
    await desk.database('teams').insert(teams);
  });
  beforeEach(async () => {
    person = await desk.person(accountId);
  });
  after(async () => {
    delete process.env['TEST_OIDC_SECRET'];
    await desk.close();
    await provider.close();
    await egress.close();
  });

  async function signIn(groups?: unknown, more: object = {}): Promise<void> {
    const claims = { sub: person.userId, email: person.email, email_verified: true, groups };
    provider.person = { claims, ...more };
    const browser = new TestBrowser(desk.publicUrl);
    const start = await browser.get('/oidc/start');
    const back = await provider.visit(start.headers.get('location') ?? '');
    const answer = await browser.get(back.pathname.replace('/console/api', '') + back.search);
    assert.equal(answer.headers.get('location'), '/console');
  }
  const teamsOf = async () =>
    (await desk.database('team_members').where({ user_id: person.userId }).orderBy('team_id')).map(
      ({ team_id: id }) => id,
    );
  const newKey = async (more: object = {}) =>
    (await desk.admin('POST', `/accounts/${accountId}/keys`, { name: 'a key', memberId: person.userId, ...more })).body;
  const statusOf = async (key: string) => (await desk.get('/v1/balance', key)).status;

  it('puts a user at each sign-in into the teams of its groups in its account, and takes it out of the others of its table', async () => {
    const { body: own } = await desk.admin('POST', `/accounts/${accountId}/teams`, { name: person.email });
    await desk.admin('PUT', `/teams/${own.id}/members/${person.userId}`, {});
    for (const [groups, teams, more] of [
      [
        ['leads', 'search', 7],
        [OURS, own.id],
      ],
      [['leads'], [OURS, own.id]],
      [['others'], [own.id]],
      ['search', [OURS, own.id]],
      [undefined, [own.id]],
      [['search'], [OURS, own.id], { onlyUserInfo: true }],
    ] as const) {
      await signIn(groups, more);
      assert.deepEqual(await teamsOf(), [...teams].sort(), String(groups));
    }
    const { body } = await desk.admin('GET', `/audit?subject=team:${OURS}&actor=identity-provider`);
    assert.equal(body.items[0].action, 'team.member.add');
  });

  /** Sets the end of the last confirmation to the past, as if the user had not signed in for thirty days. */
  async function forgetConfirmation(): Promise<void> {
    const { database, ledger } = desk;
    const past = new Date(Date.now() - 1_000);
    await database('users').where({ id: person.userId }).update({ confirmed_until: past });
    await database.transaction((transaction) => limitKeysOf(transaction, person.userId, past));
    await pushKeysOf({ database, ledger, calls: ledger }, person.userId);
  }

  it("stops a bound user's keys in teams thirty days after the last sign-in, until the next one", async () => {
    const before = await newKey({ teamId: OURS });
    await signIn();
    const [inTeam, alone] = [await newKey({ teamId: OURS }), await newKey()];
    const { member_until: at } = await desk.database('api_keys').where({ id: before.id }).first('member_until');
    assert.ok(Math.abs(at.getTime() - Date.now() - 30 * 86_400_000) < 600_000);
    for (const { key } of [before, inTeam, alone]) assert.equal(await statusOf(key), 200);
    await forgetConfirmation();
    const refused = await desk.get('/v1/balance', inTeam.key);
    assert.deepEqual([refused.status, refused.body.error.code], [401, 'INVALID_API_KEY']);
    assert.deepEqual([await statusOf(before.key), await statusOf(alone.key)], [401, 200]);
    await desk.admin('PATCH', `/keys/${alone.id}`, { teamId: OURS });
    assert.equal(await statusOf(alone.key), 401);
    assert.equal(await statusOf((await newKey({ teamId: OURS })).key), 401);

    const worksAgain = async (key: string) =>
      until('the key works again', async () => (await statusOf(key)) === 200 || undefined);
    await signIn();
    for (const { key } of [before, inTeam, alone]) await worksAgain(key);
    // A user without an identity is confirmed by no provider, so that nothing stops its keys.
    await forgetConfirmation();
    assert.equal(await statusOf(before.key), 401);
    assert.equal((await desk.admin('DELETE', `/users/${person.userId}/identity`)).status, 200);
    await worksAgain(before.key);
  });
});
