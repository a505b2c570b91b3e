import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { Webhook } from 'standardwebhooks';
import { newId } from '../../../core/base/ids';
import { listAccountEvents } from '../../../core/events/feed';
import { writeEvents } from '../../../core/events/raise';
import { startDeliveries } from '../../../core/webhooks/deliver';
import { listDeliveries, redeliver, testWebhook, type WebhookDelivery } from '../../../core/webhooks/deliveries';
import { claimWebhook, DELIVERY_TIMES, type DeliveryTimes, nextDelivery } from '../../../core/webhooks/queue';
import { sendWebhook } from '../../../core/webhooks/send';
import { createWebhook, deleteWebhook, rotateWebhook, updateWebhook } from '../../../core/webhooks/webhooks';
import { type Egress, openEgress, type Resolve } from '../../../core/wire/egress';
import { startCanary } from '../../support/canary';
import { DATABASES, quiet, type TestDatabase } from '../../support/databases';
import { until } from '../../support/until';
import { answer, type Receiver, startReceiver } from './receiver';

const PRIVATE = { allowPrivate: true };
const PAGE = { limit: 100, cursor: undefined };
const SOON: DeliveryTimes = { answerWithinMs: 10_000, pausesMs: [1], forMs: 3_600_000 };

for (const { name, open } of DATABASES) {
  describe(`deliveries to webhooks on ${name}`, () => {
    let test: TestDatabase;
    let database: Knex;
    let receiver: Receiver;
    let egress: Egress;
    let accountId: string;
    const stops: (() => Promise<void>)[] = [];

    before(async function () {
      this.timeout(120_000);
      test = await open();
      database = test.database;
      egress = openEgress();
      receiver = await startReceiver();
    });
    after(async () => {
      await receiver.close();
      await egress.close();
      await test.close();
    });
    beforeEach(async () => {
      receiver.reset();
      accountId = newId();
      await database('accounts').insert({ id: accountId, name: 'acme' });
    });
    afterEach(async () => {
      for (const stop of stops.splice(0)) await stop();
      await database('webhooks').delete();
    });

    const deliver = async (changes: Partial<Parameters<typeof startDeliveries>[0]> = {}) => {
      const options = { database, egress, rules: PRIVATE, log: quiet, times: SOON, ...changes };
      const { stop } = await startDeliveries(options);
      stops.push(stop);
      return stop;
    };
    const add = (settings: Partial<Parameters<typeof createWebhook>[3]> = {}) =>
      createWebhook(database, PRIVATE, accountId, { url: receiver.url, ...settings }, 'admin');
    const raise = (...texts: string[]) =>
      database.transaction((trx) =>
        writeEvents(
          trx,
          texts.map((text) => ({ type: 'account.frozen', accountId, once: newId(), data: { text } }) as const),
        ),
      );
    const texts = () => receiver.received.map(({ event }) => event.data.text);
    const deliveriesOf = async (webhookId: string) => (await listDeliveries(database, { webhookId }, PAGE)).items;
    const ended = (webhookId: string, count = 1) =>
      until(`${count} deliveries have ended`, async () => {
        const all = await deliveriesOf(webhookId);
        return all.length === count && all.every(({ status }) => status !== 'pending') ? all : undefined;
      });
    const feed = async () => (await listAccountEvents(database, accountId, { after: 0, limit: 100 })).items;
    const shown = ({ status, attempts, responseStatus, error }: WebhookDelivery) => [
      status,
      attempts,
      responseStatus,
      error,
    ];

    it('are the event as the feed has it, with a signature that the package of Standard Webhooks verifies', async () => {
      const { webhook, secret } = await add();
      await deliver();
      await raise('one');
      const [event] = await feed();
      await until('it has come', () => receiver.received.length === 1);
      const [{ headers, body } = assert.fail()] = receiver.received;
      assert.equal(body, JSON.stringify(event));
      assert.deepEqual([headers['webhook-id'], headers['content-type']], [event?.id, 'application/json']);
      assert.deepEqual(new Webhook(secret).verify(body, headers), event);
      assert.throws(() => new Webhook(secret).verify(body.replace('one', 'two'), headers));
      const [delivery = assert.fail()] = await ended(webhook.id);
      assert.deepEqual([delivery.eventId, delivery.type], [event?.id, 'account.frozen']);
      assert.deepEqual(shown(delivery), ['delivered', 1, 200, null]);
      assert.equal(delivery.nextAttemptAt, null);
    });

    it('are signed with the previous secret too until the grace period of a rotation ends', async () => {
      const { webhook, secret } = await add();
      const { secret: second } = await rotateWebhook(database, { webhookId: webhook.id }, 3_600, 'admin');
      await deliver();
      await raise('both');
      await until('it has come', () => receiver.received.length === 1);
      const { secret: third } = await rotateWebhook(database, { webhookId: webhook.id }, 0, 'admin');
      await raise('newest');
      await until('the second has come', () => receiver.received.length === 2);
      const signers = receiver.received.map(({ body, headers }) =>
        [secret, second, third].filter((each) => {
          try {
            return Boolean(new Webhook(each).verify(body, headers));
          } catch {
            return false;
          }
        }),
      );
      assert.deepEqual(signers, [[secret, second], [third]]);
      assert.equal(receiver.received[0]?.headers['webhook-signature']?.split(' ').length, 2);
    });

    it('come in the order of the feed: later ones wait while an earlier one is retried', async () => {
      const { webhook } = await add();
      const elsewhere = await startReceiver();
      receiver.next(answer(500), answer(302, { location: elsewhere.url }), (response) => response.destroy());
      await deliver({ times: { ...SOON, pausesMs: [100] } });
      await raise('one', 'two');
      await raise('three');
      const [three, two, one] = await ended(webhook.id, 3);
      assert.deepEqual(texts(), ['one', 'one', 'one', 'one', 'two', 'three']);
      assert.equal(new Set(receiver.received.slice(0, 4).map(({ headers }) => headers['webhook-id'])).size, 1);
      assert.deepEqual(
        [one, two, three].map((each) => each?.attempts),
        [4, 1, 1],
      );
      assert.deepEqual(elsewhere.received, [], 'a redirect is not followed');
      await elsewhere.close();
    });

    it('fail with the reason and wait longer after each failure', async () => {
      const { webhook } = await add();
      await deliver({ times: { ...DELIVERY_TIMES, answerWithinMs: 300 } });
      const reasons: unknown[] = [];
      for (const behaviour of [answer(410), () => undefined, answer(301)]) {
        receiver.next(behaviour);
        if (reasons.length === 0) await raise('one');
        else
          await redeliver(database, { webhookId: webhook.id }, (await deliveriesOf(webhook.id))[0]?.id ?? '', 'admin');
        const failed = await until('it has failed once more', async () => {
          const [delivery] = await deliveriesOf(webhook.id);
          return delivery?.attempts === reasons.length + 1 ? delivery : undefined;
        });
        const pauseSeconds = Math.round(((failed.nextAttemptAt?.getTime() ?? 0) - Date.now()) / 1_000);
        reasons.push([
          failed.responseStatus,
          failed.error,
          [5, 30, 120].findIndex((each) => pauseSeconds > each / 2 && pauseSeconds <= each),
        ]);
      }
      assert.deepEqual(reasons, [
        [410, 'The receiver answered 410.', 0],
        [null, 'The receiver did not answer in time.', 1],
        [301, 'The receiver answered 301, and redirects are not followed.', 2],
      ]);
    });

    it('end with the status: a receiver that sends a body without end keeps no connection', async () => {
      const { webhook } = await add();
      let isClosed = false;
      receiver.next((response) => {
        response.writeHead(204 - 4);
        const flood = () => {
          while (!response.destroyed && response.write(Buffer.alloc(65_536)));
        };
        response.on('drain', flood);
        response.on('close', () => {
          isClosed = true;
        });
        flood();
      });
      await deliver();
      await raise('one');
      const [delivery = assert.fail()] = await ended(webhook.id);
      assert.deepEqual(shown(delivery), ['delivered', 1, 200, null]);
      await until('the connection is closed', () => isClosed);
    });

    it('disable a webhook whose delivery fails to the end, with an event; enabled, it continues with what is pending', async () => {
      const { webhook } = await add({ types: ['account.frozen'] });
      const { webhook: other } = await add({ types: ['webhook.disabled'] });
      receiver.next(answer(503), answer(503));
      await deliver({ times: { ...SOON, forMs: 1 } });
      await raise('one', 'two');
      const disabled = await until('the event is there', async () =>
        (await feed()).find(({ type }) => type === 'webhook.disabled'),
      );
      const { url, id: webhookId } = webhook;
      const [{ id: eventId } = assert.fail()] = await feed();
      assert.deepEqual(disabled.data, { webhookId, url, eventId, error: 'The receiver answered 503.' });
      assert.equal(disabled.sequence, 3);
      await ended(other.id);
      assert.equal(receiver.received.at(-1)?.event.type, 'webhook.disabled');
      assert.deepEqual(
        (await deliveriesOf(webhook.id)).map(({ status }) => status),
        ['pending', 'failed'],
      );
      await raise('three');
      await updateWebhook(database, PRIVATE, { webhookId }, { status: 'active' }, 'admin');
      await ended(webhook.id, 3);
      assert.deepEqual(
        texts().filter((text) => text !== undefined),
        ['one', 'one', 'two', 'three'],
      );
    });

    it('of tests, and repeated ones, wait for no other, also at a disabled webhook', async () => {
      const { webhook, secret } = await add();
      const { id: webhookId } = webhook;
      await deliver({ times: { ...DELIVERY_TIMES } });
      await raise('one');
      const [first] = await ended(webhookId);
      receiver.next(answer(500), answer(404));
      await raise('two');
      await until('the second has failed', () => receiver.received.length === 2);
      await updateWebhook(database, PRIVATE, { webhookId }, { status: 'disabled' }, 'admin');
      await testWebhook(database, { webhookId }, 'admin');
      await until('the test has come', () => receiver.received.length === 3);
      const { event, body, headers } = receiver.received[2] ?? assert.fail();
      assert.deepEqual([event.type, event.id, event.accountId], ['webhook.test', headers['webhook-id'], accountId]);
      assert.ok(new Webhook(secret).verify(body, headers));
      assert.deepEqual(
        (await feed()).map(({ type }) => type),
        ['account.frozen', 'account.frozen'],
      );
      await until('the test has failed', async () => (await deliveriesOf(webhookId))[0]?.status === 'failed');
      assert.equal((await redeliver(database, { webhookId }, first?.id ?? '', 'admin')).status, 'pending');
      await until('it has come again', () => receiver.received.length === 4);
      assert.equal(receiver.received[3]?.body, receiver.received[0]?.body);
      assert.equal(receiver.received[3]?.headers['webhook-id'], receiver.received[0]?.headers['webhook-id']);
    });

    it('are made once and in order by two processes', async () => {
      const { webhook } = await add();
      await deliver();
      await deliver();
      const wanted = Array.from({ length: 24 }, (_, index) => String(index));
      for (let at = 0; at < wanted.length; at += 3) await raise(...wanted.slice(at, at + 3));
      await ended(webhook.id, wanted.length);
      assert.deepEqual(texts(), wanted);
      assert.equal(receiver.atOnce, 1);
    });

    it('are repeated with the same id if their process dies before it writes the outcome', async () => {
      const { webhook } = await add();
      await raise('one', 'two');
      const claim = (await claimWebhook(database, webhook.id)) ?? assert.fail();
      const due = (await nextDelivery(database, claim)) ?? assert.fail();
      const { signal } = new AbortController();
      assert.equal((await sendWebhook(egress, PRIVATE, 10_000, due, signal)).error, null);
      // The process is dead now, and its claim ends.
      assert.equal(await claimWebhook(database, webhook.id), undefined);
      await database('webhooks').where({ id: webhook.id }).update({ claimed_until: new Date() });
      await deliver();
      await ended(webhook.id, 2);
      assert.deepEqual(texts(), ['one', 'one', 'two']);
      assert.equal(receiver.received[0]?.body, receiver.received[1]?.body);
    });

    it('of one account take four places at most, so that its slow receivers hold up no other account', async () => {
      const slow = await startReceiver();
      slow.next(...Array.from({ length: 10 }, () => () => undefined));
      for (let made = 0; made < 10; made += 1) await add({ url: slow.url });
      await raise('slow');
      await deliver();
      await until('four have come', () => slow.received.length === 4);
      accountId = newId();
      await database('accounts').insert({ id: accountId, name: 'other' });
      await add();
      await raise('other');
      await until('the other has come', () => receiver.received.length === 1);
      assert.equal(slow.received.length, 4);
      await slow.close();
    });

    it('end with their webhook, also while one is being sent', async () => {
      const { webhook } = await add();
      let finish = () => {};
      receiver.next((response) => {
        finish = () => void response.end();
      });
      await deliver();
      await raise('one', 'two');
      await until('it has come', () => receiver.received.length === 1);
      await deleteWebhook(database, { webhookId: webhook.id }, 'admin');
      finish();
      await raise('three');
      assert.deepEqual(await database('webhook_deliveries').where({ webhook_id: webhook.id }), []);
    });

    it('connect to no address that is not public, and tell the account none', async () => {
      const canary = await startCanary();
      const port = canary.host.split(':')[1];
      const resolve: Resolve = (host, done) => {
        const address =
          host === 'mapped.example' ? '::ffff:127.0.0.1' : host === 'meta.example' ? '169.254.169.254' : '127.0.0.1';
        done(null, [{ address, family: address.includes(':') ? 6 : 4 }]);
      };
      const guarded = openEgress({ resolve });
      await deliver({ egress: guarded, rules: { allowPrivate: false }, times: { ...SOON, forMs: 0 } });
      const isPrivate = 'The host of the URL has an address that is not public.';
      const notHttps = 'The URL is not allowed: expected a URL that begins with https://.';
      const notPublic = 'The URL is not allowed: expected the URL of a public address.';
      for (const [url, error] of [
        [`https://rebind.example:${port}/`, isPrivate],
        [`https://mapped.example:${port}/`, isPrivate],
        ['https://meta.example/latest/meta-data/', isPrivate],
        [`http://rebind.example:${port}/`, notHttps],
        [`https://127.0.0.1:${port}/`, notPublic],
        [`https://2130706433:${port}/`, notPublic],
        [`https://localhost:${port}/`, notPublic],
        [`https://[::ffff:127.0.0.1]:${port}/`, notPublic],
      ] as const) {
        // These webhooks were made while private addresses were allowed.
        const { webhook } = await add({ url, types: ['account.frozen'] });
        await testWebhook(database, { webhookId: webhook.id }, 'admin');
        const [delivery = assert.fail()] = await ended(webhook.id);
        assert.deepEqual(shown(delivery), ['failed', 1, null, error], url);
      }
      assert.equal(canary.connections(), 0);
      await guarded.close();
      await canary.stop();
    });
  });
}
