import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { GatewayError } from '../../../core/base/errors';
import { Operators } from '../../../core/operators/operators';
import { mayDo, type OperatorRole, ROLE_NAMES } from '../../../core/operators/roles';
import { createOperatorToken, listOperatorTokens, revokeOperatorToken } from '../../../core/operators/tokens';
import { migrate } from '../../../core/storage/database';
import { DATABASES, quiet, type TestDatabase } from '../../support/databases';
import { NO_PROXIES } from '../../support/proxies';
import { rejection } from '../../support/rejection';

const ADMIN_TOKEN = 'the-first-token';
const EXPIRES_AT = new Date('2027-01-01T00:00:00.000Z');
const BEFORE_MS = EXPIRES_AT.getTime() - 1;

for (const { name, open } of DATABASES) {
  describe(`operator tokens, on ${name}`, function () {
    this.timeout(60_000);
    let opened: TestDatabase;
    let operators: Operators;
    let nowMs: number;
    let count = 0;
    before(async () => {
      opened = await open();
      await migrate(opened.database);
    });
    after(() => opened.close());
    beforeEach(() => {
      nowMs = BEFORE_MS;
      operators = anotherProcess();
    });

    function anotherProcess(): Operators {
      return new Operators({
        adminToken: ADMIN_TOKEN,
        database: opened.database,
        proxies: NO_PROXIES,
        log: quiet,
        now: () => nowMs,
      });
    }

    async function newToken(role: OperatorRole, expiresAt: Date | undefined = EXPIRES_AT) {
      count += 1;
      return createOperatorToken(opened.database, { name: `token-${count}`, role, expiresAt }, 'admin');
    }

    const showing = (token: string, remoteAddress = '192.0.2.1') =>
      ({ headers: { authorization: `Bearer ${token}` }, socket: { remoteAddress } }) as unknown as IncomingMessage;

    async function refusal(token: string, needed: OperatorRole = 'metrics', of = operators): Promise<GatewayError> {
      const error = await rejection(of.admit(showing(token), needed));
      assert.ok(error instanceof GatewayError, String(error));
      return error;
    }

    it('include ADMIN_TOKEN, which has the role owner', async () => {
      assert.deepEqual(await operators.admit(showing(ADMIN_TOKEN), 'owner'), {
        name: 'admin',
        role: 'owner',
        actor: 'admin',
        expiresAt: undefined,
      });
      for (const wrong of [ADMIN_TOKEN.slice(0, -1), `${ADMIN_TOKEN}x`, ''])
        assert.equal((await refusal(wrong)).code, 'INVALID_API_KEY');
    });

    for (const role of ROLE_NAMES) {
      it(`with the role ${role} allow what the role may do, and the error for anything else names the required role`, async () => {
        const { secret, token } = await newToken(role);
        for (const needed of ROLE_NAMES) {
          if (mayDo(role, needed)) {
            const { actor, role: has } = await operators.admit(showing(secret), needed);
            assert.deepEqual([actor, has], [`token:${token.name}`, role]);
            continue;
          }
          const { code, status, message, options } = await refusal(secret, needed);
          assert.deepEqual([code, status], ['OPERATOR_ROLE_NEEDED', 403]);
          assert.deepEqual(options.details, { needed, role });
          assert.match(message, new RegExp(`role "${needed}"; "${token.name}" has the role "${role}"`));
        }
      });
    }

    it('are refused from the millisecond at which they expire', async () => {
      const { secret, token } = await newToken('read');
      await operators.admit(showing(secret), 'read');
      nowMs = EXPIRES_AT.getTime();
      const { status, message } = await refusal(secret, 'read');
      assert.equal(status, 401);
      assert.match(message, new RegExp(`"${token.name}" has expired at 2027-01-01T00:00:00.000Z`));
    });

    it('that are revoked are refused in every process once the change is confirmed, and do not count as guesses', async () => {
      const other = anotherProcess();
      const { secret, token } = await newToken('owner');
      for (const each of [operators, other]) await each.admit(showing(secret), 'owner');
      await revokeOperatorToken(opened.database, token.id, 'admin');
      for (const each of [operators, other])
        for (let request = 0; request < 25; request += 1) {
          const { status, message } = await refusal(secret, 'metrics', each);
          assert.equal(status, 401);
          assert.match(message, /is revoked/);
        }
    });

    it('are stored without the secret or anything from which it can be computed', async () => {
      const { secret } = await newToken('owner');
      const rows = await opened.database('operator_tokens');
      const audit = await opened.database('audit_log');
      assert.ok(!JSON.stringify([rows, audit]).includes(secret.slice(7, -4)));
      assert.match(secret, /^op-svc-[0-9A-Za-z]{46}$/);
    });

    it('are accepted from an address that also sends wrong tokens, and a wrong token gets Retry-After', async () => {
      const { secret } = await newToken('read');
      let last = await refusal('guess');
      for (let guess = 0; guess < 25; guess += 1) last = await refusal('guess');
      assert.equal(last.status, 429);
      assert.ok((last.options.retryAfterSeconds ?? 0) >= 1);
      await operators.admit(showing(secret), 'read');
      const elsewhere = await rejection(operators.admit(showing('guess', '192.0.2.2'), 'read'));
      assert.ok(elsewhere instanceof GatewayError && elsewhere.status === 401);
      assert.match(elsewhere.message, /role "read"/);
    });

    it('never get the name of another token, even of a revoked one', async () => {
      const { token } = await newToken('read');
      await revokeOperatorToken(opened.database, token.id, 'admin');
      const again = createOperatorToken(
        opened.database,
        { name: token.name, role: 'read', expiresAt: undefined },
        'admin',
      );
      const error = await rejection(again);
      assert.ok(error instanceof GatewayError && error.code === 'CONFLICT' && error.options.param === 'name');
    });
  });
}

