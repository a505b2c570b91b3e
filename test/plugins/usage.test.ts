import assert from 'node:assert/strict';
import { get } from 'node:http';
import { newId } from '../../core/base/ids';
import { openSessionIds } from '../../core/calls/session-ids';
import { buildCatalog } from '../../core/catalog/catalog';
import { keepPartitions } from '../../core/ledger/outbox/partitions';
import { sampleModel, sampleUpstream } from '../support/catalog-samples';
import { quiet } from '../support/databases';
import { openDesk, type TestDesk } from '../support/desk';
import { until } from '../support/until';

type Customer = Awaited<ReturnType<TestDesk['customer']>>;

const START = Date.UTC(2026, 10, 20, 8, 0, 0);

function row({ accountId, keyId }: Customer, index: number, changes: object = {}): object {
  return {
    request_id: `req_${accountId.slice(-6)}${String(index).padStart(6, '0')}`,
    created_at: new Date(START + index * 1_000),
    rid: newId(),
    account_id: accountId,
    key_id: keyId,
    protocol: 'messages',
    path: '/v1/messages',
    strategy: 'quality',
    model_requested: 'acme/large',
    model: 'acme-large-4.5',
    upstream: 'acme-official',
    attempts: 1,
    fallback: false,
    stream: true,
    status: 200,
    source: 'provider',
    error_code: null,
    input_tokens: 100,
    output_tokens: 20,
    total_tokens: 120,
    cache_creation_tokens: 0,
    cache_read_tokens: 0,
    cost_e8: 12_345n,
    billing: 'actual',
    response_time_ms: 900,
    first_token_ms: 300,
    config_revision: 'r1',
    ...changes,
  };
}

function ids(body: { items: { requestId: string }[] }): number[] {
  return body.items.map(({ requestId }) => Number(requestId.slice(-6)));
}

