import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { GatewayError } from '../../../core/base/errors';
import { Operators } from '../../../core/operators/operators';
import type { OperatorRole } from '../../../core/operators/roles';
import { createOperatorToken, revokeOperatorToken } from '../../../core/operators/tokens';
import { DATABASES, quiet, type TestDatabase } from '../../support/databases';
import { rejection } from '../../support/rejection';

const TIMES = { idleMs: 3_600_000, lifetimeMs: 43_200_000 };
const ADMIN_TOKEN = 'the-first-token';

for (const { name, open } of DATABASES) {
  describe(`sessions of operators, on ${name}`, function () {
    this.timeout(30_000);
    let opened: TestDatabase;
    let count = 0;
    before(async () => {
      opened = await open();
    });
    after(() => opened.close());

    const process = (adminToken = ADMIN_TOKEN, now: () => number = Date.now) =>
      new Operators({
        adminToken,
        database: opened.database,
        proxies: { count: 0, isProxy: () => false },
        log: quiet,
        now,
      });
    const requestWith = (headers: Record<string, string>) =>
      ({ method: 'GET', headers, socket: { remoteAddress: '192.0.2.1' } }) as unknown as IncomingMessage;
    const begin = (token: string) => process().signIn(requestWith({}), token, TIMES);
    const admit = (session: string, needed: OperatorRole = 'read', of = process()) =>
      of.admit(requestWith({ cookie: `tollgate-operator=${session}` }), needed);
    const age = (column: 'used_at' | 'expires_at', seconds: number) =>
      opened.database('operator_sessions').update({ [column]: new Date(Date.now() - seconds * 1_000) });

    async function codeOf(work: Promise<unknown>): Promise<string> {
      const error = await rejection(work);
      assert.ok(error instanceof GatewayError, String(error));
      return error.code;
    }

    function newToken(role: OperatorRole, expiresAt: Date | undefined = undefined) {
      count += 1;
      return createOperatorToken(opened.database, { name: `page-${count}`, role, expiresAt }, 'admin');
    }

    it('are found by their token, and the database stores nothing with which a session can be opened', async () => {
      const { secret, token } = await newToken('write');
      const session = await begin(secret);
      const first = await begin(ADMIN_TOKEN);
      assert.equal((await admit(session.token)).actor, `token:${token.name}`);
      assert.equal((await admit(first.token, 'owner')).actor, 'admin');
      assert.equal(await codeOf(admit(`${session.token}x`)), 'NOT_SIGNED_IN');
      const rows = await opened.database('operator_sessions');
      for (const secretText of [session.token, first.token, secret, ADMIN_TOKEN])
        assert.ok(!JSON.stringify(rows).includes(secretText));
      const sealed = new Set(rows.map((row: { operator_token: string }) => row.operator_token));
      const again = await begin(ADMIN_TOKEN);
      assert.ok(!sealed.has(again.operatorToken), 'ADMIN_TOKEN is not the same in two rows');
    });

    it('have the role of the operator token that started them', async () => {
      const session = await begin((await newToken('read')).secret);
      assert.equal((await admit(session.token)).role, 'read');
      assert.equal(await codeOf(admit(session.token, 'write')), 'OPERATOR_ROLE_NEEDED');
    });

    it('end after the idle time has passed without a request', async () => {
      const { token } = await begin(ADMIN_TOKEN);
      await age('used_at', 3_590);
      await admit(token);
      // The last admission counts as a request.
      await admit(token);
      await age('used_at', 3_601);
      assert.equal(await codeOf(admit(token)), 'NOT_SIGNED_IN');
    });

    it('end after their maximum lifetime, even if they are in use', async () => {
      const { token } = await begin(ADMIN_TOKEN);
      await age('expires_at', 1);
      assert.equal(await codeOf(admit(token)), 'NOT_SIGNED_IN');
      await begin(ADMIN_TOKEN);
      const ended = await opened.database('operator_sessions').where('expires_at', '<', new Date());
      assert.equal(ended.length, 0, 'ended ones are swept');
    });

    it('end at once when the operator token that started them is revoked or expires', async () => {
      const { secret, token } = await newToken('write');
      const session = await begin(secret);
      await admit(session.token);
      await revokeOperatorToken(opened.database, token.id, 'admin');
      assert.equal(await codeOf(admit(session.token)), 'NOT_SIGNED_IN');
      const expiresAt = new Date(Date.now() + 60_000);
      const short = await begin((await newToken('write', expiresAt)).secret);
      await admit(short.token);
      const later = process(ADMIN_TOKEN, () => expiresAt.getTime());
      assert.equal(await codeOf(admit(short.token, 'read', later)), 'NOT_SIGNED_IN');
    });

    it('end when ADMIN_TOKEN is replaced', async () => {
      const { token } = await begin(ADMIN_TOKEN);
      assert.equal(await codeOf(admit(token, 'read', process('another token'))), 'NOT_SIGNED_IN');
    });

    it('are ignored if the request has an operator token', async () => {
      const { token } = await begin(ADMIN_TOKEN);
      const both = requestWith({ cookie: `tollgate-operator=${token}`, authorization: 'Bearer wrong' });
      assert.equal(await codeOf(process().admit(both, 'read')), 'INVALID_API_KEY');
    });
  });
}
