import { expect } from 'chai';
import { ask, askAsSent, PATH } from '../support/calls';
import type { Answered } from '../support/gateway';
import { LeavingClient } from '../support/leaving-client';
import { setPolicy } from '../support/policy-settings';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { type ChatStream, chatErrorStream, chatStream, stream } from '../support/upstream';

const SAID = { texts: ['one ', 'two '], usage: { input: 12, output: 3 }, withUsage: true };
/** The positions of events in such a stream. */
const FINISH = 3;
const USAGE = 4;
const SIGN = ': keep-alive\n\n';

const chunk = (data: object) => `data: ${JSON.stringify({ id: 'chatcmpl_1', ...data })}\n\n`;
const said = (content: string, index = 0) => chunk({ choices: [{ index, delta: { content } }] });
const finish = (index: number, more: object = {}) =>
  chunk({ choices: [{ index, delta: {}, finish_reason: 'stop' }], ...more });
const COUNTS = { usage: { prompt_tokens: 12, completion_tokens: 3 } };
const usage = chunk({ choices: [], ...COUNTS });
const DONE = 'data: [DONE]\n\n';

/** What the upstream sends, and what a client receives that did not ask for the usage. The added `cost` is left out. */
const TABLE: Readonly<Record<string, { sent: readonly string[]; given: readonly string[]; n?: number }>> = {
  'with the usage in a chunk of its own': {
    sent: [said('one '), finish(0), usage, DONE],
    given: [said('one '), finish(0, COUNTS), DONE],
  },
  'with the usage in the finish chunk': {
    sent: [said('one '), finish(0, COUNTS), DONE],
    given: [said('one '), finish(0, COUNTS), DONE],
  },
  'with the usage in the finish chunk and once more': {
    sent: [said('one '), finish(0, COUNTS), usage, DONE],
    given: [said('one '), finish(0, COUNTS), DONE],
  },
  'with running counts': {
    sent: [chunk({ choices: [{ index: 0, delta: { content: 'one ' } }], ...COUNTS }), finish(0), usage, DONE],
    given: [chunk({ choices: [{ index: 0, delta: { content: 'one ' } }], ...COUNTS }), finish(0, COUNTS), DONE],
  },
  'with another chunk before the usage': {
    sent: [said('one '), finish(0), said(''), usage, DONE],
    given: [said('one '), finish(0), said(''), usage, DONE],
  },
  'of several choices': {
    sent: [said('one ', 1), finish(1), said('two '), finish(0), usage, DONE],
    given: [said('one ', 1), finish(1), said('two '), finish(0, COUNTS), DONE],
    n: 2,
  },
  'without its own end': {
    sent: [said('one '), finish(0), usage],
    given: [said('one '), finish(0, COUNTS)],
  },
  'of an empty answer': {
    sent: [finish(0), usage, DONE],
    given: [finish(0, COUNTS), DONE],
  },
};

