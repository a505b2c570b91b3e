import { expect } from 'chai';
import { ask } from '../support/calls';
import { operate } from '../support/command-line';
import { startGateway, type TestGateway } from '../support/gateway';
import { BEFORE_SQUASH, OF_302D198, restoreStores } from '../support/older-databases';
import { messagesAnswer, startUpstream, type TestUpstream } from '../support/upstream';

for (const older of [OF_302D198, BEFORE_SQUASH]) {
  describe(`An upgrade from ${older.name}`, function () {
    this.timeout(90_000);
    let upstream: TestUpstream;
    let gateway: TestGateway;
    before(async () => {
      upstream = await startUpstream();
      upstream.always(messagesAnswer({ usage: { input: 1_000, output: 200 } }));
      const stores = await restoreStores(older);
      gateway = await startGateway({ stores, upstreams: { acme: { url: upstream.url } } });
    });
    after(async () => {
      await gateway?.stop();
      await upstream?.stop();
    });

    const balances = async () => {
      const shown: Record<string, string> = {};
      for (const id of Object.keys(older.balancesUsd))
        shown[id] = (await gateway.admin('GET', `/admin/v1/accounts/${id}`)).json.balanceUsd;
      return shown;
    };
    const verifyLedger = () => operate(gateway, ['ledger', 'verify', '--days', '400']);

    it('keeps balances and records, and the ledger has no violation', async () => {
      expect(await balances()).to.deep.equal(older.balancesUsd);
      const { json } = await gateway.admin('GET', '/admin/v1/usage?limit=100');
      expect(json.items).to.have.length(14);
      const { status, notes } = await verifyLedger();
      expect(status, notes).to.equal(0);
      expect(notes).to.include('3 accounts, 16 entries, 0 violations');
    });

    it('lets its accounts be charged as before', async () => {
      const [accountId = ''] = Object.keys(older.balancesUsd);
      const { json } = await gateway.admin('POST', `/admin/v1/accounts/${accountId}/keys`, {
        name: 'after the upgrade',
      });
      const answer = await gateway.call('/v1/messages', { key: json.key, body: ask() });
      expect(answer.status, answer.text).to.equal(200);
      const record = await gateway.record(json.key, answer.headers['x-svc-request-id'] ?? '');
      expect(record['cost']).to.equal('0.00600000');
      const before = Number(older.balancesUsd[accountId]);
      expect(Number((await balances())[accountId])).to.equal(Number((before - 0.006).toFixed(8)));
      expect((await verifyLedger()).status).to.equal(0);
    });
  });
}
