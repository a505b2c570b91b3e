import assert from 'node:assert/strict';
import { newId } from '../../../core/base/ids';
import { recogniseIdentity, unbindIdentity } from '../../../core/sign-in/identities';
import { DATABASES, type TestDatabase } from '../../support/databases';
import { rejection } from '../../support/rejection';

const ISSUER = 'https://id.example';

for (const { name, open } of DATABASES) {
  describe(`identities of users on ${name}`, function () {
    this.timeout(120_000);
    let opened: TestDatabase;
    before(async () => {
      opened = await open();
    });
    after(() => opened.close());

    async function newUser(): Promise<{ id: string; email: string }> {
      const [id, accountId] = [newId(), newId()];
      const email = `${id}@example.com`;
      await opened.database('accounts').insert({ id: accountId, name: 'one' });
      await opened.database('users').insert({ id, account_id: accountId, email, password_hash: 'none' });
      return { id, email };
    }

    async function signIn(subject: string, email: string, issuer = ISSUER): Promise<string> {
      const user = await recogniseIdentity(opened.database, { issuer, subject }, email);
      return 'refused' in user ? user.refused : user.id;
    }

    it('bind a user to issuer and subject together, until an operator unbinds the user', async () => {
      const { id, email } = await newUser();
      assert.equal(await signIn('ada', email), id);
      assert.equal(await signIn('ada', email, 'https://another.example'), 'bound');
      assert.equal(await signIn('Ada', email), 'bound');
      await unbindIdentity(opened.database, id, 'admin');
      assert.equal(await signIn('ada', email, 'https://another.example'), id);
      assert.equal(await signIn('ada', email), 'bound');
    });

    it('sign in the same user if one subject arrives several times simultaneously', async () => {
      const { id, email } = await newUser();
      const signIns = Array.from({ length: 5 }, () => signIn('bob', email));
      assert.deepEqual(await Promise.all(signIns), [id, id, id, id, id]);
    });

    it('cannot be bound to a second user, because the database rejects it', async () => {
      const [one, two] = [await newUser(), await newUser()];
      const identity = { identity_issuer: ISSUER, identity_subject: 'carol', identity_bound_at: new Date() };
      const bind = (id: string, values: object) => opened.database('users').where({ id }).update(values);
      await bind(one.id, identity);
      assert.match((await rejection(bind(two.id, identity))).message, /duplicate key/);
      const half = { identity_issuer: ISSUER, identity_subject: 'dora' };
      assert.match((await rejection(bind(two.id, half))).message, /users_identity_whole/);
    });
  });
}
