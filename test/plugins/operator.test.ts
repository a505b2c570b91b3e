import assert from 'node:assert/strict';
import { hashApiKey, isApiKey } from '../../core/accounts/key-format';
import { newId } from '../../core/base/ids';
import { type Ledger, LedgerUnavailable } from '../../core/ledger/ledger';
import { openDesk, type TestAnswer, type TestDesk } from '../support/desk';

function refusedWith(answer: TestAnswer, status: number, code: string, param?: string): void {
  assert.equal(answer.status, status, JSON.stringify(answer.body));
  assert.equal(answer.body.error.code, code);
  if (param !== undefined) assert.equal(answer.body.error.param, param);
}

for (const name of ['Postgres', 'PGlite'] as const) {
  describe(`the operator's API on ${name}`, () => {
    let desk: TestDesk;
    before(async function () {
      this.timeout(120_000);
      desk = await openDesk(name);
    });
    after(() => desk.close());

    it('lists accounts in pages, newest first, each once', async () => {
      const ids: string[] = [];
      for (let index = 0; index < 5; index += 1) {
        ids.push((await desk.admin('POST', '/accounts', { name: `page ${index}` })).body.id);
      }
      const seen: string[] = [];
      let cursor: string | null = '';
      while (cursor !== null && seen.length < 5) {
        const more = cursor === '' ? '' : `&cursor=${cursor}`;
        const { body } = await desk.admin('GET', `/accounts?limit=2${more}`);
        seen.push(...body.items.map((item: { id: string }) => item.id));
        cursor = body.nextCursor;
      }
      assert.deepEqual(seen.slice(0, 5), ids.reverse());
    });

    it('adds a credit once per idempotency key, and debits available money', async () => {
      const { accountId } = await desk.customer();
      const credit = { amountUsd: '12.5', idempotencyKey: 'one', note: 'invoice 7' };
      const first = await desk.admin('POST', `/accounts/${accountId}/credits`, credit);
      assert.equal(first.status, 201);
      assert.equal(first.body.amountUsd, '12.50000000');
      assert.equal(first.body.balanceUsd, '12.50000000');
      const again = await desk.admin('POST', `/accounts/${accountId}/credits`, credit);
      assert.equal(again.status, 200);
      assert.deepEqual(again.body, first.body);
      refusedWith(
        await desk.admin('POST', `/accounts/${accountId}/credits`, { ...credit, amountUsd: '12.6' }),
        409,
        'CONFLICT',
        'idempotencyKey',
      );
      const debit = await desk.admin('POST', `/accounts/${accountId}/debits`, {
        amountUsd: '2.5',
        idempotencyKey: 'two',
      });
      assert.equal(debit.body.balanceUsd, '10.00000000');
      assert.equal((await desk.ledger.readAccount(accountId))?.postedE8, 1_000_000_000n);
    });

    it('adds one credit if the same request arrives twenty times at once', async () => {
      const { accountId } = await desk.customer();
      const credit = { amountUsd: '1', idempotencyKey: 'race' };
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => desk.admin('POST', `/accounts/${accountId}/credits`, credit)),
      );
      assert.deepEqual([...new Set(answers.map(({ body }) => body.id))].length, 1);
      assert.equal(answers.filter(({ status }) => status === 201).length, 1);
      assert.equal((await desk.ledger.readAccount(accountId))?.postedE8, 100_000_000n);
    });

    it('refuses a debit above the available money and does not store it, so that it is never taken later', async () => {
      const { accountId } = await desk.customer('1');
      const debit = { amountUsd: '1.00000001', idempotencyKey: 'too much' };
      const refused = await desk.admin('POST', `/accounts/${accountId}/debits`, debit);
      refusedWith(refused, 402, 'INSUFFICIENT_BALANCE');
      assert.deepEqual(refused.body.error.details, { requiredUsd: '1.00000001', availableUsd: '1.00000000' });
      const rows = await desk.database('credits').where({ account_id: accountId, idempotency_key: 'too much' });
      assert.deepEqual(rows, []);
    });

    for (const amountUsd of [5, '-1', '0', '1.000000001', '1e3', null]) {
      it(`refuses ${JSON.stringify(amountUsd)} as an amount`, async () => {
        const { accountId } = await desk.customer();
        const answer = await desk.admin('POST', `/accounts/${accountId}/credits`, { amountUsd, idempotencyKey: 'x' });
        refusedWith(answer, 400, 'INVALID_FIELD', 'amountUsd');
      });
    }

    it("shows a key's secret once, and stores only its hash", async () => {
      const { accountId } = await desk.customer();
      const wanted = { name: 'app', balanceLimit: '3', allowedModels: ['large'] };
      const { status, body } = await desk.admin('POST', `/accounts/${accountId}/keys`, wanted);
      assert.equal(status, 201);
      assert.ok(isApiKey(body.key));
      assert.equal(body.prefix + body.suffix, body.key.slice(0, 11) + body.key.slice(-4));
      const listed = await desk.admin('GET', `/accounts/${accountId}/keys`);
      assert.ok(!JSON.stringify(listed.body).includes(body.key));
      const { key: apiKey, ...shown } = body;
      assert.deepEqual(listed.body.items[0], shown);
      assert.equal(shown.balanceLimit, '3.00000000');
      assert.deepEqual(shown.allowedModels, ['large']);
      const everything = JSON.stringify(
        [await desk.database('api_keys'), await desk.database('audit_log')],
        (_, value) => (typeof value === 'bigint' ? String(value) : value),
      );
      assert.ok(everything.includes(hashApiKey(apiKey)) && !everything.includes(apiKey));
      assert.equal((await desk.get('/v1/balance', apiKey)).status, 200);
    });

    it('sends a changed key to the ledger, with the new limit and a newer revision', async () => {
      const { accountId, keyId } = await desk.customer();
      const changed = await desk.admin('PATCH', `/keys/${keyId}`, {
        name: 'renamed',
        balanceLimit: '7',
        allowedModels: ['a'],
      });
      assert.equal(changed.status, 200);
      const state = await desk.ledger.readKey({ accountId, keyId });
      assert.equal(state?.limitE8, 700_000_000n);
      assert.deepEqual(state?.settings, { rev: 1, name: 'renamed', allowedModels: ['a'], markup: undefined });
      const freed = await desk.admin('PATCH', `/keys/${keyId}`, { balanceLimit: null, allowedModels: null });
      assert.equal(freed.body.balanceLimit, null);
      assert.equal(freed.body.name, 'renamed');
      const after = await desk.ledger.readKey({ accountId, keyId });
      assert.equal(after?.limitE8, undefined);
      assert.deepEqual(after?.settings, { rev: 2, name: 'renamed', allowedModels: undefined, markup: undefined });
    });

    it('revokes a key for the next call on every endpoint, even if the revocation is repeated', async () => {
      const { keyId, apiKey } = await desk.customer();
      assert.equal((await desk.get('/v1/balance', apiKey)).status, 200);
      const revoked = await desk.admin('DELETE', `/keys/${keyId}`);
      assert.equal(revoked.status, 200);
      assert.equal(revoked.body.status, 'revoked');
      for (const path of [
        '/v1/balance',
        '/v1/usage',
        '/v1/usage.csv',
        '/v1/usage/req_1',
        '/v1/models',
        '/cost/v1/models/x',
      ]) {
        refusedWith(await desk.get(path, apiKey), 401, 'INVALID_API_KEY');
      }
      assert.deepEqual((await desk.admin('DELETE', `/keys/${keyId}`)).body, revoked.body);
      refusedWith(await desk.admin('PATCH', `/keys/${keyId}`, { name: 'x' }), 409, 'CONFLICT');
    });

    it('freezes and unfreezes an account', async () => {
      const { accountId } = await desk.customer();
      assert.equal((await desk.admin('POST', `/accounts/${accountId}/freeze`)).body.status, 'frozen');
      assert.equal((await desk.ledger.readAccount(accountId))?.status, 'frozen');
      assert.equal((await desk.admin('POST', `/accounts/${accountId}/unfreeze`, {})).body.status, 'active');
      assert.equal((await desk.ledger.readAccount(accountId))?.status, 'active');
    });

    it('writes an audit row for every change, with the values before and after', async () => {
      const { accountId, keyId } = await desk.customer('1');
      await desk.admin('PATCH', `/keys/${keyId}`, { balanceLimit: '2' });
      await desk.admin('DELETE', `/keys/${keyId}`);
      await desk.admin('POST', `/accounts/${accountId}/freeze`);
      await desk.admin('POST', `/accounts/${accountId}/freeze`);
      await desk.admin('POST', `/accounts/${accountId}/debits`, { amountUsd: '1', idempotencyKey: 'd' });
      const actions = async (subject: string) =>
        (await desk.admin('GET', `/audit?subject=${subject}`)).body.items.map(
          (item: { action: string }) => item.action,
        );
      assert.deepEqual(await actions(`account:${accountId}`), [
        'account.debit',
        'account.freeze',
        'account.credit',
        'account.create',
      ]);
      assert.deepEqual(await actions(`key:${keyId}`), ['key.revoke', 'key.update', 'key.create']);
      const { body } = await desk.admin('GET', `/audit?subject=key:${keyId}&limit=2`);
      const { actor, before, after } = body.items[1];
      assert.equal(actor, 'admin');
      assert.equal(before.balanceLimit, null);
      assert.equal(after.balanceLimit, '2.00000000');
      assert.equal(typeof body.nextCursor, 'string');
    });

    const nobody = newId();
    for (const [method, path, body] of [
      ['GET', `/accounts/${nobody}`],
      ['GET', '/accounts/not-an-id'],
      ['GET', "/accounts/'%20or%201=1"],
      ['POST', `/accounts/${nobody}/credits`, { amountUsd: '1', idempotencyKey: 'x' }],
      ['POST', '/accounts/1/debits', { amountUsd: '1', idempotencyKey: 'x' }],
      ['POST', `/accounts/${nobody}/keys`, { name: 'x' }],
      ['GET', `/accounts/${nobody}/keys`],
      ['POST', `/accounts/${nobody}/freeze`],
      ['PATCH', `/keys/${nobody}`, { name: 'x' }],
      ['DELETE', `/keys/${nobody}`],
      ['DELETE', '/keys/1'],
    ] as const) {
      it(`answers 404 to ${method} ${path.replace(nobody, '{unknown}')}`, async () => {
        refusedWith(await desk.admin(method, path, body), 404, 'NOT_FOUND');
      });
    }

    for (const field of ['balance', 'accountId', 'role', 'status', '__proto__']) {
      it(`refuses the unknown member ${field} in every body`, async () => {
        const { accountId, keyId } = await desk.customer();
        const money = { amountUsd: '1', idempotencyKey: 'x' };
        for (const [method, path, body] of [
          ['POST', '/accounts', { name: 'x' }],
          ['POST', `/accounts/${accountId}/credits`, money],
          ['POST', `/accounts/${accountId}/debits`, money],
          ['POST', `/accounts/${accountId}/keys`, { name: 'x' }],
          ['POST', `/accounts/${accountId}/freeze`, {}],
          ['POST', `/accounts/${accountId}/unfreeze`, {}],
          ['PATCH', `/keys/${keyId}`, { name: 'x' }],
        ] as const) {
          const withField = JSON.parse(
            `{${JSON.stringify(field)}:"1",${JSON.stringify(body).slice(1)}`.replace(',}', '}'),
          );
          refusedWith(await desk.admin(method, path, withField), 400, 'INVALID_FIELD', field);
        }
      });
    }

    for (const wrong of ['', 'a\u0000b', 'a\nb', '\ud800', 'x'.repeat(201), 7, null]) {
      it(`refuses ${JSON.stringify(wrong).slice(0, 20)} as a name`, async () => {
        refusedWith(await desk.admin('POST', '/accounts', { name: wrong }), 400, 'INVALID_FIELD', 'name');
      });
    }

    for (const query of [
      'limit=0',
      'limit=1001',
      'limit=1.5',
      'cursor=abc',
      'cursor=WyJ4Il0',
      'offset=1',
      'limit=1&limit=2',
    ]) {
      it(`refuses the query ${query}`, async () => {
        const param = query.slice(0, query.indexOf('='));
        refusedWith(await desk.admin('GET', `/accounts?${query}`), 400, 'INVALID_FIELD', param);
      });
    }
  });
}

