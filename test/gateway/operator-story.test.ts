import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { operate } from '../support/command-line';
import { MODEL, type TestGateway } from '../support/gateway';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { messagesAnswer } from '../support/upstream';

/** Runs the command line against this gateway. */
function tollgate(where: Pick<TestGateway, 'adminUrl' | 'adminToken'>, ...args: string[]) {
  return operate(where, args);
}

describe('an operator’s first customer', function () {
  this.timeout(120_000);
  const upstream = useUpstream();
  /** Values that one step leaves for the next. */
  const story = { account: '', key: '', keyId: '', requestId: '' };
  const json = async (...args: string[]) => JSON.parse((await tollgate(gateway, ...args, '--json')).out);
  const call = () =>
    gateway.call('/v1/messages', {
      key: story.key,
      body: { model: MODEL, max_tokens: 50, messages: [{ role: 'user', content: 'hello' }] },
    });

  const gateway = useGateway(() => {
    upstream.always(messagesAnswer({ usage: { input: 10, output: 5 } }));
    return {
      upstreams: { one: { url: upstream.url, models: { [MODEL]: { tokenizerFactor: 1 } } } },
      own: true,
    };
  });

  it('1. gets an account', async () => {
    story.account = (await json('accounts', 'create', 'Acme Ltd')).id;
    assert.match(
      (await tollgate(gateway, 'accounts', 'list')).out,
      new RegExp(`^${story.account} +Acme Ltd +active`, 'm'),
    );
  });

  it('2. gets a credit only once, although the command is repeated', async () => {
    const add = ['credits', 'add', story.account, '1.00', '--idempotency-key', 'invoice-1', '--note', 'first payment'];
    await json(...add);
    assert.equal((await json(...add)).balanceUsd, '1.00000000');
  });

  it('3. gets a key with a limit, which is shown only once', async () => {
    const made = await tollgate(gateway, 'keys', 'create', story.account, 'web', '--limit', '0.0015');
    story.key = /^key +(sk-svc-\w+)$/m.exec(made.out)?.[1] ?? '';
    story.keyId = /^id +(\S+)$/m.exec(made.out)?.[1] ?? '';
    const listed = await tollgate(gateway, 'keys', 'list', story.account);
    assert.ok(listed.out.includes(story.keyId) && !listed.out.includes(story.key));
  });

  it('4. calls a model until the limit of the key does not cover another call', async () => {
    const answered = await call();
    assert.equal(answered.status, 200);
    assert.equal(answered.headers['x-ai-cost'], '0.00010500');
    story.requestId = String(answered.headers['x-svc-request-id']);
    let refused = answered;
    for (let calls = 1; refused.status === 200 && calls < 10; calls += 1) refused = await call();
    assert.equal(refused.status, 402);
    assert.equal(refused.json.error.code, 'KEY_LIMIT_EXCEEDED');
    await tollgate(gateway, 'keys', 'limit', story.keyId, '0.5');
    assert.equal((await call()).status, 200);
  });

  it('5. has the same usage and cost in records, CSV and ledger', async () => {
    await gateway.record(story.key, story.requestId);
    const shown = await tollgate(gateway, 'usage', 'show', story.requestId);
    assert.match(shown.out, /^cost USD +0\.00010500$/m);
    const balance = await until('every call is settled', async () => {
      const now = await json('balance', story.account);
      return now.heldUsd === '0.00000000' && now;
    });
    const spentE8 = 100_000_000n - toE8(balance.balanceUsd);
    await until('every call has its record, in the CSV and in the list', async () => {
      const exported = await costsOfCsv(gateway, story.account);
      const listed = await json('usage', 'list', '--account', story.account, '--limit', '1000');
      assert.equal(listed.items.length, exported.length);
      assert.equal(sumE8(exported), spentE8);
      assert.equal(sumE8(listed.items.map(({ cost }: { cost: string }) => cost)), spentE8);
      return true;
    });
  });

  it('6. cannot use the key any more once it is revoked', async () => {
    assert.match((await tollgate(gateway, 'keys', 'revoke', story.keyId)).out, /^status +revoked$/m);
    assert.equal((await call()).status, 401);
  });

  it('7. has a ledger without violations, and every change in the audit log', async () => {
    // Run this command as a real process.
    const env = { PATH: process.env['PATH'], TOLLGATE_URL: gateway.adminUrl, TOLLGATE_TOKEN: gateway.adminToken };
    const program = ['dist/cli/tollgate.js', 'ledger', 'verify'];
    const { stderr } = await promisify(execFile)(process.execPath, program, { env });
    assert.match(stderr, /^1 accounts, \d+ entries, 0 violations/m);
    const audited = await json('audit', 'list');
    assert.deepEqual(
      audited.items.map(({ action }: { action: string }) => action),
      ['key.revoke', 'key.update', 'key.create', 'account.credit', 'account.create'],
    );
  });

  it('gets an error that says what to correct if a command has a wrong operator token or address', async () => {
    const wrong = await tollgate({ adminUrl: gateway.adminUrl, adminToken: 'wrong' }, 'accounts', 'list');
    assert.equal(wrong.status, 1);
    assert.match(wrong.notes, /refused the operator token of TOLLGATE_TOKEN.*admin-token/s);
    const elsewhere = await tollgate({ adminUrl: gateway.url, adminToken: gateway.adminToken }, 'accounts', 'list');
    assert.equal(elsewhere.status, 1);
    assert.match(elsewhere.notes, /Check that TOLLGATE_URL is its admin listener/);
  });
});

async function costsOfCsv(gateway: TestGateway, account: string): Promise<readonly string[]> {
  const { out } = await tollgate(gateway, 'usage', 'export', '--account', account);
  const [head = '', ...lines] = out.trimEnd().split('\r\n');
  const column = head.split(',').indexOf('cost');
  return lines.map((line) => line.split(',')[column] ?? '');
}

function sumE8(amounts: readonly string[]): bigint {
  return amounts.reduce((sum, amount) => sum + toE8(amount), 0n);
}

function toE8(amount: string): bigint {
  return BigInt(amount.replace('.', ''));
}
