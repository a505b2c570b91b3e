import assert from 'node:assert/strict';
import { newId } from '../../core/base/ids';
import { openDesk, type TestDesk } from '../support/desk';

const MINUTE_MS = 60_000;

for (const name of ['Postgres', 'PGlite'] as const) {
  describe(`the operator's page, on ${name}`, function () {
    this.timeout(120_000);
    let desk: TestDesk;
    before(async () => {
      desk = await openDesk(name);
    });
    after(() => desk.close());

    it('shows the last sixty seconds and each earlier minute as the sums of the records', async () => {
      const { accountId, keyId } = await desk.customer('10');
      const startMs = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
      const record = (ageMs: number, more: object = {}) => ({
        request_id: `req_${newId()}`,
        created_at: new Date(startMs - ageMs),
        account_id: accountId,
        key_id: keyId,
        protocol: 'chat',
        path: '/v1/chat/completions',
        attempts: 1,
        fallback: false,
        stream: false,
        status: 200,
        source: 'provider',
        cost_e8: 1n,
        billing: 'actual',
        response_time_ms: 100,
        config_revision: 'r',
        ...more,
      });
      await desk.database('usage_records').insert([
        // Ten minutes ago: a hundred calls, of which one was slow, and five failures in one record.
        ...Array.from({ length: 99 }, () => record(10 * MINUTE_MS - 1)),
        record(10 * MINUTE_MS - 1, { response_time_ms: 9_000 }),
        record(10 * MINUTE_MS - 1, { status: 429, calls: 5, cost_e8: 0n }),
        record(9 * MINUTE_MS - 1, { error_code: 'STREAM_BROKEN', cost_e8: 7n }),
        record(29 * MINUTE_MS),
        // 1 ms too old for the thirty minutes of the page. Like all records here, it is older than the last minute.
        record(29 * MINUTE_MS + 1),
      ]);
      const { status, body } = await desk.admin('GET', '/now');
      assert.equal(status, 200);
      assert.equal(body.minutes.length, 30);
      const at = (ageMinutes: number) => {
        const start = new Date(startMs - ageMinutes * MINUTE_MS).toISOString();
        return body.minutes.find((each: { start: string }) => each.start === start);
      };
      const { start: _, ...busy } = at(10);
      assert.deepEqual(busy, { calls: 105, failed: 5, costUsd: '0.00000100', p99Ms: 100 });
      assert.deepEqual([at(9).calls, at(9).failed, at(9).costUsd], [1, 1, '0.00000007']);
      assert.equal(at(29).calls, 1);
      assert.deepEqual([at(5).calls, at(5).costUsd, at(5).p99Ms], [0, '0.00000000', null]);
      assert.equal(body.lately.calls, 0);
      assert.equal(body.heldUsd, '0.00000000');
      assert.deepEqual(Object.keys(body.outbox), ['oldestSeconds', 'memoryShare']);
    });

    it('lists charges below the cost of their call newest first, each once, for all accounts or for one', async () => {
      const one = await desk.customer();
      const other = await desk.customer();
      // Records of the same millisecond are in the order of their ids.
      const rids = [newId(), newId(), newId()].sort();
      const entry = (accountId: string, seq: number, shortfallE8: bigint) => ({
        account_id: accountId,
        seq,
        rid: rids.shift(),
        kind: 'charge',
        key_id: null,
        amount_e8: -30n,
        posted_e8: 0n,
        shortfall_e8: shortfallE8,
        created_at: new Date(),
      });
      const rows = [entry(one.accountId, 1, 5n), entry(one.accountId, 2, 0n), entry(other.accountId, 1, 70n)];
      for (const row of rows) await desk.database('ledger_entries').insert(row);
      const first = (await desk.admin('GET', '/ledger/shortfalls?limit=1')).body;
      const second = (await desk.admin('GET', `/ledger/shortfalls?limit=1&cursor=${first.nextCursor}`)).body;
      assert.equal(second.nextCursor, null);
      const [newest, oldest] = [first.items[0], second.items[0]];
      assert.deepEqual([newest.accountId, newest.rid], [other.accountId, rows[2]?.rid]);
      const { createdAt: _, ...shown } = oldest;
      assert.deepEqual(shown, {
        accountId: one.accountId,
        keyId: null,
        rid: rows[0]?.rid,
        dueUsd: '0.00000035',
        chargedUsd: '0.00000030',
        shortfallUsd: '0.00000005',
      });
      const own = await desk.admin('GET', `/ledger/shortfalls?account=${one.accountId}`);
      assert.deepEqual(own.body.items, [oldest]);
    });

    it('finds accounts by name, id, user and key, and treats `%` and `_` in the search text as plain text', async () => {
      const { body: account } = await desk.admin('POST', '/accounts', { name: 'Büro 100%_x' });
      const { body: key } = await desk.admin('POST', `/accounts/${account.id}/keys`, { name: 'nightly' });
      const { email } = await desk.person(account.id);
      const found = async (words: string) => {
        const { status, body } = await desk.admin('GET', `/accounts?search=${encodeURIComponent(words)}`);
        assert.equal(status, 200);
        return body.items.map((each: { id: string }) => each.id);
      };
      for (const words of ['büro', '100%_', account.id.slice(-12), email.toUpperCase(), 'NIGHT', key.suffix, key.id])
        assert.deepEqual(await found(words), [account.id], words);
      for (const words of ['1_0', 'B%x', "' OR 1=1 --", 'nothing']) assert.deepEqual(await found(words), [], words);
    });
  });
}