for (const name of ['Postgres', 'PGlite'] as const) {
  describe(`the usage API on ${name}`, () => {
    let desk: TestDesk;
    let one: Customer;
    let two: Customer;
    before(async function () {
      this.timeout(120_000);
      desk = await openDesk(name, {
        catalog: buildCatalog([
          sampleUpstream('acme-official', [sampleModel('acme-large-4.5', { aliases: ['large'] })]),
        ]),
      });
      one = await desk.customer('5');
      two = await desk.customer('1');
      await desk.database('usage_records').insert([
        row(one, 0),
        row(one, 1, {
          model: null,
          upstream: null,
          model_requested: 'unknown',
          status: 400,
          cost_e8: 0n,
          input_tokens: null,
        }),
        row(one, 2, { upstream: 'other', fallback: true, attempts: 2, session_id: 's', agent_id: 'a' }),
        // Records of the same millisecond are ordered by request id.
        row(one, 3, { session_id: 's' }),
        row(one, 4, { created_at: new Date(START + 3_000) }),
        row(two, 9, { session_id: 's' }),
      ]);
    });
    after(() => desk.close());

    it('shows the balance of the account and the spending of the key', async () => {
      await desk.admin('PATCH', `/keys/${one.keyId}`, { balanceLimit: '2' });
      const payer = { accountId: one.accountId, keyId: one.keyId };
      const rid = newId();
      const reserved = await desk.ledger.reserve({
        ...payer,
        rid,
        keyRev: 1,
        amountE8: 100n,
        lifetimeMs: 1_000,
        facts: '{}',
      });
      assert.equal(reserved.outcome, 'reserved');
      assert.deepEqual((await desk.get('/v1/balance', one.apiKey)).body, {
        balanceUsd: '5.00000000',
        heldUsd: '0.00000100',
        availableUsd: '4.99999900',
        key: { balanceLimit: '2.00000000', spentUsd: '0.00000000', heldUsd: '0.00000100' },
      });
      await desk.ledger.settle({ ...payer, rid, costE8: 40n, record: '{}' });
      assert.equal((await desk.get('/v1/balance', one.apiKey)).body.key.spentUsd, '0.00000040');
      assert.equal((await desk.get('/v1/balance', two.apiKey)).body.key.balanceLimit, null);
    });

    it('shows a record with every field, in the documented order', async () => {
      const { body } = await desk.get(`/v1/usage/${`req_${one.accountId.slice(-6)}000002`}`, one.apiKey);
      assert.equal(
        Object.keys(body).join(),
        'requestId,createdAt,keyId,keyName,protocol,path,strategy,modelRequested,model,upstream,attempts,fallback,stream,' +
          'status,source,errorCode,inputTokens,outputTokens,totalTokens,cacheCreationTokens,cacheReadTokens,cost,billing,' +
          'responseTimeMs,firstTokenMs,configRevision,calls,passes,flags,sessionId,agentId,endUserId,' +
          'teamId,memberId,tags,region,demands',
      );
      assert.equal(body.createdAt, '2026-11-20T08:00:02.000Z');
      assert.equal(body.keyName, 'first');
      assert.equal(body.cost, '0.00012345');
      assert.equal(body.totalTokens, 120);
    });

    it("answers 404 for another account's record, and for one that does not exist", async () => {
      const foreign = `/v1/usage/req_${two.accountId.slice(-6)}000009`;
      assert.equal((await desk.get(foreign, two.apiKey)).status, 200);
      assert.equal((await desk.get(foreign, one.apiKey)).status, 404);
      assert.equal((await desk.get('/v1/usage/req_none', one.apiKey)).status, 404);
      assert.equal((await desk.get('/v1/usage/%00', one.apiKey)).status, 404);
    });

    it('lists the records of its own account only, newest first', async () => {
      assert.deepEqual(ids((await desk.get('/v1/usage', one.apiKey)).body), [4, 3, 2, 1, 0]);
      assert.deepEqual(ids((await desk.get('/v1/usage', two.apiKey)).body), [9]);
      assert.deepEqual(ids((await desk.get(`/v1/usage?key=${two.keyId}`, one.apiKey)).body), []);
    });

    it('lists records in pages without losing or repeating any', async () => {
      const seen: number[] = [];
      let path = '/v1/usage?limit=2';
      for (let pages = 0; pages < 3; pages += 1) {
        const { body } = await desk.get(path, one.apiKey);
        seen.push(...ids(body));
        if (pages === 2) assert.equal(body.nextCursor, null);
        path = `/v1/usage?limit=2&cursor=${body.nextCursor}`;
      }
      assert.deepEqual(seen, [4, 3, 2, 1, 0]);
    });

    it('continues after the last record of a page, even if newer records were added in between', async () => {
      const other = await desk.customer();
      const made = [0, 1, 2, 3].map((index) => row(other, index * 10));
      await desk.database('usage_records').insert(made);
      const first = (await desk.get('/v1/usage?limit=2', other.apiKey)).body;
      await desk.database('usage_records').insert([row(other, 25), row(other, 40), row(other, 41)]);
      const second = (await desk.get(`/v1/usage?limit=2&cursor=${first.nextCursor}`, other.apiKey)).body;
      assert.deepEqual([...ids(first), ...ids(second)], [30, 20, 10, 0]);
      assert.equal(second.nextCursor, null);
    });

    for (const [filter, expected] of [
      ['from=2026-11-20T08:00:02Z', [4, 3, 2]],
      ['from=2026-11-20T09:00:02%2B01:00', [4, 3, 2]],
      ['from=2026-11-20T09:00:02+01:00&to=2026-11-20T08:00:03Z', [2]],
      ['model=acme-large-4.5', [4, 3, 2, 0]],
      ['model=large', [4, 3, 2, 0]],
      ['upstream=other', [2]],
      ['status=200&upstream=acme-official', [4, 3, 0]],
      ['session=s', [3, 2]],
      ['session=s&agent=a', [2]],
      ["session='%20or%20''='", []],
    ] as const) {
      it(`filters by ${filter}`, async () => {
        assert.deepEqual(ids((await desk.get(`/v1/usage?${filter}`, one.apiKey)).body), expected);
        const csv = await desk.get(`/v1/usage.csv?${filter}`, one.apiKey);
        assert.equal(csv.body.split('\r\n').length, expected.length + 2);
      });
    }

    it('stores a session id as the same hash on all nodes of a database', async () => {
      const [node, other] = [await openSessionIds(desk.database), await openSessionIds(desk.database)];
      assert.equal(node.recorded('task 7'), other.recorded('task 7'));
    });

    for (const filter of [
      'from=yesterday',
      'to=2026-02-30T00:00:00Z',
      'from=2026-11-20',
      'to=2026-11-20T08:00:00+99:00',
      'key=1',
      'model=',
      'status=99',
      'limit=1001',
      'account=x',
      'cursor=e30',
      'cursor=WyIyMDI2LTExLTIwVDA4OjAwOjAzLjAwMFoiLCJcdTAwMDAiXQ',
    ]) {
      it(`refuses the filter ${filter} and names the wrong parameter`, async () => {
        const { status, body } = await desk.get(`/v1/usage?${filter}`, one.apiKey);
        assert.equal(status, 400);
        assert.equal(body.error.code, 'INVALID_FIELD');
        assert.equal(body.error.param, filter.slice(0, filter.indexOf('=')));
        if (/^(from|to)/.test(filter)) assert.match(body.error.message, /a time with its offset, such as/);
      });
    }

    it('exports the same records as it lists, with costs as numbers', async () => {
      const evil = await desk.admin('POST', `/accounts/${one.accountId}/keys`, {
        name: '=HYPERLINK("http://evil","x")',
      });
      await desk.database('usage_records').insert(row({ ...one, keyId: evil.body.id }, 5));
      const { status, headers, body } = await desk.get('/v1/usage.csv', one.apiKey);
      assert.equal(status, 200);
      assert.match(headers.get('content-type') ?? '', /^text\/csv/);
      assert.match(headers.get('content-disposition') ?? '', /attachment/);
      const lines = body.trimEnd().split('\r\n');
      assert.equal(lines.length, 7);
      assert.ok(lines[0].startsWith('requestId,createdAt,keyId,keyName,'));
      assert.ok(lines[1].includes(`"'=HYPERLINK(""http://evil"",""x"")"`));
      assert.ok(lines[1].includes(',0.00012345,actual,900,300,r1'));
    });

    it('exports more records than fit into one batch, each record once', async () => {
      const many = await desk.customer();
      const rows = Array.from({ length: 2_500 }, (_, index) => row(many, index, { created_at: new Date(START) }));
      for (let at = 0; at < rows.length; at += 500)
        await desk.database('usage_records').insert(rows.slice(at, at + 500));
      const { body } = await desk.get('/v1/usage.csv', many.apiKey);
      const seen = body
        .trimEnd()
        .split('\r\n')
        .slice(1)
        .map((line: string) => line.slice(0, line.indexOf(',')));
      assert.equal(seen.length, 2_500);
      assert.equal(new Set(seen).size, 2_500);
    });

    it('shows operators the usage of every account, or of one account', async () => {
      const all = await desk.admin(
        'GET',
        '/usage?upstream=acme-official&to=2026-11-20T08:00:10Z&from=2026-11-20T08:00:08Z',
      );
      assert.ok(ids(all.body).includes(9));
      const onlyTwo = await desk.admin('GET', `/usage?account=${two.accountId}`);
      assert.deepEqual(ids(onlyTwo.body), [9]);
      assert.equal(onlyTwo.body.items[0].accountId, two.accountId);
      const csv = await desk.admin('GET', `/usage.csv?account=${two.accountId}`);
      const [head, line] = csv.body.split('\r\n');
      assert.ok(
        head.endsWith(
          ',configRevision,calls,passes,flags,sessionId,agentId,endUserId,teamId,memberId,tags,region,demands,accountId,rollout,rolloutStage,rolloutGroup,excess,upstreamCost',
        ),
      );
      assert.ok(line.endsWith(`,r1,1,,,s,,,,,,,,${two.accountId},,,,,`));
      assert.equal((await desk.admin('GET', '/usage?account=x')).body.error.param, 'account');
    });
  });
}