describe("the operator's API while the ledger is unavailable", () => {
  let desk: TestDesk;
  let down = false;
  before(async () => {
    desk = await openDesk('Postgres', {
      wrap: (ledger) =>
        new Proxy(ledger, {
          get: (target, property: keyof Ledger) => {
            const value = target[property];
            if (typeof value !== 'function') return value;
            return (...args: never[]) => {
              if (down) return Promise.reject(new LedgerUnavailable('no answer'));
              return (value as (...args: never[]) => unknown).apply(target, args);
            };
          },
        }),
    });
  });
  afterEach(() => {
    down = false;
  });
  after(() => desk.close());

  it('answers 503 to a credit, and completes the credit when the client repeats the request', async () => {
    const { accountId } = await desk.customer();
    const credit = { amountUsd: '4', idempotencyKey: 'later' };
    down = true;
    const answer = await desk.admin('POST', `/accounts/${accountId}/credits`, credit);
    refusedWith(answer, 503, 'LEDGER_UNAVAILABLE');
    assert.equal(answer.headers.get('retry-after'), '1');
    assert.equal(answer.body.error.details.idempotencyKey, 'later');
    down = false;
    const completed = await desk.admin('POST', `/accounts/${accountId}/credits`, credit);
    assert.equal(completed.body.id, answer.body.error.details.creditId);
    assert.equal(completed.body.balanceUsd, '4.00000000');
    assert.equal((await desk.database('credits').where({ account_id: accountId })).length, 1);
  });

  it('lists an account that the ledger does not know yet; its first credit creates it there', async () => {
    down = true;
    const answer = await desk.admin('POST', '/accounts', { name: 'half made' });
    refusedWith(answer, 503, 'LEDGER_UNAVAILABLE');
    const { accountId } = answer.body.error.details;
    const shown = await desk.admin('GET', `/accounts/${accountId}`);
    assert.equal(shown.body.balanceUsd, null);
    down = false;
    const credit = await desk.admin('POST', `/accounts/${accountId}/credits`, { amountUsd: '1', idempotencyKey: 'x' });
    assert.equal(credit.body.balanceUsd, '1.00000000');
  });

  it('leaves no active key behind whose secret was never shown', async () => {
    const { accountId } = await desk.customer();
    down = true;
    refusedWith(await desk.admin('POST', `/accounts/${accountId}/keys`, { name: 'unseen' }), 503, 'LEDGER_UNAVAILABLE');
    const rows = await desk.database('api_keys').where({ account_id: accountId, name: 'unseen' }).pluck('status');
    assert.deepEqual(rows, ['revoked']);
  });

  it('restores the old secret of an API key if the ledger did not receive the rotation, and reports the failure', async () => {
    const { keyId } = await desk.customer();
    const read = () => desk.database('api_keys').where({ id: keyId }).first('hash', 'suffix', 'previous_hash');
    const before = await read();
    down = true;
    refusedWith(await desk.admin('POST', `/keys/${keyId}/rotate`, { graceSeconds: 0 }), 503, 'LEDGER_UNAVAILABLE');
    assert.deepEqual(await read(), before);
    const { rev, told_rev: told } = await desk.database('api_keys').where({ id: keyId }).first('rev', 'told_rev');
    assert.ok(told < rev, 'the sweeper has something to tell');
    down = false;
    assert.equal((await desk.admin('POST', `/keys/${keyId}/rotate`, { graceSeconds: 0 })).status, 201);
  });

  it('answers a revocation only after the ledger has recorded it', async () => {
    const { keyId } = await desk.customer();
    down = true;
    refusedWith(await desk.admin('DELETE', `/keys/${keyId}`), 503, 'LEDGER_UNAVAILABLE');
    assert.deepEqual(await desk.database('api_keys').where({ id: keyId }).pluck('status'), ['revoked']);
    down = false;
    assert.equal((await desk.admin('DELETE', `/keys/${keyId}`)).status, 200);
  });
});
