import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { ask, PATH } from '../support/calls';
import { PRICE } from '../support/gateway';
import { LeavingClient } from '../support/leaving-client';
import { showBill } from '../support/show-figures';
import { useGateway } from '../support/story';
import { until } from '../support/until';
import { messagesStream, type Script, startUpstream, type TestUpstream } from '../support/upstream';

/** Long enough for the gateway to stop reading from the upstream, and then to wait for more than a second. */
const STALLED_MS = 3_000;

const PIECE_BYTES = 64 * 1024;
/** A stream larger than the read-ahead and the buffers of two connections together. */
const LONG = messagesStream({ texts: Array.from({ length: 384 }, () => 'x'.repeat(PIECE_BYTES)) });

/** Sends a long stream and breaks it off some time later. */
function givesUpAfter(ms: number, how: 'fin' | 'reset', pieces = LONG.events.length - 4): Script {
  return {
    answer: async ({ response, breaking }) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const event of LONG.events.slice(0, pieces)) response.write(event);
      await sleep(ms);
      breaking();
      if (how === 'reset') response.socket?.resetAndDestroy();
      else response.socket?.destroySoon();
    },
  };
}

/** The stories. Each has its own upstream, model and customer. */
const STORIES = ['fin', 'reset', 'keeping up', 'resting', 'bridged'] as const;
type Story = (typeof STORIES)[number];
const modelOf = (name: Story) => name.replace(' ', '-');

describe('A stream whose upstream breaks it off', () => {
  const upstreams = new Map<Story, TestUpstream>();
  /** The results. All stories run at once because they mostly wait, and each test awaits one. */
  const told = new Map<Story, Promise<void>>();

  const gateway = useGateway(async () => {
    for (const name of STORIES) upstreams.set(name, await startUpstream());
    const endpoint = (name: Story) => ({
      url: upstreamOf(name).url,
      models: { [modelOf(name)]: { maxOutput: 10_000_000 } },
    });
    return {
      upstreams: Object.fromEntries(STORIES.map((name) => [modelOf(name), endpoint(name)])),
    };
  });

  before(async () => {
    const tellers = {
      fin: () => stops('fin'),
      reset: () => stops('reset'),
      'keeping up': keepsUp,
      resting: rests,
      bridged: isBridged,
    };
    for (const name of STORIES) {
      const telling = tellers[name]();
      telling.catch(() => undefined);
      told.set(name, telling);
    }
  });
  after(async () => {
    for (const upstream of upstreams.values()) await upstream.stop();
  });

  const upstreamOf = (name: Story) => upstreams.get(name) as TestUpstream;

  /** Starts a client, which does not read unless `reads`, with a new customer. */
  const begin = async (name: Story, script: Script, reads = false) => {
    upstreamOf(name).always(script);
    const { key } = await gateway.newCustomer('1000');
    const client = new LeavingClient(
      gateway,
      PATH.messages,
      key,
      ask({ model: modelOf(name), stream: true, max_tokens: 9_000_000 }),
    );
    if (!reads) client.stopReading();
    return { key, client };
  };

  const onlyRecord = (key: string): Promise<Record<string, unknown>> =>
    until('the record is there', async () => {
      const { items } = (await gateway.call('/v1/usage', { method: 'GET', key })).json;
      return items[0];
    });

  async function stops(how: 'fin' | 'reset'): Promise<void> {
    const { key, client } = await begin(how, givesUpAfter(STALLED_MS, how));
    await upstreamOf(how).call(1);
    const holdUsd = Number((await gateway.balance(key)).heldUsd);
    await sleep(STALLED_MS + 1_500);
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

  async function keepsUp(): Promise<void> {
    const { key } = await begin('keeping up', givesUpAfter(STALLED_MS, 'reset', 64), true);
    expect(await onlyRecord(key)).to.include({ billing: 'released', cost: '0.00000000' });
  }

  async function rests(): Promise<void> {
    const texts = Array.from({ length: 400 }, () => 'word ');
    const { key, client } = await begin('resting', messagesStream({ texts, delayMs: 20, cutAfter: 399, cut: 'reset' }));
    await sleep(STALLED_MS);
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
    it(`is charged for the content read so far if the gateway had paused reading for a slow client (${how})`, () =>
      told.get(how));

  it('costs nothing if the client keeps up with reading', () => told.get('keeping up'));

  it('costs nothing if the client stopped reading for a while, but reading from the upstream never paused', () =>
    told.get('resting'));

  it('is relayed to its end if the rest fits into the read-ahead buffer of 1 MB', () => told.get('bridged'));
});
