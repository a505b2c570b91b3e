import { expect } from 'chai';
import { ask, PATH } from '../support/calls';
import { type Answered, MODEL } from '../support/gateway';
import { useGateway, useUpstream } from '../support/story';
import { messagesAnswer, messagesErrorStream, messagesFailure, messagesStream } from '../support/upstream';

const USAGE = { input: 1_000, output: 100 };
/** The cost of that usage: 1,000 × 3 + 100 × 15 USD per million. */
const COST = '0.00450000';

function passesOf(attempt: Record<string, unknown> | undefined): readonly Record<string, number>[] {
  return (attempt?.['passes'] ?? []) as Record<string, number>[];
}

describe('The attempts of a call', () => {
  const first = useUpstream();
  const second = useUpstream();
  let key: string;
  let story = 0;

  const gateway = useGateway(() => {
    const timeouts = { connect: '1s', headers: '1s', idle: '700ms' };
    const upstreams = Object.fromEntries(
      Array.from({ length: 9 }, (_, each) => {
        const models = { [`${MODEL}-${each}`]: {} };
        const dearer = { [`${MODEL}-${each}`]: { price: { input: 6, output: 30 } } };
        return [
          [`first-${each}`, { url: first.url, tier: 'official' as const, timeouts, models }],
          [`second-${each}`, { url: second.url, timeouts, models: dearer }],
        ] as const;
      }).flat(),
    );
    return {
      upstreams,
    };
  });

  before(async () => {
    ({ key } = await gateway.newCustomer('1000'));
  });
  beforeEach(() => {
    first.reset();
    second.reset();
    story += 1;
  });

  const call = (more: Record<string, unknown> = {}): Promise<Answered> =>
    gateway.call(PATH.messages, { key, body: ask({ model: `${MODEL}-${story}`, ...more }) });

  async function attemptsOf(requestId: string): Promise<Record<string, unknown>[]> {
    await gateway.record(key, requestId);
    return (await gateway.admin('GET', `/admin/v1/usage/${requestId}/attempts`)).json.items;
  }
  const attemptsFor = (answer: Answered) => attemptsOf(answer.headers['x-svc-request-id'] ?? '');

  it('are recorded in one row each, with credential, request id, usage and cost at the upstream', async () => {
    first.always(messagesFailure(529, {}, { 'request-id': 'req_of_the_first' }));
    second.always(messagesAnswer({ usage: USAGE }, { headers: { 'x-request-id': 'req_of_the_second' } }));
    const [failed, answered, ...more] = await attemptsFor(await call());
    expect(more).to.deep.equal([]);
    expect(failed).to.include({
      number: 1,
      upstream: `first-${story}`,
      model: `${MODEL}-${story}`,
      cause: 'failed',
      outcome: 'status',
      status: 529,
      upstreamRequestId: 'req_of_the_first',
      passes: null,
      isReported: false,
      upstreamCost: '0.00000000',
    });
    expect(answered).to.include({
      number: 2,
      upstream: `second-${story}`,
      cause: 'answered',
      outcome: 'answered',
      status: 200,
      upstreamRequestId: 'req_of_the_second',
      isReported: true,
      upstreamCost: '0.00900000',
    });
    expect(answered?.['credential']).to.equal('env UPSTREAM_CREDENTIAL');
    expect(passesOf(answered)[0]).to.include({ input: 1_000, output: 100 });
  });

  it('keep the usage that an upstream reported before it failed', async () => {
    first.always(messagesErrorStream({ afterEvents: 2 }));
    second.always(messagesStream({ usage: USAGE }));
    const [failed, answered] = await attemptsFor(await call({ stream: true }));
    expect(failed).to.include({ cause: 'failed', outcome: 'error_event', isReported: false });
    expect(passesOf(failed)[0]?.['input']).to.be.greaterThan(0);
    expect(answered).to.include({ cause: 'answered', upstreamCost: '0.00900000' });
  });

  it("show the upstream's cost of a broken stream that was free for the customer", async () => {
    first.always(messagesStream({ usage: USAGE, cutAfter: 4, cut: 'reset' }));
    second.always(messagesFailure(400));
    const answer = await call({ stream: true });
    expect(await gateway.record(key, answer.headers['x-svc-request-id'] ?? '')).to.include({ cost: '0.00000000' });
    const [broken] = await attemptsFor(answer);
    expect(broken).to.include({ cause: 'failed', isReported: false });
    expect(broken?.['upstreamCost']).not.to.equal('0.00000000');
  });

  it('are flagged if the call had a member that the gateway does not know', async () => {
    first.always(messagesAnswer({ usage: USAGE }));
    const [attempt] = await attemptsFor(await call({ brand_new_member: true }));
    expect(attempt).to.include({ cause: 'unknown', isReported: true, upstreamCost: COST });
  });

  it('are not shown to customers', async () => {
    first.always(messagesAnswer({ usage: USAGE }, { headers: { 'request-id': 'req_secret' } }));
    const answer = await call();
    const requestId = answer.headers['x-svc-request-id'] ?? '';
    const record = JSON.stringify(await gateway.record(key, requestId));
    expect(record).not.to.match(/req_secret|upstreamCost|credential/);
    const attempts = await gateway.call(`/v1/usage/${requestId}/attempts`, { method: 'GET', key });
    expect(attempts.status).to.equal(404);
  });
});