describe('usage records of several months', () => {
  let desk: TestDesk;
  let customer: Customer;
  const months = [0, 1, 2].flatMap((ahead) => [1, 2, 3].map((day) => [ahead, day] as const));
  const at = (ahead: number, day: number) => {
    const now = new Date();
    return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + ahead, day, 12));
  };
  before(async () => {
    desk = await openDesk('Postgres');
    await keepPartitions({ database: desk.database, log: quiet });
    customer = await desk.customer();
    const rows = months.map(([ahead, day], index) => row(customer, index, { created_at: at(ahead, day) }));
    await desk.database('usage_records').insert(rows);
  });
  after(() => desk.close());

  it('are stored in one partition a month, and listed as if in one table', async () => {
    const { rows } = await desk.database.raw('SELECT DISTINCT tableoid FROM usage_records');
    assert.equal(rows.length, 3);
    const seen: number[] = [];
    for (let cursor = ''; cursor !== 'null'; ) {
      const { body } = await desk.get(`/v1/usage?limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`, customer.apiKey);
      seen.push(...ids(body));
      cursor = String(body.nextCursor);
    }
    assert.deepEqual(seen, months.map((_, index) => index).reverse());
    const from = at(1, 1).toISOString();
    const to = at(2, 2).toISOString();
    assert.deepEqual(ids((await desk.get(`/v1/usage?from=${from}&to=${to}`, customer.apiKey)).body), [6, 5, 4, 3]);
  });

  /** Returns the plan of the page's query if scans are expensive, as they are for large tables. */
  async function planOf(ask: () => Promise<unknown>): Promise<string> {
    let asked = { sql: '', bindings: [] as unknown[] };
    const keep = (query: typeof asked) => {
      if (query.sql.includes('usage_records')) asked = query;
    };
    desk.database.on('query', keep);
    await ask();
    desk.database.removeListener('query', keep);
    return desk.database.transaction(async (transaction) => {
      for (const way of ['seqscan', 'bitmapscan']) await transaction.raw(`SET LOCAL enable_${way} = off`);
      const { rows } = await transaction.raw(`EXPLAIN ${asked.sql.replace(/\$\d+/g, '?')}`, asked.bindings as never);
      return rows.map((line: Record<string, string>) => line['QUERY PLAN']).join('\n');
    });
  }

  for (const filter of ['', 'key={key}', 'model=m', 'status=502', 'session=s', 'from={from}']) {
    it(`are found by an index of each partition, in the order of that index, with the filter: ${filter === '' ? 'all' : filter}`, async () => {
      const query = filter.replace('{key}', customer.keyId).replace('{from}', at(0, 1).toISOString());
      const asOwner = await planOf(() => desk.get(`/v1/usage?${query}`, customer.apiKey));
      const asOperator = await planOf(() => desk.admin('GET', `/usage?${query}`));
      for (const plan of [asOwner, asOperator]) {
        assert.ok(!/Seq Scan on usage_records/.test(plan), plan);
        assert.match(plan, /Merge Append|Incremental Sort/);
      }
    });
  }
});

describe('an export whose client disconnects', () => {
  it('stops reading, and the next export is served', async () => {
    const desk = await openDesk('Postgres');
    const customer = await desk.customer();
    const rows = Array.from({ length: 5_000 }, (_, index) => row(customer, index, { path: 'x'.repeat(500) }));
    for (let at = 0; at < rows.length; at += 1_000)
      await desk.database('usage_records').insert(rows.slice(at, at + 1_000));
    let reads = 0;
    desk.database.on('query', ({ sql }: { sql: string }) => {
      if (sql.includes('usage_records')) reads += 1;
    });
    const request = get(`${desk.publicUrl}/v1/usage.csv`, { headers: { 'x-api-key': customer.apiKey } });
    request.on('error', () => undefined);
    await new Promise((answered) => request.once('response', answered));
    request.destroy();
    await until(
      'no query is under way',
      () => (desk.database.client as { pool: { numUsed(): number } }).pool.numUsed() === 0,
    );
    assert.ok(reads < 6, `${reads} batches were read`);
    assert.equal((await desk.get('/v1/usage?limit=1', customer.apiKey)).body.items.length, 1);
    await desk.close();
  });
});
