import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { createAccount, setAccountStatus } from '../../../core/accounts/accounts';
import { createBudget, updateBudget } from '../../../core/accounts/budgets';
import { addCredit } from '../../../core/accounts/credits';
import { createKey, revokeKey, updateKey } from '../../../core/accounts/keys';
import { startSweeper } from '../../../core/accounts/sweeper';
import { createTeam, deleteTeam, listTeams, updateTeam } from '../../../core/accounts/teams';
import { CLOSED_MS, LedgerUnavailable } from '../../../core/ledger/ledger';
import { MemoryLedger } from '../../../core/ledger/memory-ledger';
import { shipShards } from '../../../core/ledger/outbox/ship';
import { ALL_SHARDS } from '../../../core/ledger/shard';
import { removeUser } from '../../../core/sign-in/members';
import { createUser } from '../../../core/sign-in/users';
import { DATABASES, quiet, type TestDatabase } from '../../support/databases';
import { KEY_RATES } from '../../support/key-rates';
import { rejection } from '../../support/rejection';
import { until } from '../../support/until';
import { assertIncludes, instead } from '../ledger/ledger-fixture';

describe('a change that a process wrote to Postgres and did not send to the ledger before its end', () => {
  let test: TestDatabase;
  let database: Knex;
  let ledger: MemoryLedger;

  before(async () => {
    const [postgres] = DATABASES;
    assert.ok(postgres !== undefined);
    test = await postgres.open();
    database = test.database;
  });
  after(() => test.close());
  beforeEach(async () => {
    ledger = new MemoryLedger();
    await ledger.open();
  });

  const away = () => Promise.reject(new LedgerUnavailable('its process ended'));
  /** Writes rows to the database but never calls the ledger. */
  const ending = () => ({
    database,
    calls: ledger,
    ledger: instead(ledger, { credit: away, setKey: away, setAccount: away, setScope: away }),
  });
  const whole = () => ({ database, ledger, calls: ledger, keys: { rates: KEY_RATES } });
  const sweepUntil = async (what: string, condition: () => Promise<boolean>) => {
    const sweeper = startSweeper({ ...whole(), log: quiet, everyMs: 20, olderThanMs: 0 });
    await until(what, condition).finally(() => sweeper.stop());
  };

  it('is sent to the ledger by another process if it concerns a key or an account', async () => {
    const account = await createAccount(whole(), { name: 'an account' }, 'test');
    const { key } = await createKey(whole(), account.id, { name: 'a key', allowedModels: undefined }, 'test');
    const payer = { accountId: account.id, keyId: key.id };
    await rejection(updateKey(ending(), key.id, { dailyLimitE8: 5n, callsPerMinute: 7 }, 'test'));
    await rejection(setAccountStatus(ending(), account.id, 'frozen', 'test'));
    assert.equal((await ledger.readKey(payer))?.dailyLimitE8, undefined);
    await sweepUntil('both are told', async () => {
      const [there, state] = [await ledger.readKey(payer), await ledger.readAccount(account.id)];
      return there?.callsPerMinute === 7 && there.dailyLimitE8 === 5n && state?.status === 'frozen';
    });
    await rejection(revokeKey(ending(), key.id, 'test'));
    await sweepUntil('it is revoked', async () => (await ledger.readKey(payer))?.status === 'revoked');
  });

  it('is sent to the ledger by another process if it removes a member', async () => {
    const account = await createAccount(whole(), { name: 'an account' }, 'test');
    const person = { email: `${account.id}@example.com`, password: 'correct horse battery', role: 'member' } as const;
    const { id: memberId } = await createUser(database, account.id, person, 'test');
    const { key } = await createKey(whole(), account.id, { name: 'a key', memberId }, 'test');
    await rejection(removeUser(ending(), memberId, { actor: 'test' }));
    const payer = { accountId: account.id, keyId: key.id };
    assert.equal((await ledger.readKey(payer))?.status, 'active');
    await sweepUntil('its key is revoked', async () => (await ledger.readKey(payer))?.status === 'revoked');
  });

  it('is sent to the ledger by another process if it concerns a team or a budget', async () => {
    const account = await createAccount(whole(), { name: 'an account' }, 'test');
    const { key } = await createKey(whole(), account.id, { name: 'a key' }, 'test');
    await rejection(createTeam(ending(), account.id, { name: 'a team' }, 'test'));
    const { items } = await listTeams(database, account.id, { limit: 1, cursor: undefined });
    const teamId = items[0]?.id ?? '';
    const limitsOf = async (scope: string) => (await ledger.readScope(account.id, scope))?.limits;
    await sweepUntil('the team is told', async () => (await limitsOf(`t:${teamId}`)) !== undefined);

    const wanted = { scope: 'team', scopeId: teamId, window: 'week', limitE8: 5n } as const;
    await rejection(createBudget(ending(), account.id, wanted, 'test'));
    const ofKey = { scope: 'key', scopeId: key.id, window: 'week', limitE8: 6n } as const;
    await rejection(createBudget(ending(), account.id, ofKey, 'test'));
    const ofAccount = await createBudget(whole(), account.id, { scope: 'account', window: 'day', limitE8: 9n }, 'test');
    await rejection(updateBudget(ending(), ofAccount.id, { limitE8: 7n }, 'test'));
    assert.deepEqual(await limitsOf(`a:${account.id}`), { day: 9n });
    await sweepUntil('the budgets are told', async () => {
      const scopes = [`t:${teamId}`, `a:${account.id}`, `k:${key.id}`];
      const [team, own, ofIt] = await Promise.all(scopes.map(limitsOf));
      return team?.week === 5n && own?.day === 7n && ofIt?.week === 6n;
    });

    await rejection(updateTeam(ending(), teamId, { name: 'renamed' }, 'test'));
    await rejection(deleteTeam(ending(), teamId, 'test'));
    assert.deepEqual(await limitsOf(`t:${teamId}`), { week: 5n });
    await sweepUntil('its limits are gone', async () => (await limitsOf(`t:${teamId}`))?.week === undefined);
  });

  it('is sent to the ledger once if it is a credit, even if another process repeats it long after', async () => {
    let now = Date.now();
    ledger = new MemoryLedger({ now: () => now });
    await ledger.open();
    const account = await createAccount(whole(), { name: 'an account' }, 'test');
    const wanted = { accountId: account.id, amountE8: 70n, idempotencyKey: 'one', note: undefined };
    await rejection(addCredit(ending(), wanted, 'test'));
    await sweepUntil('it is there', async () => (await ledger.readAccount(account.id))?.postedE8 === 70n);
    await shipShards({ ledger, database, log: quiet }, ALL_SHARDS);
    now += CLOSED_MS + 1;
    const again = await addCredit(whole(), wanted, 'test');
    assertIncludes(again, { repeated: true, postedE8: 70n });
    assert.equal((await ledger.readAccount(account.id))?.postedE8, 70n);
  });
});
