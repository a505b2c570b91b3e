import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { sendJson } from '../../core/http/http';
import { shipShards } from '../../core/ledger/outbox/ship';
import { ALL_SHARDS } from '../../core/ledger/shard';
import { recogniseIdentity } from '../../core/sign-in/identities';
import { findBySignIn } from '../../core/sign-in/users';
import { reserveRequest } from '../store/ledger/ledger-fixture';
import { runTollgate } from '../support/command-line';
import { quiet, temporaryFolder } from '../support/databases';
import { openDesk, type TestDesk } from '../support/desk';
import { freePort } from '../support/free-port';
import { listen } from '../support/serve';

async function tollgate(environment: Record<string, string>, ...args: string[]) {
  return runTollgate(args, environment);
}

async function tollgateReading(input: string, environment: Record<string, string>, ...args: string[]) {
  return runTollgate(args, environment, { read: async () => input });
}

describe('the command line', () => {
  let desk: TestDesk;
  let environment: Record<string, string>;
  const json = async (...args: string[]) => {
    const { status, out, notes } = await tollgate(environment, '--json', ...args);
    assert.equal(status, 0, notes);
    return JSON.parse(out);
  };
  before(async () => {
    desk = await openDesk('Postgres');
    environment = { TOLLGATE_URL: `${desk.adminUrl}/`, TOLLGATE_TOKEN: 'any' };
  });
  after(() => desk.close());

  it('creates an account, credits it, creates a key for it, limits the key and revokes it', async () => {
    const account = await json('accounts', 'create', 'Acme Ltd');
    const credit = await json('credits', 'add', account.id, '25.5', '--idempotency-key', 'invoice-1', '--note', 'paid');
    assert.equal(credit.balanceUsd, '25.50000000');
    assert.equal((await json('credits', 'add', account.id, '25.5', '--idempotency-key', 'invoice-1')).id, credit.id);
    const made = await json('keys', 'create', account.id, 'app', '--limit', '3', '--models', 'a', 'b');
    assert.match(made.key, /^sk-svc-/);
    assert.deepEqual(made.allowedModels, ['a', 'b']);
    assert.equal((await json('keys', 'limit', made.id, '4')).balanceLimit, '4.00000000');
    assert.equal((await json('keys', 'limit', made.id, 'none')).balanceLimit, null);
    for (const debug of [true, false])
      assert.equal((await json('keys', 'update', made.id, debug ? '--debug' : '--no-debug')).debug, debug);
    assert.equal((await desk.get('/v1/balance', made.key)).status, 200);
    assert.equal((await json('keys', 'revoke', made.id)).status, 'revoked');
    assert.equal((await desk.get('/v1/balance', made.key)).status, 401);
    assert.equal((await json('keys', 'list', account.id)).items[0].id, made.id);
    assert.equal((await json('accounts', 'show', account.id)).name, 'Acme Ltd');
    assert.equal((await json('balance', account.id)).availableUsd, '25.50000000');
  });

  it('prints its version', async () => {
    const { status, out } = await tollgate({}, '--version');
    assert.equal(status, 0);
    assert.match(out, /^\d+\.\d+\.\d+\n$/);
  });

  it('refuses an empty argument with status 2', async () => {
    const { status, notes } = await tollgate(environment, 'credits', 'add', '', '1');
    assert.equal(status, 2);
    assert.match(notes, /<account> is empty/);
  });

  it('sends the token of the local gateway only to a gateway on the same machine', async () => {
    const { path, remove } = await temporaryFolder();
    await writeFile(join(path, 'admin-token'), 'secret');
    const elsewhere = { TOLLGATE_URL: 'http://gateway.invalid:9876', DATA_DIR: path };
    const { status, notes } = await tollgate(elsewhere, 'accounts', 'list');
    await remove();
    assert.equal(status, 1);
    assert.match(
      notes,
      /Set it to an operator's token, or the ADMIN_TOKEN, of the gateway at http:\/\/gateway\.invalid:9876/,
    );
  });

  it('prints tables without --json, and shows a new key only once', async () => {
    const { accountId } = await desk.customer('1');
    const limits = ['--daily', '2', '--calls-per-minute', '60'];
    const made = await tollgate(environment, 'keys', 'create', accountId, 'shown', ...limits);
    assert.match(made.out, /^key +sk-svc-[0-9A-Za-z]{46}$/m);
    assert.match(made.notes, /cannot be shown again/);
    const listed = await tollgate(environment, 'keys', 'list', accountId);
    const [head, ...lines] = listed.out.trimEnd().split('\n');
    assert.match(
      head ?? '',
      /^id +name +key +status +spent USD +limit USD +daily USD +monthly USD +calls\/min +tokens\/min +models +markup +debug +addresses +team +member +expires +created$/,
    );
    assert.equal(lines.length, 2);
    assert.match(listed.out, /sk-svc-[0-9A-Za-z]{4}…[0-9A-Za-z]{4} +active +0\.00000000 +- +- +- +- +- +all/);
    assert.match(listed.out, /shown .* active +0\.00000000 +- +2\.00000000 +- +60 +- +all/);
    const first = await tollgate(environment, 'accounts', 'list', '--limit', '1');
    assert.match(first.notes, /More entries: --cursor \S+/);
  });

  it('freezes, unfreezes and debits an account, and refuses a debit above the balance', async () => {
    const { accountId } = await desk.customer('3');
    assert.equal((await json('accounts', 'freeze', accountId)).status, 'frozen');
    assert.equal((await json('accounts', 'unfreeze', accountId)).status, 'active');
    assert.equal((await json('debits', 'add', accountId, '1', '--note', 'fee')).balanceUsd, '2.00000000');
    const { status, notes } = await tollgate(environment, 'debits', 'add', accountId, '2.1');
    assert.equal(status, 1);
    assert.match(notes, /INSUFFICIENT_BALANCE/);
    assert.doesNotMatch(notes, /repeat/, 'what was refused is not repeated');
    const away = await tollgate(
      { ...environment, TOLLGATE_URL: `http://127.0.0.1:${await freePort()}` },
      'credits',
      'add',
      accountId,
      '1',
    );
    assert.match(away.notes, /To repeat it safely: --idempotency-key [0-9a-f-]{36}/);
  });

  it('creates a user with a generated password that is shown once, or with a password from standard input', async () => {
    const { accountId } = await desk.customer();
    const made = await tollgate(environment, 'users', 'create', accountId, 'one@example.com');
    assert.match(made.out, /^password +[\w-]{24}$/m);
    assert.match(made.notes, /cannot be shown again/);
    const piped = ['users', 'create', accountId, 'two@example.com', '--password-stdin', '--json'];
    const { out } = await tollgateReading('correct horse battery\n', environment, ...piped);
    const user = JSON.parse(out);
    assert.ok(!out.includes('horse'));
    assert.equal((await findBySignIn(desk.database, 'two@example.com', 'correct horse battery'))?.id, user.id);
    assert.match((await tollgate(environment, 'users', 'password', user.id)).out, /^password +[\w-]{24}$/m);
    assert.match(
      (await tollgate(environment, 'users', 'link', user.id)).out,
      /^link +\/console\/sign-in#token=[\w-]{43}$/m,
    );
    assert.equal((await json('users', 'disable', user.id)).status, 'disabled');
    assert.equal((await json('users', 'enable', user.id)).status, 'active');
    assert.equal((await json('users', 'list', accountId)).items.length, 2);
  });

  it('shows the identity of a user and unbinds the user from it', async () => {
    const { userId, email } = await desk.person((await desk.customer()).accountId);
    await recogniseIdentity(desk.database, { issuer: 'https://id.example', subject: 'ada' }, email);
    const shown = await tollgate(environment, 'users', 'enable', userId);
    assert.match(shown.out, /^identity +ada at https:\/\/id\.example$/m);
    assert.match((await tollgate(environment, 'users', 'unbind', userId)).out, /^identity +-$/m);
  });

  it('prints with `audit list` the actor, action, subject and values of each change', async () => {
    const { accountId, keyId } = await desk.customer('1');
    await json('keys', 'revoke', keyId);
    const { out } = await tollgate(environment, 'audit', 'list', '--subject', `key:${keyId}`, '--limit', '1');
    assert.match(out, /^time +who +action +subject +before +after$/m);
    assert.match(out, new RegExp(`admin +key\\.revoke +key:${keyId} +{"status":"active"} +{"status":"revoked"}$`, 'm'));
    const actions = async (...filters: string[]) =>
      (await json('audit', 'list', '--subject', `account:${accountId}`, ...filters)).items.map(
        ({ action }: { action: string }) => action,
      );
    assert.deepEqual(await actions(), ['account.credit', 'account.create']);
    assert.deepEqual(await actions('--action', 'account.credit', '--actor', 'admin'), ['account.credit']);
    assert.deepEqual(await actions('--to', '2020-01-01'), []);
    assert.deepEqual(await actions('--from', '2020-01-01'), ['account.credit', 'account.create']);
  });

  it('lists usage records, and exports them as CSV', async () => {
    const { accountId } = await desk.customer();
    const none = await tollgate(environment, 'usage', 'list', '--account', accountId, '--from', '2026-11-20');
    assert.deepEqual(none, { status: 0, out: '', notes: 'Nothing yet.\n' });
    const ofTask = await tollgate(environment, 'usage', 'list', '--session', 'task 7', '--agent', 'a', '--json');
    assert.deepEqual(JSON.parse(ofTask.out), { items: [], nextCursor: null });
    const csv = await tollgate(environment, 'usage', 'export', '--account', accountId, '--to', '2026-11-20');
    assert.match(
      csv.out,
      /^requestId,createdAt,.*accountId,rollout,rolloutStage,rolloutGroup,excess,upstreamCost\r\n$/,
    );
  });

  it('exits from `ledger verify` with 0 if the ledger is consistent, else with 1, and repairs with --repair', async () => {
    const { accountId } = await desk.customer('5');
    const { database, ledger } = desk;
    await shipShards({ ledger, database, log: quiet }, ALL_SHARDS);
    const whole = await tollgate(environment, 'ledger', 'verify', '--account', accountId);
    assert.deepEqual(whole, { status: 0, out: '', notes: '1 accounts, 1 entries, 0 violations, 0 repaired.\n' });
    await database('ledger_entries').where({ account_id: accountId }).update({ posted_e8: 7 });
    const broken = await tollgate(environment, '--json', 'ledger', 'verify');
    assert.equal(broken.status, 1);
    const [found] = JSON.parse(broken.out).items;
    assert.deepEqual([found.invariant, found.accountId, found.seq], ['chain_broken', accountId, 1]);
    const shown = await tollgate(environment, 'ledger', 'verify', '--repair', '--account', accountId);
    assert.equal(shown.status, 1);
    assert.match(shown.out, new RegExp(`^chain_broken +${accountId} +1 .* -$`, 'm'));
    assert.match(shown.notes, /operating\.md/);
    await database('ledger_entries').where({ account_id: accountId }).update({ posted_e8: 500_000_000 });
    const request = reserveRequest({ accountId, keyId: (await json('keys', 'list', accountId)).items[0].id }, 1n);
    await ledger.reserve({ ...request, lifetimeMs: -61_000 });
    const repaired = await json('ledger', 'verify', '--repair', '--account', accountId);
    assert.deepEqual(
      repaired.items.map((each: Record<string, unknown>) => [each['invariant'], each['repair']]),
      [['hold_overdue', 'expired']],
    );
    assert.match((await tollgate(environment, 'ledger', 'verify', '--days', '0')).notes, /days: expected an integer/);
  });

  for (const args of [
    ['acounts'],
    ['accounts', 'create'],
    ['accounts', 'list', '--nope'],
    ['keys', 'limit', 'x'],
    ['balance'],
    [],
  ]) {
    it(`exits with 2 and prints the usage or a hint at --help after "tollgate ${args.join(' ')}"`, async () => {
      const { status, notes } = await tollgate(environment, ...args);
      assert.equal(status, 2);
      assert.match(notes, /--help|Usage: tollgate/);
    });
  }

  it('exits with 1 and prints the reason if the gateway rejects the request', async () => {
    const { accountId } = await desk.customer();
    const { status, notes } = await tollgate(environment, 'credits', 'add', accountId, '1.123456789');
    assert.equal(status, 1);
    assert.match(notes, /amountUsd: expected at most 8 decimals \(INVALID_FIELD\)/);
    assert.match((await tollgate(environment, 'accounts', 'show', '../keys')).notes, /The account does not exist/);
  });

  it('prints the address and how to start the gateway if it cannot connect', async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    const { status, notes } = await tollgate({ TOLLGATE_URL: url, TOLLGATE_TOKEN: 'x' }, 'accounts', 'list');
    assert.equal(status, 1);
    assert.ok(notes.includes(`Cannot reach ${url} (ECONNREFUSED). Start the gateway there`), notes);
  });

  it('reads the admin token from the gateway’s data folder, and explains how to provide one if the folder has none', async () => {
    const folder = await temporaryFolder();
    const shown: (string | undefined)[] = [];
    const server = await listen((request, response) => {
      shown.push(request.headers.authorization);
      sendJson(response, shown.length === 1 ? 200 : 401, { items: [], nextCursor: null });
    });
    const withFolder = { TOLLGATE_URL: server.url, DATA_DIR: join(folder.path, 'data') };
    const without = await tollgate(withFolder, 'accounts', 'list');
    assert.equal(without.status, 1);
    assert.match(without.notes, /There is no admin token: TOLLGATE_TOKEN is not set, and .*admin-token cannot be read/);
    await mkdir(join(folder.path, 'data'));
    await writeFile(join(folder.path, 'data', 'admin-token'), 'from-the-file\n');
    assert.equal((await tollgate(withFolder, 'accounts', 'list')).status, 0);
    assert.deepEqual(shown, ['Bearer from-the-file']);
    const wrong = await tollgate({ ...withFolder, TOLLGATE_TOKEN: 'wrong' }, 'accounts', 'list');
    assert.equal(wrong.status, 1);
    assert.match(wrong.notes, /refused the operator token of TOLLGATE_TOKEN/);
    await server.close();
    await folder.remove();
  });

  it('exits with 1 and prints an error if an export ends early', async () => {
    const server = createServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/csv' });
      response.write('requestId\r\n', () => response.destroy());
    });
    const port = await freePort();
    await new Promise<void>((listening) => server.listen(port, '127.0.0.1', listening));
    const { status, notes } = await tollgate(
      { ...environment, TOLLGATE_URL: `http://127.0.0.1:${port}` },
      'usage',
      'export',
    );
    assert.equal(status, 1);
    assert.match(notes, /is incomplete/);
    server.close();
  });

  it('exits with 0 after success, 1 after a refusal and 2 after a usage error, if started as a process', async () => {
    const started = (...args: string[]) =>
      promisify(execFile)(process.execPath, ['dist/cli/tollgate.js', ...args], {
        env: { ...process.env, ...environment },
      });
    const { stdout } = await started('accounts', 'list', '--json');
    assert.ok(Array.isArray(JSON.parse(stdout).items));
    await assert.rejects(started('nothing'), { code: 2 });
    await assert.rejects(started('accounts', 'show', 'x'), { code: 1 });
  });
});
