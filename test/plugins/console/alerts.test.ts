import assert from 'node:assert/strict';
import { writeEvents } from '../../../core/events/raise';
import { signedInBrowser, type TestBrowser } from '../../support/console';
import { openDesk, type TestDesk } from '../../support/desk';

for (const name of ['Postgres', 'PGlite'] as const) {
  describe(`alerts of an account in the console (${name})`, function () {
    this.timeout(120_000);
    let desk: TestDesk;
    let accountId: string;
    let owner: TestBrowser;
    before(async () => {
      desk = await openDesk(name);
    });
    after(() => desk.close());
    beforeEach(async () => {
      ({ accountId } = await desk.customer('5'));
      owner = await signedInBrowser(desk.publicUrl, desk.database, accountId);
    });

    const raise = (...names: readonly string[]) =>
      desk.database.transaction((transaction) =>
        writeEvents(
          transaction,
          names.map((once) => ({ type: 'balance.low', accountId, once: `${accountId} ${once}`, data: { once } })),
        ),
      );
    const page = async (query: string) => {
      const { status, body } = await owner.get(`/events?${query}`);
      assert.equal(status, 200, JSON.stringify(body));
      const sequences = body.items.map(({ sequence }: { sequence: number }) => sequence);
      return { sequences, cursor: body.nextCursor };
    };

    it('lists events oldest or newest first, page by page, and without those of other accounts', async () => {
      await raise('a', 'b', 'c', 'd', 'e');
      const other = await desk.customer('5');
      const stranger = await signedInBrowser(desk.publicUrl, desk.database, other.accountId);
      assert.deepEqual((await stranger.get('/events')).body, { items: [], nextCursor: null });
      for (const [order, all] of [
        ['oldest', [1, 2, 3, 4, 5]],
        ['newest', [5, 4, 3, 2, 1]],
      ] as const) {
        const seen: number[] = [];
        let cursor: string | null = '';
        for (let pages = 0; cursor !== null && pages < 4; pages += 1) {
          const read = await page(`order=${order}&limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`);
          seen.push(...read.sequences);
          cursor = read.cursor;
        }
        assert.deepEqual(seen, all, order);
      }
      assert.deepEqual((await page('after=3')).sequences, [4, 5]);
      assert.deepEqual((await page('after=3&order=newest')).sequences, [5, 4]);
    });

    it('sets the balance that counts as low, or removes it with null, and the audit log names the user', async () => {
      for (const balanceLowUsd of ['2.50000000', null]) {
        const changed = await owner.send('PATCH', '/account', { balanceLowUsd });
        assert.deepEqual([changed.status, changed.body.balanceLowUsd], [200, balanceLowUsd]);
        assert.equal((await desk.admin('GET', `/accounts/${accountId}`)).body.balanceLowUsd, balanceLowUsd);
      }
      const { body } = await desk.admin('GET', `/audit?subject=account:${accountId}&action=account.update`);
      assert.equal(body.items[0].actor, `user:${owner.userId}`);
      const wrong = await owner.send('PATCH', '/account', { balanceLowUsd: '-1' });
      assert.deepEqual([wrong.status, wrong.body.error.param], [400, 'balanceLowUsd']);
    });

    it('shows and changes the webhooks of the own account only', async () => {
      const made = await owner.send('POST', '/webhooks', { url: 'https://acme.example/hooks' });
      assert.equal(made.status, 201, JSON.stringify(made.body));
      const path = `/webhooks/${made.body.id}`;
      const tested = await owner.send('POST', `${path}/test`, {});
      assert.equal(tested.status, 202, JSON.stringify(tested.body));
      const redeliver = `${path}/deliveries/${tested.body.id}/redeliver`;
      assert.equal((await owner.send('POST', redeliver, {})).status, 202);

      const other = await desk.customer('5');
      const stranger = await signedInBrowser(desk.publicUrl, desk.database, other.accountId);
      assert.deepEqual((await stranger.get('/webhooks')).body.items, []);
      for (const [method, at, body] of [
        ['GET', `${path}/deliveries`, undefined],
        ['PATCH', path, { status: 'disabled' }],
        ['POST', `${path}/rotate`, { graceSeconds: 0 }],
        ['POST', redeliver, {}],
        ['DELETE', path, undefined],
      ] as const) {
        assert.equal((await stranger.send(method, at, body)).status, 404, `${method} ${at}`);
      }
      assert.equal((await owner.get('/webhooks')).body.items[0].status, 'active');
    });
  });
}
