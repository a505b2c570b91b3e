import { expect } from 'chai';
import { askIn, PATH, type TestProtocol } from '../support/calls';
import { type Answered, startGateway, type TestGateway } from '../support/gateway';
import { setPolicy } from '../support/policy-settings';
import { chatAnswer, chatStream, startUpstream, type TestUpstream } from '../support/upstream';

type Member = 'max_tokens' | 'max_completion_tokens';

describe('At a Chat upstream that accepts one member for the output limit, the gateway', function () {
  this.timeout(60_000);
  let upstream: TestUpstream;
  let gateway: TestGateway;
  let key: string;

  before(async () => {
    upstream = await startUpstream();
    const taking = (limit: Member, models: readonly string[]) => ({
      url: upstream.url,
      adapter: 'chat',
      adapterSettings: { limit },
      prefill: true,
      models: Object.fromEntries(models.map((name) => [name, {}])),
    });
    gateway = await startGateway({
      upstreams: {
        newer: taking('max_completion_tokens', ['newer-model', 'both-model']),
        older: taking('max_tokens', ['older-model']),
        other: taking('max_completion_tokens', ['both-model']),
      },
      configure: (config) => setPolicy(config, 'failover', { midStream: 'continue' }, 'quality'),
    });
    ({ key } = await gateway.newCustomer('10'));
  });
  after(async () => {
    await gateway?.stop();
    await upstream?.stop();
  });
  beforeEach(() => {
    upstream.reset();
    upstream.always(chatAnswer());
  });

  const call = (protocol: TestProtocol, model: string, limits: object): Promise<Answered> => {
    const { max_tokens: _, ...body } = askIn(protocol, { model });
    return gateway.call(PATH[protocol], { key, body: { ...body, ...limits } });
  };

  const limitsSent = (at = 0) => {
    const { max_tokens, max_completion_tokens } = (upstream.calls[at]?.json ?? {}) as Partial<Record<Member, number>>;
    return { ...(max_tokens && { max_tokens }), ...(max_completion_tokens && { max_completion_tokens }) };
  };

  const STORIES: readonly (readonly [what: string, TestProtocol, model: string, limits: object, sent: object])[] = [
    ['the other member', 'chat', 'newer-model', { max_tokens: 90 }, { max_completion_tokens: 90 }],
    ['the other member', 'chat', 'older-model', { max_completion_tokens: 90 }, { max_tokens: 90 }],
    ['that member', 'chat', 'newer-model', { max_completion_tokens: 80 }, { max_completion_tokens: 80 }],
    [
      'both members',
      'chat',
      'newer-model',
      { max_completion_tokens: 80, max_tokens: 70 },
      { max_completion_tokens: 70 },
    ],
    ['a limit of null', 'chat', 'newer-model', { max_tokens: null }, {}],
    ['no limit', 'chat', 'newer-model', {}, {}],
    ['its own limit', 'messages', 'newer-model', { max_tokens: 60 }, { max_completion_tokens: 60 }],
    ['its own limit', 'messages', 'older-model', { max_tokens: 60 }, { max_tokens: 60 }],
    ['its own limit', 'responses', 'newer-model', { max_output_tokens: 60 }, { max_completion_tokens: 60 }],
  ];
  for (const [what, protocol, model, limits, sent] of STORIES)
    it(`sends the limit ${JSON.stringify(sent)} to the ${model} for a ${protocol} call with ${what}`, async () => {
      expect((await call(protocol, model, limits)).status).to.equal(200);
      expect(limitsSent()).to.deep.equal(sent);
    });

  it('sends the remaining limit in that member when it continues a broken answer', async () => {
    const ended = chatStream({ texts: [' four.'] });
    upstream.next(chatStream({ texts: ['one ', 'two ', 'three '], cut: 'reset', cutAfter: 4 }), ended);
    const answered = await call('chat', 'both-model', { max_tokens: 90, stream: true });
    expect(answered.text).to.include('[DONE]');
    const { max_completion_tokens: left = 0, ...others } = limitsSent(1);
    expect([left > 0 && left < 90, others]).to.deep.equal([true, {}]);
  });
});
