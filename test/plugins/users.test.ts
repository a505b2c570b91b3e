import assert from 'node:assert/strict';
import { newId } from '../../core/base/ids';
import { findBySignIn } from '../../core/sign-in/users';
import { openDesk, type TestDesk } from '../support/desk';

const PASSWORD = 'correct horse battery';

describe('users of the console', () => {
  let desk: TestDesk;
  let people = 0;
  const newUser = async () => {
    const { accountId } = await desk.customer();
    people += 1;
    const email = `person-${people}@example.com`;
    const { body } = await desk.admin('POST', `/accounts/${accountId}/users`, { email, password: PASSWORD });
    return { accountId, email, userId: String(body.id), body };
  };
  before(async () => {
    desk = await openDesk('Postgres');
  });
  after(() => desk.close());

  it('are created with an address and a password, and listed without the password', async () => {
    const { accountId, email, userId, body } = await newUser();
    const fields = ['id', 'accountId', 'email', 'role', 'status', 'createdAt', 'passwordChangedAt', 'identity'];
    assert.deepEqual(Object.keys(body), fields);
    const listed = await desk.admin('GET', `/accounts/${accountId}/users`);
    assert.deepEqual(listed.body, { items: [body], nextCursor: null });
    const found = await findBySignIn(desk.database, email.toUpperCase(), PASSWORD);
    assert.equal(found?.id, userId);
    assert.equal(found?.accountId, accountId);
    assert.equal(await findBySignIn(desk.database, email, `${PASSWORD} `), undefined);
    assert.equal(await findBySignIn(desk.database, 'nobody@example.com', PASSWORD), undefined);
  });

  it('have a unique e-mail address, however the address is spelled', async () => {
    const { email } = await newUser();
    const { accountId } = await desk.customer();
    const wanted = { email: email.replace('person', 'PERSON'), password: PASSWORD };
    const { status, body } = await desk.admin('POST', `/accounts/${accountId}/users`, wanted);
    assert.equal(status, 409);
    assert.equal(body.error.param, 'email');
  });

  it('get a new password, and are disabled and enabled; each of these changes ends their sessions', async () => {
    const { email, userId } = await newUser();
    const session = { token_hash: 'a'.repeat(64), user_id: userId, expires_at: new Date(Date.now() + 60_000) };
    for (const [changes, password, canSignIn] of [
      [{ password: 'another long password' }, 'another long password', true],
      [{ status: 'disabled' }, 'another long password', false],
      [{ status: 'active' }, 'another long password', true],
    ] as const) {
      await desk.database('user_sessions').insert(session);
      const { status, body } = await desk.admin('PATCH', `/users/${userId}`, changes);
      assert.equal(status, 200);
      assert.equal(body.status, 'status' in changes ? changes.status : 'active');
      assert.deepEqual(await desk.database('user_sessions').where({ user_id: userId }), []);
      assert.equal((await findBySignIn(desk.database, email, password)) !== undefined, canSignIn);
    }
    assert.equal(await findBySignIn(desk.database, email, PASSWORD), undefined);
  });

  it('leave audit rows that record a new password without its value', async () => {
    const { userId } = await newUser();
    await desk.admin('PATCH', `/users/${userId}`, { password: 'another long password', status: 'disabled' });
    const { body } = await desk.admin('GET', `/audit?subject=user:${userId}`);
    assert.deepEqual(
      body.items.map(({ action, before, after }: Record<string, unknown>) => [action, before, after]).slice(0, 1),
      [['user.update', { status: 'active' }, { status: 'disabled', passwordChanged: true }]],
    );
    const stored = JSON.stringify(await desk.database('audit_log'));
    for (const secret of [PASSWORD, 'another long password', '$scrypt$']) assert.ok(!stored.includes(secret));
  });

  it('cause a 404 if their id is unknown', async () => {
    for (const id of [newId(), '1', "'"]) {
      const answer = await desk.admin('PATCH', `/users/${encodeURIComponent(id)}`, { status: 'disabled' });
      assert.equal(answer.status, 404);
      assert.equal((await desk.admin('GET', `/accounts/${encodeURIComponent(id)}/users`)).status, 404);
    }
  });

  for (const [field, body] of [
    ['email', { email: 'nobody', password: PASSWORD }],
    ['email', { email: 'a b@example.com', password: PASSWORD }],
    ['email', { email: `${'x'.repeat(250)}@example.com`, password: PASSWORD }],
    ['email', { password: PASSWORD }],
    ['password', { email: 'short@example.com', password: 'short' }],
    ['password', { email: 'long@example.com', password: 'x'.repeat(201) }],
    ['password', { email: 'odd@example.com', password: 12_345_678_901_234 }],
    ['role', { email: 'role@example.com', password: PASSWORD, role: 'operator' }],
  ] as const) {
    it(`are refused because of their ${field}: ${JSON.stringify(body).slice(0, 60)}`, async () => {
      const { accountId } = await desk.customer();
      const answer = await desk.admin('POST', `/accounts/${accountId}/users`, body);
      assert.equal(answer.status, 400);
      assert.equal(answer.body.error.param, field);
      assert.ok(!JSON.stringify(answer.body).includes('horse'));
    });
  }
});
