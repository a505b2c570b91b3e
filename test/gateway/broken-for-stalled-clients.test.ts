import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { ask, PATH } from '../support/calls';
import { PRICE, startGateway, type TestGateway } from '../support/gateway';
import { LeavingClient } from '../support/leaving-client';
import { setPolicy } from '../support/policy-settings';
import { showBill } from '../support/show-figures';
import { until } from '../support/until';
import { messagesStream, type Script, startUpstream, type TestUpstream } from '../support/upstream';

const STALLED_AFTER_MS = 2_000;

const PIECE_BYTES = 64 * 1024;
/** A stream larger than the read-ahead and the buffers of two connections together. */
const LONG = messagesStream({ texts: Array.from({ length: 384 }, () => 'x'.repeat(PIECE_BYTES)) });

/** Sends a long stream and breaks it off some time after its client has stopped reading. */
function givesUpAfter(ms: number, how: 'fin' | 'reset'): Script {
  return {
    answer: async ({ response, breaking }) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const event of LONG.events.slice(0, -4)) response.write(event);
      await sleep(ms);
      breaking();
      if (how === 'reset') response.socket?.resetAndDestroy();
      else response.socket?.destroySoon();
    },
  };
}

/** The stories. Each has its own upstream, model and customer. */
const STORIES = ['fin', 'reset', 'briefly', 'reading', 'bridged'] as const;
type Story = (typeof STORIES)[number];

describe('A stream whose client stalls', function () {
  this.timeout(60_000);
  const upstreams = new Map<Story, TestUpstream>();
  /** The results. All stories run at once because they mostly wait, and each test awaits one. */
  const told = new Map<Story, Promise<void>>();
  let gateway: TestGateway;

  before(async () => {
    for (const name of STORIES) upstreams.set(name, await startUpstream());
    const endpoint = (name: Story) => ({ url: upstreamOf(name).url, models: { [name]: { maxOutput: 10_000_000 } } });
    gateway = await startGateway({
      upstreams: Object.fromEntries(STORIES.map((name) => [name, endpoint(name)])),
      configure: (config) => setPolicy(config, 'sse-relay', { stalledAfter: `${STALLED_AFTER_MS}ms` }),
    });
    const tellers = {
      fin: () => stopsForStalledAfter('fin'),
      reset: () => stopsForStalledAfter('reset'),
      briefly: stopsBriefly,
      reading: readsAgain,
      bridged: isBridged,
    };
    for (const name of STORIES) {
      const telling = tellers[name]();
      telling.catch(() => undefined);
      told.set(name, telling);
    }
  });
  after(async () => {
    await gateway?.stop();
    for (const upstream of upstreams.values()) await upstream.stop();
  });

  const upstreamOf = (name: Story) => upstreams.get(name) as TestUpstream;

  /** Starts a client that does not read, with a new customer. */
  const begin = async (name: Story, script: Script) => {
    upstreamOf(name).always(script);
    const { key } = await gateway.newCustomer('1000');
    const client = new LeavingClient(
      gateway,
      PATH.messages,
      key,
      ask({ model: name, stream: true, max_tokens: 9_000_000 }),
    );
    client.stopReading();
    return { key, client };
  };

  const onlyRecord = (key: string): Promise<Record<string, unknown>> =>
    until('the record is there', async () => {
      const { items } = (await gateway.call('/v1/usage', { method: 'GET', key })).json;
      return items[0];
    });

  async function stopsForStalledAfter(how: 'fin' | 'reset'): Promise<void> {
    const { key, client } = await begin(how, givesUpAfter(STALLED_AFTER_MS + 2_500, how));
    await upstreamOf(how).call(1);
    const holdUsd = Number((await gateway.balance(key)).heldUsd);
    await sleep(STALLED_AFTER_MS + 4_000);
    client.readOn();
    const record = await onlyRecord(key);
    const vendorUsd = (10 * PRICE.input + ((384 * PIECE_BYTES) / 4) * PRICE.output) / 1e6;
    const chargedUsd = Number(record['cost']);
    showBill(`a client stops reading until the upstream gives up (${how})`, { vendorUsd, holdUsd, chargedUsd });
    expect(vendorUsd).to.be.at.most(holdUsd);
    expect(chargedUsd).to.be.within(((PIECE_BYTES / 4) * PRICE.output) / 1e6, holdUsd);
    expect(record).to.include({ billing: 'partial', errorCode: 'ALL_PROVIDERS_FAILED', inputTokens: 10 });
    expect(record['outputTokens']).to.be.within(PIECE_BYTES / 4, (384 * PIECE_BYTES) / 4);
    await client.sees('event: error');
    expect((await gateway.balance(key)).heldUsd).to.equal('0.00000000');
  }

  async function stopsBriefly(): Promise<void> {
    const { key, client } = await begin('briefly', givesUpAfter(500, 'reset'));
    await sleep(1_000);
    client.readOn();
    expect(await onlyRecord(key)).to.include({ billing: 'released', cost: '0.00000000' });
  }

  async function readsAgain(): Promise<void> {
    const texts = Array.from({ length: 400 }, () => 'word ');
    const { key, client } = await begin('reading', messagesStream({ texts, delayMs: 20, cutAfter: 399, cut: 'reset' }));
    await sleep(STALLED_AFTER_MS + 1_000);
    client.readOn();
    expect(await onlyRecord(key)).to.include({ billing: 'released', cost: '0.00000000' });
  }

  async function isBridged(): Promise<void> {
    // Without read-ahead, this is far more than the buffers of an unread connection hold.
    const texts = Array.from({ length: 15 }, () => 'x'.repeat(PIECE_BYTES));
    const { key, client } = await begin('bridged', messagesStream({ texts }));
    const seen = await upstreamOf('bridged').call(1);
    await seen.ended;
    client.readOn();
    await client.sees('message_stop');
    expect(await onlyRecord(key)).to.include({ billing: 'actual' });
  }

  for (const how of ['fin', 'reset'] as const)
    it(`is charged for the delivered output if the upstream breaks it off after stalledAfter (${how})`, () =>
      told.get(how));

  it('is not charged if the upstream breaks it off before stalledAfter', () => told.get('briefly'));

  it('is not charged if the client read again long before the upstream breaks it off', () => told.get('reading'));

  it('is read to its end for the client if the rest fits into the read-ahead of 1 MB', () => told.get('bridged'));
});