describe('operator tokens while the database is unavailable', function () {
  this.timeout(60_000);

  it('allow only reading, for an hour, if this process has already accepted them', async () => {
    const opened = await (DATABASES[0] as (typeof DATABASES)[number]).open();
    const { database } = opened;
    await migrate(database);
    let nowMs = Date.now();
    const operators = new Operators({
      adminToken: ADMIN_TOKEN,
      database,
      proxies: NO_PROXIES,
      log: quiet,
      now: () => nowMs,
    });
    const make = async (name: string, expiresAt?: Date) =>
      (await createOperatorToken(database, { name, role: 'owner', expiresAt }, 'admin')).secret;
    const [seen, unseen] = [await make('seen'), await make('unseen')];
    const ending = await make('ending', new Date(nowMs + 60_000));
    const revoked = await make('revoked');
    const ask = (token: string, needed: OperatorRole) =>
      operators.admit(
        { headers: { authorization: `Bearer ${token}` }, socket: {} } as unknown as IncomingMessage,
        needed,
      );
    for (const token of [seen, ending, revoked]) await ask(token, 'owner');
    const { items } = await listOperatorTokens(database, { limit: 100, cursor: undefined });
    await revokeOperatorToken(database, items.find(({ name }) => name === 'revoked')?.id ?? '', 'admin');
    await rejection(ask(revoked, 'metrics'));
    await opened.close();
    await ask(seen, 'metrics');
    await ask(seen, 'read');
    await ask(ADMIN_TOKEN, 'owner');
    await ask(ending, 'read');
    for (const refused of [ask(seen, 'write'), ask(unseen, 'metrics')])
      assert.match((await rejection(refused)).message, /acquire a connection/);
    assert.match((await rejection(ask(revoked, 'metrics'))).message, /is revoked/);
    nowMs += 60_000;
    assert.match((await rejection(ask(ending, 'read'))).message, /has expired/);
    nowMs += 3_540_000;
    assert.match((await rejection(ask(seen, 'metrics'))).message, /acquire a connection/);
  });
});
