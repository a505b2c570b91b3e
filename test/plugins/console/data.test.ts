import assert from 'node:assert/strict';
import { newId } from '../../../core/base/ids';
import { formatUsd } from '../../../core/base/money';
import { buildCatalog } from '../../../core/catalog/catalog';
import { sampleModel, samplePrice, sampleUpstream } from '../../support/catalog-samples';
import { signedInBrowser, type TestBrowser } from '../../support/console';
import { openDesk, type TestDesk } from '../../support/desk';

const NOW = Date.now();
const HOUR_MS = 3_600_000;

interface Call {
  readonly atMs: number;
  readonly keyId: string;
  readonly model?: string | null;
  readonly upstream?: string | null;
  readonly status?: number;
  readonly costE8?: bigint;
  readonly firstTokenMs?: number | null;
}

for (const name of ['Postgres', 'PGlite'] as const) {
  describe(`the console's API for data (${name})`, function () {
    this.timeout(60_000);
    let desk: TestDesk;
    let customer: { accountId: string; keyId: string; apiKey: string };
    let browser: TestBrowser;
    let stranger: TestBrowser;
    let requests = 0;

    const signIn = (accountId: string) => signedInBrowser(desk.publicUrl, desk.database, accountId);
    const write = async (accountId: string, calls: readonly Call[]) => {
      const rows = calls.map(
        ({ atMs, keyId, model = 'acme', upstream = 'one', status = 200, costE8 = 0n, firstTokenMs = null }) => {
          requests += 1;
          return {
            request_id: `req_${requests}`,
            created_at: new Date(atMs),
            account_id: accountId,
            key_id: keyId,
            protocol: 'messages',
            path: '/v1/messages',
            strategy: 'quality',
            model_requested: model,
            model,
            upstream,
            attempts: 1,
            fallback: false,
            stream: firstTokenMs !== null,
            status,
            source: 'provider',
            error_code: status < 400 ? null : 'ALL_PROVIDERS_FAILED',
            input_tokens: 10,
            output_tokens: 5,
            total_tokens: 15,
            cache_creation_tokens: 0,
            cache_read_tokens: 0,
            cost_e8: costE8,
            billing: status < 400 ? 'actual' : 'released',
            response_time_ms: 900,
            first_token_ms: firstTokenMs,
            config_revision: 'revision',
          };
        },
      );
      await desk.database('usage_records').insert(rows);
      return rows.map(({ request_id }) => request_id);
    };

    before(async () => {
      const catalog = buildCatalog([
        sampleUpstream('one', [sampleModel('acme', { price: samplePrice(300_000_000n, 1_500_000_000n) })]),
        sampleUpstream('two', [sampleModel('acme', { price: samplePrice(200_000_000n, 2_000_000_000n) })]),
      ]);
      desk = await openDesk(name, { catalog });
      customer = await desk.customer('5');
      browser = await signIn(customer.accountId);
      stranger = await signIn((await desk.customer()).accountId);
    });
    after(() => desk.close());

    it("creates, changes, lists and revokes the API keys of the user's own account", async () => {
      const wanted = {
        name: '<img onerror=alert(1)>',
        balanceLimit: '1.5',
        callsPerMinute: 60,
        allowedModels: ['acme'],
      };
      const made = await browser.send('POST', '/keys', wanted);
      assert.equal(made.status, 201);
      const { key, ...shown } = made.body;
      assert.match(key, /^sk-svc-/);
      assert.deepEqual(
        [shown.name, shown.balanceLimit, shown.callsPerMinute, shown.allowedModels, shown.spentUsd, shown.lastUsedAt],
        ['<img onerror=alert(1)>', '1.50000000', 60, ['acme'], '0.00000000', null],
      );
      assert.ok(!('accountId' in shown) && !('debug' in shown));
      assert.equal((await desk.get('/v1/balance', key)).status, 200);

      const [requestId] = await write(customer.accountId, [{ atMs: NOW - 1_000, keyId: shown.id }]);
      const { body: read } = await browser.get(`/keys/${shown.id}`);
      assert.equal(read.lastUsedAt, new Date(NOW - 1_000).toISOString());
      assert.ok(requestId !== undefined);

      const changed = await browser.send('PATCH', `/keys/${shown.id}`, { name: 'renamed', balanceLimit: null });
      assert.deepEqual([changed.status, changed.body.name, changed.body.balanceLimit], [200, 'renamed', null]);
      for (const search of ['RENAM', shown.id.slice(0, 20), key.slice(-4)]) {
        const { body } = await browser.get(`/keys?search=${encodeURIComponent(search)}`);
        assert.deepEqual(
          body.items.map(({ id }: { id: string }) => id),
          [shown.id],
          search,
        );
      }
      assert.equal((await browser.get('/keys?search=%25')).body.items.length, 0);

      for (const [method, body] of [
        ['GET', undefined],
        ['PATCH', { name: 'taken' }],
        ['DELETE', undefined],
      ] as const) {
        const answer = await stranger.send(method, `/keys/${shown.id}`, body);
        assert.deepEqual([answer.status, answer.body.error.code], [404, 'NOT_FOUND'], method);
      }
      assert.equal((await stranger.get('/keys')).body.items.length, 1);

      const revoked = await browser.send('DELETE', `/keys/${shown.id}`);
      assert.deepEqual([revoked.status, revoked.body.status], [200, 'revoked']);
      assert.equal((await desk.get('/v1/balance', key)).status, 401);
      assert.equal((await browser.send('PATCH', `/keys/${shown.id}`, { name: 'again' })).status, 409);
      const { body: active } = await browser.get('/keys?status=active');
      assert.deepEqual(
        active.items.map(({ id }: { id: string }) => id),
        [customer.keyId],
      );
      const { body: audit } = await desk.admin('GET', `/audit?subject=key:${shown.id}`);
      for (const { actor } of audit.items) assert.match(actor, /^user:/);
    });

    it('shows the team and the member of an API key, and refuses those of other accounts', async () => {
      const teamOf = async (accountId: string) =>
        (await desk.admin('POST', `/accounts/${accountId}/teams`, { name: 'a team' })).body.id;
      const teamId = await teamOf(customer.accountId);
      const { userId: memberId } = await desk.person(customer.accountId);
      const made = await browser.send('POST', '/keys', { name: 'of a team', teamId, memberId });
      assert.deepEqual([made.status, made.body.teamId, made.body.memberId], [201, teamId, memberId]);
      const foreign = await teamOf((await desk.customer()).accountId);
      const refused = await browser.send('PATCH', `/keys/${made.body.id}`, { teamId: foreign });
      assert.deepEqual([refused.status, refused.body.error.param], [404, 'teamId']);
      const freed = await browser.send('PATCH', `/keys/${made.body.id}`, { teamId: null, memberId: null });
      assert.deepEqual([freed.body.teamId, freed.body.memberId], [null, null]);
      await browser.send('DELETE', `/keys/${made.body.id}`);
    });

    it('refuses to create or change an API key with members that a user cannot set', async () => {
      for (const more of [{ debug: true }, { accountId: newId() }, { balance: '5' }, { role: 'admin' }]) {
        assert.equal((await browser.send('POST', '/keys', { name: 'x', ...more })).status, 400);
        assert.equal((await browser.send('PATCH', `/keys/${customer.keyId}`, more)).status, 400);
      }
    });

    it('filters usage records in the table, the totals, the chart and the CSV', async () => {
      const { accountId } = await desk.customer();
      const own = await signIn(accountId);
      const keys = [newId(), newId()] as const;
      await desk.database('api_keys').insert(
        keys.map((id, index) => ({
          id,
          account_id: accountId,
          name: ['=HYPERLINK("x")', 'plain'][index],
          hash: id,
          prefix: 'p',
          suffix: 's',
          status: 'active',
        })),
      );
      const from = Math.floor(NOW / HOUR_MS) * HOUR_MS - 48 * HOUR_MS;
      const calls: Call[] = [];
      for (let index = 0; index < 240; index += 1) {
        calls.push({
          atMs: from + (index * HOUR_MS) / 5,
          keyId: index % 3 === 0 ? keys[0] : keys[1],
          model: `model-${index % 12}`,
          upstream: index % 10 === 0 ? null : `upstream-${index % 2}`,
          status: index % 10 === 0 ? 502 : 200,
          costE8: index % 10 === 0 ? 0n : BigInt(1_000 * (index % 12) + 1),
          firstTokenMs: index % 10 === 0 ? null : 100 + index,
        });
      }
      await write(accountId, calls);
      const range = `from=${new Date(from).toISOString()}&to=${new Date(from + 48 * HOUR_MS).toISOString()}`;
      for (const [filter, keep] of [
        ['', () => true],
        [`&key=${keys[0]}`, (call) => call.keyId === keys[0]],
        ['&model=model-3', (call) => call.model === 'model-3'],
        ['&upstream=upstream-1', (call) => call.upstream === 'upstream-1'],
        ['&status=502', (call) => call.status === 502],
        [
          `&key=${keys[1]}&model=model-1&status=200`,
          (call) => call.keyId === keys[1] && call.model === 'model-1' && call.status === 200,
        ],
        ['&model=nobody', () => false],
      ] as readonly (readonly [string, (call: Call) => boolean])[]) {
        const found = calls.filter(keep);
        const cost = formatUsd(found.reduce((sum, { costE8 = 0n }) => sum + costE8, 0n));
        const { body: page } = await own.get(`/usage?${range}${filter}&limit=1000`);
        assert.equal(page.items.length, found.length, filter);
        const { body: totals } = await own.get(`/usage/totals?${range}${filter}`);
        assert.deepEqual(
          [totals.calls, totals.costUsd, totals.totalTokens, totals.failed],
          [found.length, cost, 15 * found.length, found.filter(({ status }) => status === 502).length],
          filter,
        );
        const times = found.flatMap(({ firstTokenMs }) => firstTokenMs ?? []).sort((one, other) => one - other);
        assert.equal(totals.firstTokenMs.p50, times[Math.ceil(times.length / 2) - 1] ?? null, filter);
        const csv = await own.get(`/usage.csv?${range}${filter}`);
        assert.equal(String(csv.body).trim().split('\r\n').length - 1, found.length, filter);

        for (const by of ['', '&by=model', '&by=key', '&by=upstream']) {
          const { status, body } = await own.get(`/usage/series?${range}${filter}${by}`);
          assert.equal(status, 200, JSON.stringify(body));
          assert.equal(body.interval, 'hour');
          assert.equal(body.starts.length, 48);
          const groups: {
            name: string;
            calls: number[];
            totalCalls: number;
            totalCostUsd: string;
            costUsd: string[];
          }[] = body.groups;
          const sumE8 = (texts: string[]) => texts.reduce((sum, text) => sum + BigInt(text.replace('.', '')), 0n);
          assert.equal(
            groups.reduce((sum, { totalCalls }) => sum + totalCalls, 0),
            found.length,
          );
          assert.equal(formatUsd(sumE8(groups.map(({ totalCostUsd }) => totalCostUsd))), cost);
          for (const group of groups) {
            assert.equal(group.calls.length, 48);
            assert.equal(sumE8(group.costUsd), sumE8([group.totalCostUsd]));
          }
        }
      }

      const { body: byModel } = await own.get(`/usage/series?${range}&by=model`);
      const costs: number[] = byModel.groups
        .slice(0, 8)
        .map((group: { totalCostUsd: string }) => Number(group.totalCostUsd));
      assert.deepEqual(
        costs,
        [...costs].sort((one, other) => other - one),
      );
      assert.deepEqual([byModel.groups.length, byModel.groups[8].name, byModel.groups[8].id], [9, 'other', null]);
      const { body: byKey } = await own.get(`/usage/series?${range}&by=key`);
      assert.deepEqual(byKey.groups.map(({ name: group }: { name: string }) => group).sort(), [
        '=HYPERLINK("x")',
        'plain',
      ]);
      const { body: byUpstream } = await own.get(`/usage/series?${range}&by=upstream`);
      assert.ok(
        byUpstream.groups.some((group: { id: string; name: string }) => group.id === '' && group.name === 'none'),
      );
      const firstHour = calls.slice(0, 5).flatMap(({ firstTokenMs }) => firstTokenMs ?? []);
      assert.equal(byUpstream.firstTokenMs.p99[0], Math.max(...firstHour));

      const { body: csv } = await own.get(`/usage.csv?${range}&key=${keys[0]}`);
      assert.ok(String(csv).includes(`,"'=HYPERLINK(""x"")",`));
      assert.match(String(csv), /,\d+\.\d{8},/);
    });

    it('answers 304 to a matching ETag, and sends the data again only after a change', async () => {
      const { accountId, keyId } = await desk.customer();
      const own = await signIn(accountId);
      const first = await own.get('/usage');
      const tag = first.headers.get('etag') ?? '';
      const again = await own.get('/usage', { 'if-none-match': tag });
      assert.deepEqual([again.status, again.body], [304, '']);
      await write(accountId, [{ atMs: NOW, keyId }]);
      const changed = await own.get('/usage', { 'if-none-match': tag });
      assert.deepEqual([changed.status, changed.body.items.length], [200, 1]);
    });

    it('returns a single usage record with its route and price, and no record of another account', async () => {
      const [requestId = ''] = await write(customer.accountId, [{ atMs: NOW, keyId: customer.keyId, upstream: 'two' }]);
      const routing = {
        of: 2,
        candidates: [{ upstream: 'one', score: 1 }],
        attempts: [{ upstream: 'one', outcome: 'timeout', status: null, ms: 9, why: 'next' }],
      };
      await desk
        .database('usage_records')
        .where({ request_id: requestId })
        .update({ routing: JSON.stringify(routing) });
      const { status, body } = await browser.get(`/usage/${requestId}`);
      assert.equal(status, 200);
      assert.deepEqual(body.routing, routing);
      assert.deepEqual(
        [body.price.input, body.price.output, body.price.isCurrent],
        ['2.00000000', '20.00000000', false],
      );
      assert.equal((await stranger.get(`/usage/${requestId}`)).status, 404);
      assert.equal((await stranger.get(`/usage?key=${customer.keyId}`)).body.items.length, 0);
      const [unknown = ''] = await write(customer.accountId, [{ atMs: NOW, keyId: customer.keyId, upstream: 'gone' }]);
      assert.equal((await browser.get(`/usage/${unknown}`)).body.price, null);
    });

    it('refuses a chart with too many points, and unknown time zones', async () => {
      const range = 'from=2026-01-01T00:00:00Z&to=2026-03-01T00:00:00Z';
      const { status, body } = await browser.get(`/usage/series?${range}&interval=minute`);
      assert.deepEqual([status, body.error.param], [400, 'interval']);
      for (const timeZone of ['Mars/Olympus', '+02:00', '', 'x'.repeat(100)])
        assert.equal((await browser.get(`/overview?timeZone=${encodeURIComponent(timeZone)}`)).status, 400, timeZone);
      assert.equal((await browser.get('/usage/series?by=account')).status, 400);
      assert.equal(
        (await browser.get('/usage/series?from=2026-03-01T00:00:00Z&to=2026-01-01T00:00:00Z')).body.starts.length,
        0,
      );
    });

    it('returns an overview: the balance, the spending by day in the time zone, and the available models', async () => {
      const { accountId, keyId } = await desk.customer('2.5');
      const own = await signIn(accountId);
      await write(accountId, [
        { atMs: NOW, keyId, costE8: 5n },
        { atMs: NOW - 24 * HOUR_MS, keyId, costE8: 7n },
        { atMs: NOW - 100 * 24 * HOUR_MS, keyId, costE8: 11n },
      ]);
      for (const timeZone of ['UTC', 'Asia/Kathmandu', 'America/St_Johns']) {
        const { status, body } = await own.get(`/overview?timeZone=${timeZone}`);
        assert.equal(status, 200);
        assert.deepEqual([body.balanceUsd, body.availableUsd, body.timeZone], ['2.50000000', '2.50000000', timeZone]);
        const { spend } = body;
        assert.deepEqual([spend.todayUsd, spend.yesterdayUsd, spend.days.length], ['0.00000005', '0.00000007', 30]);
        const today = new Intl.DateTimeFormat('en-CA', { timeZone }).format(NOW);
        assert.deepEqual(
          [spend.days[29].day, spend.days[29].callsUsd, spend.days[29].calls, spend.days[28].callsUsd],
          [today, '0.00000005', 1, '0.00000007'],
        );
        assert.equal(body.publicUrl, desk.publicUrl);
        assert.deepEqual(body.models[0].pricePerMillion.input, '3.00000000');
        assert.deepEqual(body.models[0].pricePerMillion.output, '20.00000000');
        assert.deepEqual(body.models[0].upstreams, ['one', 'two']);
        assert.deepEqual(
          body.upstreams.map((each: { name: string; state: string; successRate: number }) => [
            each.name,
            each.state,
            each.successRate,
          ]),
          [
            ['one', 'available', null],
            ['two', 'available', null],
          ],
        );
      }
      const { body: catalog } = await own.get('/catalog');
      assert.deepEqual(Object.keys(catalog), ['publicUrl', 'strategies', 'models', 'upstreams']);
    });
  });
}
