import assert from 'node:assert/strict';
import { raiseKeyExpiries } from '../../core/accounts/key-expiries';
import { newId } from '../../core/base/ids';
import { deleteOldEvents } from '../../core/events/feed';
import { raiseEvents, writeEvents } from '../../core/events/raise';
import { raiseUpstreamEvents } from '../../core/events/upstream-events';
import { UpstreamHealth } from '../../core/health/health';
import { quiet } from '../support/databases';
import { openDesk, type TestAnswer, type TestDesk } from '../support/desk';
import { until } from '../support/until';

function refusedWith(answer: TestAnswer, status: number, code: string, param?: string): void {
  assert.equal(answer.status, status, JSON.stringify(answer.body));
  assert.equal(answer.body.error.code, code);
  if (param !== undefined) assert.equal(answer.body.error.param, param);
}

function made(answer: TestAnswer, status = 201) {
  assert.equal(answer.status, status, JSON.stringify(answer.body));
  return answer.body;
}

const RESET = { outcome: 'reset', verdict: 'next', status: undefined, retryAfterMs: undefined } as const;

const URL_OF_WEBHOOK = 'https://example.com/webhooks';

for (const name of ['Postgres', 'PGlite'] as const) {
  describe(`alerts on ${name}`, () => {
    let desk: TestDesk;
    let accountId: string;
    let keyId: string;
    let apiKey: string;
    before(async function () {
      this.timeout(120_000);
      desk = await openDesk(name);
    });
    after(() => desk.close());
    beforeEach(async () => {
      ({ accountId, keyId, apiKey } = await desk.customer('10'));
    });

    const webhooks = () => `/accounts/${accountId}/webhooks`;
    const add = async (body: object = { url: URL_OF_WEBHOOK }) => made(await desk.admin('POST', webhooks(), body));
    const actionsOf = async (subject: string) =>
      (await desk.admin('GET', `/audit?subject=${subject}`)).body.items.map((item: { action: string }) => item.action);
    const eventsOf = async (query = '') => made(await desk.get(`/v1/events${query}`, apiKey), 200);
    const typesOf = async () => (await eventsOf()).items.map(({ type }: { type: string }) => type);
    const last = async () => Number((await desk.database('event_feeds').max('last as last').first())?.last);
    const operatorEvents = async (query: string) => made(await desk.admin('GET', `/events?${query}`), 200).items;

    describe('a webhook', () => {
      it('is created, listed, changed, rotated and deleted, and shows its secret only when it is made', async () => {
        const { secret, ...webhook } = await add({ url: URL_OF_WEBHOOK, types: ['balance.low', 'budget.reached'] });
        assert.deepEqual(Object.keys(webhook), ['id', 'accountId', 'url', 'types', 'status', 'createdAt']);
        assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
        const types = ['balance.low', 'budget.reached'];
        const expected = [accountId, URL_OF_WEBHOOK, types, 'active'];
        assert.deepEqual([webhook.accountId, webhook.url, webhook.types, webhook.status], expected);
        const { secret: _, ...other } = await add();
        assert.equal(other.types, null);
        assert.deepEqual(made(await desk.admin('GET', webhooks()), 200), { items: [other, webhook], nextCursor: null });
        const path = `/webhooks/${webhook.id}`;
        const change = { url: 'https://example.org/', types: null, status: 'disabled' };
        assert.deepEqual(made(await desk.admin('PATCH', path, change), 200), { ...webhook, ...change });
        const rotated = made(await desk.admin('POST', `${path}/rotate`, { graceSeconds: 60 }));
        assert.deepEqual(rotated, { ...webhook, ...change, secret: rotated.secret });
        assert.notEqual(rotated.secret, secret);
        assert.deepEqual(made(await desk.admin('DELETE', path), 200), { ...webhook, ...change });
        assert.deepEqual(made(await desk.admin('GET', webhooks()), 200).items, [other]);
        const verbs = ['delete', 'rotate', 'update', 'create'].map((verb) => `webhook.${verb}`);
        assert.deepEqual(await actionsOf(`webhook:${webhook.id}`), verbs);
        const log = JSON.stringify((await desk.admin('GET', '/audit')).body);
        assert.ok(!log.includes('whsec_'), 'the audit log has no secret');
      });

      it('that is not there is 404, for every request', async () => {
        const { id } = await add();
        for (const webhook of [newId(), 'none']) {
          for (const [method, path, body] of [
            ['PATCH', '', { status: 'active' }],
            ['DELETE', ''],
            ['POST', '/rotate', { graceSeconds: 0 }],
            ['POST', '/test', {}],
            ['GET', '/deliveries'],
            ['POST', `/deliveries/${newId()}/redeliver`, {}],
          ] as const)
            refusedWith(await desk.admin(method, `/webhooks/${webhook}${path}`, body), 404, 'NOT_FOUND');
        }
        for (const delivery of [newId(), 'none'])
          refusedWith(await desk.admin('POST', `/webhooks/${id}/deliveries/${delivery}/redeliver`), 404, 'NOT_FOUND');
        refusedWith(await desk.admin('GET', `/accounts/${newId()}/webhooks`), 404, 'NOT_FOUND');
        refusedWith(
          await desk.admin('POST', `/accounts/${newId()}/webhooks`, { url: URL_OF_WEBHOOK }),
          404,
          'NOT_FOUND',
        );
      });

      for (const [url, expected] of Object.entries({
        'http://example.com/': 'expected a URL that begins with https://',
        'ftp://example.com/': 'expected a URL that begins with https://',
        'example.com': 'expected a URL such as https://example.com/webhooks',
        'https://user:password@example.com/': 'expected a URL without user and password',
        'https://example.com/#part': 'expected a URL without a fragment',
        'https://example.com:0/': 'expected a port from 1 to 65535',
        'https://127.0.0.1/': 'expected the URL of a public address',
        'https://0x7f.1/': 'expected the URL of a public address',
        'https://169.254.169.254/latest': 'expected the URL of a public address',
        'https://10.1.2.3:8443/': 'expected the URL of a public address',
        'https://[::1]/': 'expected the URL of a public address',
        'https://[::ffff:10.0.0.1]/': 'expected the URL of a public address',
        'https://LOCALHOST/': 'expected the URL of a public address',
        'https://app.localhost./': 'expected the URL of a public address',
      })) {
        it(`with the URL ${url} is refused when it is made and when it is changed`, async () => {
          const { id } = await add();
          for (const answer of [
            await desk.admin('POST', webhooks(), { url }),
            await desk.admin('PATCH', `/webhooks/${id}`, { url, status: 'disabled' }),
          ]) {
            refusedWith(answer, 400, 'INVALID_FIELD', 'url');
            assert.equal(answer.body.error.message, `url: ${expected}`);
          }
          const { items } = made(await desk.admin('GET', webhooks()), 200);
          assert.deepEqual(
            items.map((item: { url: string; status: string }) => [item.url, item.status]),
            [[URL_OF_WEBHOOK, 'active']],
          );
        });
      }

      it('is refused with the name of a wrong field', async () => {
        const { id } = await add();
        for (const [method, path, body, param] of [
          ['POST', webhooks(), {}, 'url'],
          ['POST', webhooks(), { url: 7 }, 'url'],
          ['POST', webhooks(), { url: URL_OF_WEBHOOK, types: ['upstream.ejected'] }, 'types[0]'],
          ['PATCH', `/webhooks/${id}`, { status: 'paused' }, 'status'],
          ['POST', `/webhooks/${id}/rotate`, { graceSeconds: -1 }, 'graceSeconds'],
        ] as const)
          refusedWith(await desk.admin(method, path, body), 400, 'INVALID_FIELD', param);
      });

      it('is the last of ten, even if requests for more come at once', async () => {
        for (let count = 1; count < 10; count++) await add();
        const requests = [1, 2, 3].map(() => desk.admin('POST', webhooks(), { url: URL_OF_WEBHOOK }));
        const answers = await Promise.all(requests);
        assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 409, 409]);
      });

      it('lists its deliveries, newest first, and repeats one', async () => {
        const { id } = await add();
        made(await desk.admin('POST', `/accounts/${accountId}/freeze`), 200);
        const test = made(await desk.admin('POST', `/webhooks/${id}/test`), 202);
        const { items } = made(await desk.admin('GET', `/webhooks/${id}/deliveries`), 200);
        assert.deepEqual(items[0], test);
        const [first] = made(await desk.admin('GET', `/events?account=${accountId}`), 200).items;
        const { id: deliveryId, createdAt, nextAttemptAt, ...frozen } = items[1];
        const outcome = { status: 'pending', attempts: 0, responseStatus: null, error: null };
        assert.deepEqual(frozen, { eventId: first.id, type: 'account.frozen', ...outcome });
        assert.equal(createdAt, nextAttemptAt);
        const again = made(await desk.admin('POST', `/webhooks/${id}/deliveries/${deliveryId}/redeliver`), 202);
        assert.deepEqual([again.id, again.eventId, again.status], [deliveryId, first.id, 'pending']);
        const actions = ['webhook.redeliver', 'webhook.test', 'webhook.create'];
        assert.deepEqual(await actionsOf(`webhook:${id}`), actions);
      });
    });

    describe('a feed', () => {
      it('has the events of its account in order, and the operators have all with numbers of their own', async () => {
        const before = await last();
        const other = await desk.customer();
        const raise = (of: string, text: string) =>
          raiseEvents(desk.database, quiet, [{ type: 'account.frozen', accountId: of, once: newId(), data: { text } }]);
        await raise(accountId, 'one');
        await raise(other.accountId, 'foreign');
        await raise(accountId, 'two');
        const { items, nextCursor } = await eventsOf();
        assert.equal(nextCursor, null);
        assert.deepEqual(Object.keys(items[0]), ['id', 'sequence', 'type', 'timestamp', 'accountId', 'data']);
        const numbered = (each: { sequence: number; data: object }[]) =>
          each.map(({ sequence, data }) => [sequence, data]);
        assert.deepEqual(numbered(items), [
          [1, { text: 'one' }],
          [2, { text: 'two' }],
        ]);
        const first = await eventsOf('?limit=1');
        assert.deepEqual(first, { items: items.slice(0, 1), nextCursor: '1' });
        assert.deepEqual(await eventsOf('?after=1'), { items: items.slice(1), nextCursor: null });
        assert.deepEqual(numbered(await operatorEvents(`after=${before}`)), [
          [before + 1, { text: 'one' }],
          [before + 2, { text: 'foreign' }],
          [before + 3, { text: 'two' }],
        ]);
        const own = await operatorEvents(`after=${before}&account=${accountId}`);
        assert.deepEqual(numbered(own), [
          [before + 1, { text: 'one' }],
          [before + 3, { text: 'two' }],
        ]);
        for (const query of ['after=-1', 'after=x', 'limit=0']) {
          const param = query.split('=')[0];
          refusedWith(await desk.get(`/v1/events?${query}`, apiKey), 400, 'INVALID_FIELD', param);
          refusedWith(await desk.admin('GET', `/events?${query}`), 400, 'INVALID_FIELD', param);
        }
        refusedWith(await desk.get('/v1/events', 'wrong'), 401, 'INVALID_API_KEY');
      });

      it('shows events for 30 days, and a fact that lasts longer is not reported again after that', async () => {
        const events = [
          { type: 'account.frozen', accountId, once: 'old', data: {} },
          { type: 'balance.low', accountId, once: `${accountId} lasting`, data: {}, keptUntil: 'infinity' },
        ] as const;
        await desk.database.transaction((trx) => writeEvents(trx, events));
        const days = (count: number) => desk.database.raw(`now() - interval '${count} days'`);
        await desk
          .database('events')
          .where({ account_id: accountId })
          .update({ created_at: days(29) });
        assert.deepEqual(await typesOf(), ['account.frozen', 'balance.low']);
        await desk
          .database('events')
          .where({ account_id: accountId })
          .update({ created_at: days(32) });
        assert.deepEqual(await typesOf(), []);
        await deleteOldEvents(desk.database);
        await desk.database.transaction((trx) => writeEvents(trx, events));
        const { items } = await eventsOf();
        assert.deepEqual(
          items.map(({ type, sequence }: { type: string; sequence: number }) => [type, sequence]),
          [['account.frozen', 3]],
        );
      });
    });

    describe('an event', () => {
      it('`balance.low` has the threshold that the operator sets for the account', async () => {
        const path = `/accounts/${accountId}`;
        assert.equal(made(await desk.admin('GET', path), 200).balanceLowUsd, null);
        const shown = made(await desk.admin('PATCH', path, { balanceLowUsd: '5.5' }), 200);
        assert.deepEqual([shown.balanceLowUsd, shown.name], ['5.50000000', 'customer']);
        for (const balanceLowUsd of ['-1', 'much', 5])
          refusedWith(await desk.admin('PATCH', path, { balanceLowUsd }), 400, 'INVALID_FIELD', 'balanceLowUsd');
        made(await desk.admin('PATCH', path, { name: 'renamed' }), 200);
        assert.equal(made(await desk.admin('GET', path), 200).balanceLowUsd, '5.50000000');
        assert.equal(made(await desk.admin('PATCH', path, { balanceLowUsd: null }), 200).balanceLowUsd, null);
        const { items } = (await desk.admin('GET', `/audit?subject=account:${accountId}&limit=1`)).body;
        assert.equal(items[0].before.balanceLowUsd, '5.50000000');
        assert.equal(items[0].after.balanceLowUsd, null);
      });

      it('`account.frozen` comes once each time the account is frozen', async () => {
        for (const verb of ['freeze', 'freeze', 'unfreeze', 'freeze', 'unfreeze'])
          made(await desk.admin('POST', `/accounts/${accountId}/${verb}`), 200);
        const { items } = await eventsOf();
        const data = { name: 'customer', reason: 'operator' };
        assert.deepEqual(
          items.map((each: { type: string; data: object }) => [each.type, each.data]),
          [
            ['account.frozen', data],
            ['account.frozen', data],
          ],
        );
      });

      it('`key.expires_soon` comes a week before a key expires, once for each time of expiry', async () => {
        const expire = async (days: number) => {
          const expiresAt = new Date(Date.now() + days * 86_400_000).toISOString();
          made(await desk.admin('PATCH', `/keys/${keyId}`, { expiresAt }), 200);
          await raiseKeyExpiries(desk.database, quiet);
          await raiseKeyExpiries(desk.database, quiet);
          return expiresAt;
        };
        await expire(8);
        assert.deepEqual(await typesOf(), []);
        const first = await expire(6);
        const second = await expire(5);
        const { items } = await eventsOf();
        assert.deepEqual(
          items.map((each: { type: string; data: object }) => [each.type, each.data]),
          [
            ['key.expires_soon', { keyId, name: 'first', expiresAt: first }],
            ['key.expires_soon', { keyId, name: 'first', expiresAt: second }],
          ],
        );
      });

      it('`upstream.ejected` and `upstream.returned` come once, although several processes see an outage', async () => {
        const before = await last();
        let nowMs = 60_000_000;
        const nodes = [1, 2].map(() => new UpstreamHealth({ now: () => nowMs }));
        const upstream = { name: `upstream-${newId()}`, credential: { name: 'main' }, credentials: [{ name: 'main' }] };
        const candidate = { upstream, model: undefined } as never;
        const fail = (node: UpstreamHealth, of: string) =>
          node.failed(candidate, RESET, { accountId: of, ms: 0, mayEject: true });
        for (const node of nodes) {
          raiseUpstreamEvents(node, desk.database, quiet, () => nowMs);
          for (const of of ['a', 'b', 'c', 'd', 'e']) fail(node, of);
        }
        await until('the first is written', async () => (await operatorEvents(`after=${before}`)).length > 0);
        nowMs += 30_000;
        for (const node of nodes) {
          // A probe that fails extends the ejection, which is no new event.
          fail(node, 'a');
          node.answered(candidate, { accountId: 'a', ms: 0, stream: false });
        }
        const seen = await until('both are written', async () => {
          const events = await operatorEvents(`after=${before}`);
          return events.length >= 2 ? events : undefined;
        });
        assert.deepEqual(
          seen.map((each: { type: string; data: object }) => [each.type, each.data]),
          [
            ['upstream.ejected', { upstream: upstream.name, ejectedForSeconds: 30 }],
            ['upstream.returned', { upstream: upstream.name }],
          ],
        );
      });

      it('that cannot be written does not disturb the work that it reports', async () => {
        const failing = { type: 'account.frozen', accountId: 'no id', once: newId(), data: {} } as const;
        await desk.database.transaction(async (transaction) => {
          assert.equal(await raiseEvents(transaction, quiet, [failing]), false);
          await transaction('accounts').where({ id: accountId }).update({ name: 'still written' });
        });
        assert.equal(made(await desk.admin('GET', `/accounts/${accountId}`), 200).name, 'still written');
      });
    });
  });
}
