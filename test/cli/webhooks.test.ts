import assert from 'node:assert/strict';
import { operate } from '../support/command-line';
import { useGateway, useUpstream } from '../support/story';

describe('the command line for alerts', () => {
  const upstream = useUpstream();
  const gateway = useGateway(() => ({ upstreams: { acme: { url: upstream.url } } }));
  const tollgate = (...args: string[]) => operate(gateway, args);
  const json = async (...args: string[]) => {
    const { status, out, notes } = await tollgate('--json', ...args);
    assert.equal(status, 0, notes);
    return JSON.parse(out);
  };

  it('makes, lists, disables, enables, tests, rotates and removes a webhook, and repeats a delivery', async () => {
    const { accountId } = await gateway.newCustomer('1');
    const url = 'https://receiver.invalid/hooks';
    const shown = await tollgate('webhooks', 'create', accountId, url, '--types', 'account.frozen', 'balance.low');
    assert.match(shown.out, /whsec_/);
    const [made] = (await json('webhooks', 'list', accountId)).items;
    assert.deepEqual([made.url, made.types, made.status], [url, ['account.frozen', 'balance.low'], 'active']);
    assert.equal((await json('webhooks', 'disable', made.id)).status, 'disabled');
    assert.match((await json('webhooks', 'rotate', made.id, '--grace', '1h')).secret, /^whsec_/);
    const { id, type } = await json('webhooks', 'test', made.id);
    assert.equal(type, 'webhook.test');
    assert.equal((await json('webhooks', 'redeliver', made.id, id)).id, id);
    assert.deepEqual(
      (await json('webhooks', 'deliveries', made.id)).items.map((each: { id: string }) => each.id),
      [id],
    );
    assert.equal((await json('webhooks', 'enable', made.id)).status, 'active');
    assert.equal((await json('webhooks', 'remove', made.id)).id, made.id);
    const refused = await tollgate('webhooks', 'create', accountId, 'http://receiver.invalid/');
    assert.equal(refused.status, 1);
    assert.match(refused.notes, /url: expected a URL that begins with https/);
  });

  it('sets the balance that counts as low, and lists the events of an account with the number to continue after', async () => {
    const { accountId } = await gateway.newCustomer('1');
    const update = (usd: string) => json('accounts', 'update', accountId, '--balance-low', usd);
    assert.equal((await update('0.5')).balanceLowUsd, '0.50000000');
    assert.equal((await update('none')).balanceLowUsd, null);
    for (const verb of ['freeze', 'unfreeze', 'freeze']) await json('accounts', verb, accountId);
    const { items } = await json('events', 'list', '--account', accountId);
    assert.deepEqual(
      items.map(({ type }: { type: string }) => type),
      ['account.frozen', 'account.frozen'],
    );
    const first = await tollgate('events', 'list', '--account', accountId, '--limit', '1');
    assert.match(first.notes, new RegExp(`More entries: --after ${items[0].sequence}`));
    const rest = await json('events', 'list', '--account', accountId, '--after', String(items[0].sequence));
    assert.deepEqual(rest, { items: [items[1]], nextCursor: null });
  });
});
