import { expect } from 'chai';
import { askIn, PATH, type TestProtocol } from '../support/calls';
import type { Answered } from '../support/gateway';
import { useGateway, useUpstream } from '../support/story';
import { chatAnswer } from '../support/upstream';

type Member = 'max_tokens' | 'max_completion_tokens';

describe('At a Chat upstream that accepts one member for the output limit, the gateway', () => {
  const upstream = useUpstream();
  let key: string;

  const gateway = useGateway(() => {
    const taking = (limit: Member, models: readonly string[]) => ({
      url: upstream.url,
      adapter: 'chat',
      adapterSettings: { limit },
      models: Object.fromEntries(models.map((name) => [name, {}])),
    });
    return {
      upstreams: {
        newer: taking('max_completion_tokens', ['newer-model']),
        older: taking('max_tokens', ['older-model']),
      },
    };
  });

  before(async () => {
    ({ key } = await gateway.newCustomer('10'));
  });
  beforeEach(() => {
    upstream.reset();
    upstream.always(chatAnswer());
  });

  const call = (protocol: TestProtocol, model: string, limits: object): Promise<Answered> => {
    const { max_tokens: _, ...body } = askIn(protocol, { model });
    return gateway.call(PATH[protocol], { key, body: { ...body, ...limits } });
  };

  const limitsSent = () => {
    const { max_tokens, max_completion_tokens } = (upstream.calls[0]?.json ?? {}) as Partial<Record<Member, number>>;
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
    it(`sends the output limit ${JSON.stringify(sent)} to the ${model} for a ${protocol} call with ${what}`, async () => {
      expect((await call(protocol, model, limits)).status).to.equal(200);
      expect(limitsSent()).to.deep.equal(sent);
    });
});
