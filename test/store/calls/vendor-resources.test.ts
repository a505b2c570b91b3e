import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import type { Knex } from 'knex';
import {
  type NewVendorResource,
  startVendorResources,
  type VendorResources,
  type VendorResourcesOptions,
} from '../../../core/calls/vendor-resources';
import { DATABASES, quiet, type TestDatabase } from '../../support/databases';
import { until } from '../../support/until';

for (const { name, open } of DATABASES) {
  describe(`the register of objects that vendors keep, in ${name}`, function () {
    this.timeout(60_000);
    let test: TestDatabase;
    let database: Knex;
    const opened: VendorResources[] = [];

    before(async () => {
      test = await open();
      database = test.database;
    });
    after(() => test.close());
    afterEach(async () => {
      for (const each of opened.splice(0)) await each.close();
      await database('vendor_resources').delete();
    });

    const start = (options: Partial<VendorResourcesOptions> = {}) => {
      const objects = startVendorResources({ database, log: quiet, maxVendorResources: 1_000, ...options });
      opened.push(objects);
      return objects;
    };
    const object = (accountId: string, id: string, more: Partial<NewVendorResource> = {}): NewVendorResource => ({
      accountId,
      kind: 'container',
      id,
      upstream: 'acme',
      credential: 'env KEY',
      inputTokens: 10,
      outputTokens: 5,
      days: 30,
      items: [],
      ...more,
    });
    const count = async () => Number((await database('vendor_resources').count<{ count: bigint }[]>())[0]?.count);

    it('finds an object for the account that owns it, in every process, and for no other account or kind', async () => {
      const [owner, other] = [randomUUID(), randomUUID()];
      await start().add([object(owner, 'c1'), object(owner, 'c2', { inputTokens: undefined })]);
      const elsewhere = start();
      assert.deepEqual(await elsewhere.find(owner, 'container', 'c1'), {
        upstream: 'acme',
        credential: 'env KEY',
        inputTokens: 10,
        outputTokens: 5,
      });
      assert.equal((await elsewhere.find(owner, 'container', 'c2'))?.inputTokens, undefined);
      assert.equal(await elsewhere.find(other, 'container', 'c1'), undefined);
      assert.equal(await elsewhere.find(owner, 'thread', 'c1'), undefined);
    });

    it("stores the SHA-256 of an object's id instead of the id", async () => {
      await start().add([object(randomUUID(), 'a-secret-id')]);
      const [row] = await database('vendor_resources').select<{ hash: Uint8Array }[]>('*');
      assert.equal(
        Buffer.from(row?.hash ?? []).toString('hex'),
        createHash('sha256').update('a-secret-id').digest('hex'),
      );
      assert.doesNotMatch(
        JSON.stringify(row, (_, value) => (typeof value === 'bigint' ? `${value}` : value)),
        /a-secret-id/,
      );
    });

    it('keeps an object with its account if an answer to another account names it', async () => {
      const [owner, other] = [randomUUID(), randomUUID()];
      const objects = start();
      await objects.add([object(owner, 'c1')]);
      await objects.add([object(other, 'c1', { inputTokens: 99 })]);
      assert.equal(await objects.find(other, 'container', 'c1'), undefined);
      assert.equal((await objects.find(owner, 'container', 'c1'))?.inputTokens, 10);
      await database('vendor_resources').update({ expires_at: database.raw("now() - interval '1 second'") });
      assert.equal(await objects.find(owner, 'container', 'c1'), undefined, 'it has expired');
      await objects.add([object(other, 'c1')]);
      assert.notEqual(await objects.find(other, 'container', 'c1'), undefined, 'it may have a new owner then');
    });

    it("keeps an object for the vendor's retention time plus one day", async () => {
      await start().add([object(randomUUID(), 'c1', { days: 30 })]);
      const [row] = await database('vendor_resources').select<{ expires_at: Date }[]>('expires_at');
      const days = ((row?.expires_at.getTime() ?? 0) - Date.now()) / 86_400_000;
      assert.ok(days > 30.9 && days < 31.1, String(days));
    });

    it('finds an item for the account that owns it, in every process, and for no other account', async () => {
      const [owner, other] = [randomUUID(), randomUUID()];
      const objects = start();
      await objects.add([
        object(owner, 'r1', { items: ['m1', 'm2'], outputTokens: 7 }),
        object(owner, 'r2', { items: ['m3'], upstream: 'backing', outputTokens: undefined }),
        object(owner, 'c1'),
      ]);
      const found = await start().findItems(owner, ['m1', 'm2', 'm3', 'm4', 'c1']);
      const owners = [...found.values()].map((item) => item.owner);
      assert.deepEqual(
        [...found].map(([id, { upstream, outputTokens }]) => [id, upstream, outputTokens]),
        [
          ['m1', 'acme', 7],
          ['m2', 'acme', 7],
          ['m3', 'backing', undefined],
        ],
      );
      assert.equal(new Set(owners.slice(0, 2)).size, 1);
      assert.notEqual(owners[0], owners[2]);
      assert.equal((await start().findItems(other, ['m1'])).size, 0);
      assert.equal(await count(), 3, 'an answer has one row, however many items it has');
    });

    it('assigns an item to the first account that names it, until the object of that account expires', async () => {
      const [owner, other] = [randomUUID(), randomUUID()];
      const objects = start();
      await objects.add([object(owner, 'r1', { items: ['m1'] })]);
      await objects.add([object(other, 'r2', { items: ['m1', 'm2'] })]);
      assert.deepEqual([...(await objects.findItems(other, ['m1', 'm2'])).keys()], ['m2']);
      assert.deepEqual([...(await objects.findItems(owner, ['m1', 'm2'])).keys()], ['m1']);
      await database('vendor_resources')
        .where('account_id', owner)
        .update({ expires_at: database.raw('now()') });
      assert.equal((await objects.findItems(owner, ['m1'])).size, 0, 'it has expired');
      assert.deepEqual([...(await objects.findItems(other, ['m1'])).keys()], ['m1']);
    });

    it('drops the objects that were reported longest ago if an account has too many', async () => {
      const [owner, other] = [randomUUID(), randomUUID()];
      const objects = start({ maxVendorResources: 3, clearEveryMs: 100 });
      await objects.add([object(other, 'theirs')]);
      for (const id of ['c1', 'c2', 'c3', 'c1', 'c4']) await objects.add([object(owner, id)]);
      await until('one has given way', async () => (await objects.find(owner, 'container', 'c2')) === undefined);
      assert.equal(await count(), 4);
      for (const id of ['c1', 'c3', 'c4']) assert.notEqual(await objects.find(owner, 'container', id), undefined);
    });

    it('queues a limited number of objects while the database is unreachable, and finds the queued ones meanwhile', async () => {
      const owner = randomUUID();
      let isAway = true;
      const shaky = new Proxy(database, {
        get: (target, member) => {
          const value = Reflect.get(target, member) as unknown;
          if (member !== 'raw' || !isAway) return value;
          return () => Promise.reject(new Error('away'));
        },
      });
      const objects = start({ database: shaky, maxWaiting: 2 });
      const beganMs = performance.now();
      await objects.add([object(owner, 'c1'), object(owner, 'c2'), object(owner, 'c3', { items: ['m3'] })]);
      assert.ok(performance.now() - beganMs < 1_000, 'the answer does not wait for long');
      assert.equal(await count(), 0);
      assert.notEqual(await objects.find(owner, 'container', 'c3'), undefined);
      assert.deepEqual([...(await objects.findItems(owner, ['m3'])).keys()], ['m3']);
      await assert.rejects(objects.findItems(randomUUID(), ['m3']), /away/);
      assert.equal(await objects.find(owner, 'container', 'c1'), undefined, 'the oldest one is lost');
      isAway = false;
      await until('they are written', async () => (await count()) === 2);
    });
  });
}
