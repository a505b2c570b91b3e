import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { ask, PATH } from '../support/calls';
import { startGateway, type TestGateway } from '../support/gateway';
import { LeavingClient } from '../support/leaving-client';
import { setPolicy } from '../support/policy-settings';
import { until } from '../support/until';
import { messagesStream, type Script, startUpstream, type TestUpstream } from '../support/upstream';

const STALLED_AFTER_MS = 2_000;

const PIECE_BYTES = 64 * 1024;
/** More than what is read ahead, and what the buffers of two connections take. */
const LONG = messagesStream({ texts: Array.from({ length: 384 }, () => 'x'.repeat(PIECE_BYTES)) });

/** Sends a long stream, and breaks it off a while after its client has stopped reading it. */
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

describe('An upstream that breaks off a stream whose client does not read', function () {
  this.timeout(60_000);
  let upstream: TestUpstream;
  let gateway: TestGateway;
  let key: string;

  before(async () => {
    upstream = await startUpstream();
    gateway = await startGateway({
      upstreams: { acme: { url: upstream.url, models: { 'acme-large': { maxOutput: 10_000_000 } } } },
      configure: (config) => setPolicy(config, 'sse-relay', { stalledAfter: `${STALLED_AFTER_MS}ms` }),
    });
  });
  after(async () => {
    await gateway?.stop();
    await upstream?.stop();
  });
  beforeEach(async () => {
    upstream.reset();
    ({ key } = await gateway.newCustomer('1000'));
  });

  const begin = () => new LeavingClient(gateway, PATH.messages, key, ask({ stream: true, max_tokens: 9_000_000 }));

  const onlyRecord = (): Promise<Record<string, unknown>> =>
    until('the record is there', async () => {
      const { items } = (await gateway.call('/v1/usage', { method: 'GET', key })).json;
      return items[0];
    });

  for (const how of ['fin', 'reset'] as const)
    it(`is paid for what was delivered when the client had stopped for stalledAfter (${how})`, async () => {
      upstream.always(givesUpAfter(STALLED_AFTER_MS + 2_500, how));
      const client = begin();
      client.stopReading();
      await sleep(STALLED_AFTER_MS + 4_000);
      client.readOn();
      const record = await onlyRecord();
      expect(record).to.include({ billing: 'partial', errorCode: 'ALL_PROVIDERS_FAILED', inputTokens: 10 });
      expect(record['outputTokens']).to.be.within(PIECE_BYTES / 4, (384 * PIECE_BYTES) / 4);
      await client.sees('event: error');
      expect((await gateway.balance(key)).heldUsd).to.equal('0.00000000');
    });

  it('is not paid for when the client had stopped for a shorter time', async () => {
    upstream.always(givesUpAfter(500, 'reset'));
    const client = begin();
    client.stopReading();
    await sleep(1_000);
    client.readOn();
    expect(await onlyRecord()).to.include({ billing: 'released', cost: '0.00000000' });
  });

  it('is not paid for when the client had stopped, and then read for long before the break', async () => {
    const broken = messagesStream({
      texts: Array.from({ length: 400 }, () => 'word '),
      delayMs: 20,
      cutAfter: 399,
      cut: 'reset',
    });
    upstream.always(broken);
    const client = begin();
    client.stopReading();
    await sleep(STALLED_AFTER_MS + 1_000);
    client.readOn();
    expect(await onlyRecord()).to.include({ billing: 'released', cost: '0.00000000' });
  });

  it('sees nothing of a stall of its client that 1 MB can bridge', async () => {
    // Far more than the buffers of a connection that is not read take without reading ahead.
    upstream.always(messagesStream({ texts: Array.from({ length: 15 }, () => 'x'.repeat(PIECE_BYTES)) }));
    const client = begin();
    client.stopReading();
    const seen = await upstream.call(1);
    await seen.ended;
    client.readOn();
    await client.sees('message_stop');
    expect(await onlyRecord()).to.include({ billing: 'actual' });
  });
});
