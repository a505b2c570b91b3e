import assert from 'node:assert/strict';
import { Webhook } from 'standardwebhooks';
import { type Receiver, startReceiver } from '../store/webhooks/receiver';
import { ask } from '../support/calls';
import { MODEL } from '../support/gateway';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { messagesAnswer } from '../support/upstream';

/** What a call of these tests costs: 5 output tokens at 15 USD per million. */
const COST_E8 = 7_500;
const OUTPUT_ONLY = { input: 0, output: 15, cacheWrite: 0, cacheWrite1h: 0, cacheRead: 0 };

describe('Alerts of an account', function () {
  this.timeout(120_000);
  const upstream = useUpstream();
  const gateway = useGateway(() => ({
    upstreams: { one: { url: upstream.url, models: { [MODEL]: { price: OUTPUT_ONLY } } } },
    env: { WEBHOOKS_ALLOW_PRIVATE: 'true' },
  }));
  let receiver: Receiver;
  before(async () => {
    receiver = await startReceiver();
  });
  after(() => receiver.close());

  const usd = (e8: number) => (e8 / 1e8).toFixed(8);

  it('reach its webhook and its feed when calls reach a budget and the balance falls, each once and in order', async () => {
    upstream.always(messagesAnswer({ usage: { input: 10, output: 5 } }));
    const made = async (method: string, path: string, body: object) => {
      const answer = await gateway.admin(method, `/admin/v1${path}`, body);
      assert.ok(answer.status < 300, answer.text);
      return answer.json;
    };
    const { accountId, keyId, key } = await gateway.newCustomer('1');
    await made('PATCH', `/accounts/${accountId}`, { balanceLowUsd: usd(1e8 - COST_E8) });
    const limit = {
      scope: 'key',
      scopeId: keyId,
      window: 'day',
      limitUsd: usd(4 * COST_E8),
      thresholds: [50, 60, 100],
    };
    const budget = await made('POST', `/accounts/${accountId}/budgets`, limit);
    const { id: webhookId, secret } = await made('POST', `/accounts/${accountId}/webhooks`, { url: receiver.url });
    for (let count = 1; count <= 4; count += 1) {
      const answer = await gateway.call('/v1/messages', { key, body: ask({ max_tokens: 5 }) });
      assert.equal(answer.status, 200, answer.text);
      // One call is settled before the next, because a hold is as high as the cost.
      await gateway.record(key, answer.headers['x-svc-request-id'] ?? '');
    }
    await until('four events have come', () => receiver.received.length === 4);
    const events = receiver.received.map(({ body, headers }) => new Webhook(secret).verify(body, headers));
    const feed = await gateway.call('/v1/events', { method: 'GET', key });
    assert.deepEqual(feed.json, { items: events, nextCursor: null });
    const amount = ({ data }: { data: Record<string, unknown> }) => data['threshold'] ?? data['balanceUsd'];
    const items = feed.json.items as { type: string; sequence: number; data: Record<string, unknown> }[];
    const [low, ...reached] = [...items].sort((one, other) => one.type.localeCompare(other.type));
    assert.deepEqual([low?.type, low && amount(low)], ['balance.low', usd(1e8 - 2 * COST_E8)]);
    assert.deepEqual(reached.map(amount), [50, 60, 100]);
    const last = { scope: 'key', scopeId: keyId, name: budget.name, window: 'day', threshold: 100 };
    const spent = { limitUsd: usd(4 * COST_E8), spentUsd: usd(4 * COST_E8) };
    assert.deepEqual(reached.at(-1)?.data, { budgetId: budget.id, ...last, ...spent });
    assert.deepEqual(
      items.map(({ sequence }) => sequence),
      [1, 2, 3, 4],
    );
    const { json } = await gateway.admin('GET', `/admin/v1/webhooks/${webhookId}/deliveries`);
    assert.ok(
      json.items.every(({ status }: { status: string }) => status === 'delivered'),
      JSON.stringify(json),
    );
  });
});
