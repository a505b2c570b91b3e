import { expect } from 'chai';
import { ask, PATH } from '../support/calls';
import type { Answered, TestEndpoint } from '../support/gateway';
import { LeavingClient } from '../support/leaving-client';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { after as later, messagesAnswer, neverAnswer } from '../support/upstream';

const USAGE = { input: 1_000, output: 100 };
/** At the usual 50 tokens a second these take 20 s, and a third of a second. */
const LONG = 1_000;
const SHORT = 16;

describe('An unstreamed call that thinks longer than `timeouts.headers`', () => {
  const first = useUpstream();
  const second = useUpstream();
  let key: string;

  const gateway = useGateway(() => {
    const endpoint = (model: string, answer: string, more: Partial<TestEndpoint> = {}): TestEndpoint => ({
      url: first.url,
      tier: 'official',
      timeouts: { connect: '500ms', headers: '500ms', answer },
      models: { [model]: {} },
      ...more,
    });
    return {
      upstreams: {
        patient: endpoint('patient', '30s'),
        working: endpoint('working', '2s'),
        stopping: endpoint('stopping', '2s', { stopsOnCancel: true }),
        other: { url: second.url, models: { patient: {}, working: {}, stopping: {} } },
      },
    };
  });
  beforeEach(async () => {
    first.reset();
    second.reset();
    second.always(messagesAnswer({ usage: USAGE }));
    ({ key } = await gateway.newCustomer('10'));
  });

  const call = (model: string, max_tokens: number): Promise<Answered> =>
    gateway.call(PATH.messages, { key, body: ask({ model, max_tokens }) });
  const onlyRecord = (): Promise<Record<string, unknown>> =>
    until('the record is there', async () => {
      const { items } = (await gateway.call('/v1/usage', { method: 'GET', key })).json;
      return items[0];
    });

  async function expectInputCharged(record: Record<string, unknown>): Promise<void> {
    expect(record).to.include({ billing: 'partial', outputTokens: 0 });
    expect(Number(record['cost'])).to.be.above(0);
    expect((await gateway.balance(key)).balanceUsd).to.equal((10 - Number(record['cost'])).toFixed(8));
  }

  it('is not cancelled if its limit of output tokens explains why the upstream takes so long', async () => {
    first.always(later(3_000, messagesAnswer({ usage: USAGE })));
    const answer = await call('patient', LONG);
    expect([answer.status, answer.headers['x-routing-attempts']]).to.deep.equal([200, '1']);
    expect(second.calls).to.have.length(0);
  });

  it('gets 504 after `timeouts.answer`, is charged for its input, and is retried neither by the gateway nor by an SDK', async () => {
    first.always(neverAnswer());
    const answer = await call('working', LONG);
    expect([answer.status, answer.json.error.code]).to.deep.equal([504, 'UPSTREAM_TIMEOUT']);
    expect([answer.json.error.retryable, answer.headers['x-should-retry']]).to.deep.equal([false, 'false']);
    expect([first.calls.length, second.calls.length]).to.deep.equal([1, 0]);
    const record = await onlyRecord();
    await expectInputCharged(record);
    expect(answer.headers['x-ai-cost']).to.equal(record['cost']);
    const { items } = (await gateway.admin('GET', '/admin/v1/upstreams')).json;
    expect(items.find(({ name }: { name: string }) => name === 'working').state).to.equal('available');
  });

  it('is charged for its input after `timeouts.answer`, even if its client has disconnected', async () => {
    first.always(neverAnswer());
    const client = new LeavingClient(gateway, PATH.messages, key, ask({ model: 'working', max_tokens: LONG }));
    await first.call(1);
    client.leave();
    const record = await onlyRecord();
    await expectInputCharged(record);
    expect(record).to.include({ status: 499, errorCode: 'CLIENT_LEFT' });
    expect(second.calls).to.have.length(0);
  });

  it('is answered by the next upstream if the first one stops when the gateway cancels the call', async () => {
    first.always(neverAnswer());
    const answer = await call('stopping', LONG);
    expect([answer.status, answer.headers['x-routing-attempts']]).to.deep.equal([200, '2']);
    expect(await onlyRecord()).to.include({ billing: 'actual', cost: '0.00450000' });
  });

  it('is answered by the next upstream if its limit of output tokens does not explain the time; the first costs nothing', async () => {
    first.always(neverAnswer());
    const answer = await call('working', SHORT);
    expect([answer.status, answer.headers['x-routing-attempts']]).to.deep.equal([200, '2']);
    expect(await onlyRecord()).to.include({ billing: 'actual', cost: '0.00450000' });
  });
});