describe('The usage of a Chat stream', () => {
  const upstream = useUpstream();
  let key: string;

  const gateway = useGateway(() => ({
    upstreams: {
      acme: { url: upstream.url },
      silent: { url: upstream.url, streamUsage: false, models: { silent: {} } },
    },
    configure: (config) => {
      setPolicy(config, 'sse-relay', { usageWithin: '50s' });
      setPolicy(config, 'sse-relay', { usageWithin: '200ms' }, 'cost');
      setPolicy(config, 'sse-relay', { usageWithin: '50s', keepAlive: '40ms' }, 'speed');
    },
    env: { DIRECT_DOMAIN: 'gateway.example' },
  }));

  before(async () => {
    ({ key } = await gateway.newCustomer('100'));
  });
  beforeEach(() => upstream.reset());

  const call = (more: object = {}, prefix = '', headers: Record<string, string> = {}): Promise<Answered> =>
    gateway.call(`${prefix}${PATH.chat}`, { key, body: ask({ stream: true, ...more }), headers });
  const recordOf = ({ headers }: Pick<Answered, 'headers'>) => gateway.record(key, headers['x-svc-request-id'] ?? '');
  const open = (prefix: string, more: object = {}) =>
    new LeavingClient(gateway, `${prefix}${PATH.chat}`, key, ask({ stream: true, ...more }));

  for (const [what, { sent, given, n }] of Object.entries(TABLE)) {
    it(`reaches the client once, equal to the charged usage, from a stream ${what}`, async () => {
      upstream.next(stream(sent, 0));
      const answer = await call(n === undefined ? {} : { n });
      expect(answer.text.replace(COST, '')).to.equal(given.join(''));
      const record = await recordOf(answer);
      expect(record).to.include({ billing: 'actual', inputTokens: 12, outputTokens: 3, status: 200, errorCode: null });
      expect(COST.exec(answer.text)?.[1], 'told as it was charged').to.equal(record['cost']);
    });
  }

  it('is in a chunk with a choice, because a client may read `choices[0]` of every chunk', async () => {
    upstream.next(chatStream(SAID));
    const answer = await call();
    expect(readByOldProgram(answer.text)).to.deep.equal({ said: 'one two ', finish: 'stop', tokens: 3 });
    upstream.next(chatStream(SAID));
    const asked = await gateway.call(PATH.chat, { key, body: askAsSent('chat') });
    expect(() => readByOldProgram(asked.text), 'the chunk without choices is there when asked for').to.throw(TypeError);
  });

  it('is no longer awaited once the upstream has sent [DONE]', async () => {
    const script = chatStream({ ...SAID, withUsage: false });
    upstream.always(script);
    for (const model of [undefined, 'silent']) {
      const answer = await call(model === undefined ? {} : { model });
      expect(answer.text).to.equal(script.text);
      expect(await recordOf(answer)).to.include({ billing: 'estimated', outputTokens: 2 });
    }
  });

  const breaks: Readonly<Record<string, ChatStream>> = {
    'is reset': { cutAfter: USAGE, cut: 'reset' },
    'becomes malformed': { malformedAt: { event: USAGE } },
    'reports an error': { edit: (events) => [...events.slice(0, USAGE), chatErrorStream().events.at(-1) ?? ''] },
  };
  for (const [what, how] of Object.entries(breaks)) {
    it(`is estimated for a stream that ${what} after its finish reason, and the answer counts as complete`, async () => {
      const script = chatStream({ ...SAID, ...how });
      upstream.next(script);
      const answer = await call();
      const upToFinish = script.events.slice(0, FINISH + 1).join('');
      expect(answer.text.slice(0, upToFinish.length)).to.equal(upToFinish);
      expect(answer.text).not.to.include('"error"');
      expect(await recordOf(answer)).to.include({ billing: 'estimated', outputTokens: 2 });
    });
  }

  it('is awaited no longer than `usageWithin`', async () => {
    const script = chatStream({ ...SAID, cutAfter: USAGE, cut: 'stall' });
    upstream.next(script);
    const answer = await call({}, '/cost');
    expect(answer.text).to.equal(script.events.slice(0, USAGE).join(''));
    expect(await recordOf(answer)).to.include({ billing: 'estimated', outputTokens: 2 });
  });

  it('delays the finish reason of one choice no longer than `usageWithin` while other choices continue', async () => {
    const first = new Milestone();
    const events = [said('one ', 1), finish(1), said('two '), finish(0), usage, DONE];
    upstream.next(stream(events, 0, { waitFor: { before: 2, until: first.reached } }));
    const client = open('/cost', { n: 2 });
    await client.sees('"finish_reason":"stop"');
    first.reach();
    await client.sees('[DONE]');
    expect(readByOldProgram(client.text)).to.include({ finish: 'stop', tokens: 3 });
    client.leave();
  });

  it('is awaited while the client receives keep-alive comments', async () => {
    const sent = new Milestone();
    const goes = new Milestone();
    upstream.next(chatStream({ ...SAID, waitFor: waiting(sent, goes) }));
    const client = open('/speed');
    await sent.reached;
    const { length } = client.text;
    await until('a sign comes while the chunk is held', () => client.text.slice(length).includes(SIGN));
    expect(client.text).not.to.include('"finish_reason":"stop"');
    goes.reach();
    await client.sees('[DONE]');
    expect(readByOldProgram(client.text)).to.deep.equal({ said: 'one two ', finish: 'stop', tokens: 3 });
    client.leave();
  });

  it('is charged even if the client disconnects while the gateway awaits it', async () => {
    const sent = new Milestone();
    const goes = new Milestone();
    upstream.next(chatStream({ ...SAID, waitFor: waiting(sent, goes) }));
    const client = open('');
    await sent.reached;
    await client.sees('two ');
    client.leave();
    goes.reach();
    const requestId = /x-svc-request-id: (\S+)/i.exec(client.text)?.[1] ?? '';
    expect(await gateway.record(key, requestId)).to.include({ billing: 'actual', inputTokens: 12, outputTokens: 3 });
  });
});

const COST = /,"cost":(\d+\.\d{8})/;

/** A promise for an event that happens once. */
class Milestone {
  reach!: () => void;
  readonly reached = new Promise<void>((resolve) => {
    this.reach = resolve;
  });
}

/** Makes the upstream wait after its finish reason, until the test lets it send the usage. */
function waiting(sent: Milestone, goes: Milestone) {
  return {
    before: USAGE,
    get until() {
      sent.reach();
      return goes.reached;
    },
  };
}

function chunksOf(text: string): Record<string, unknown>[] {
  return [...text.matchAll(/^data: (\{.*\})$/gm)].map(([, data]) => JSON.parse(data ?? '') as Record<string, unknown>);
}

interface OldChunk {
  readonly choices: readonly [{ readonly delta: { readonly content?: string }; readonly finish_reason: string | null }];
  readonly usage?: { readonly completion_tokens: number } | null;
}

/** Reads a stream like a program that was written when every chunk had a choice. */
function readByOldProgram(text: string): { said: string; finish: string | null; tokens: number | undefined } {
  const read = { said: '', finish: null as string | null, tokens: undefined as number | undefined };
  for (const { choices, usage: counts } of chunksOf(text) as unknown as OldChunk[]) {
    read.said += choices[0].delta.content ?? '';
    read.finish = choices[0].finish_reason ?? read.finish;
    read.tokens = counts?.completion_tokens ?? read.tokens;
  }
  return read;
}
