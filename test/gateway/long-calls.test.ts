import { join } from 'node:path';
import { expect } from 'chai';
import { askIn, PATH, type TestProtocol } from '../support/calls';
import { answerIn, DIRECTIONS, UPSTREAM_DIALECTS } from '../support/directions';
import type { Answered, TestEndpoint, TestGateway } from '../support/gateway';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { neverAnswer } from '../support/upstream';

/** The environment of a gateway whose turns a test measures. */
const TURNS_PROBED: NodeJS.ProcessEnv = {
  NODE_OPTIONS: `--require ${join(__dirname, '../support/turn-probe.cjs')}`,
};

/** Returns the most CPU, in milliseconds, that the main thread took in one turn of the event loop since the last call. */
async function maxTurnMs({ output, process: child }: TestGateway): Promise<number> {
  const reports = () => output().match(/^TURN .+$/gm) ?? [];
  const { length } = reports();
  child.kill('SIGUSR2');
  const report = await until('the probe reports', () => reports()[length]);
  return Number(report.slice('TURN '.length));
}

/** The most entries of a call that is translated. */
const MAX_ENTRIES = 20_000;

function many<T>(count: number, make: (at: number) => T): T[] {
  return Array.from({ length: count }, (_, at) => make(at));
}

/** Returns a call with this many turns and parts, half of them parts of the last turn. */
function callOf(protocol: TestProtocol, model: string, entries: number): Record<string, unknown> {
  const turns = many(entries / 2, (at) => ({ role: at % 2 === 0 ? 'user' : 'assistant', content: 'a' }));
  const type = protocol === 'responses' ? 'input_text' : 'text';
  const last = { role: 'user', content: many(entries / 2 - 1, () => ({ type, text: 'a' })) };
  return withTalk(protocol, model, [...turns, last]);
}

function withTalk(protocol: TestProtocol, model: string, talk: readonly unknown[]): Record<string, unknown> {
  return askIn(protocol, { model, [protocol === 'responses' ? 'input' : 'messages']: talk });
}

function expectRefusal(answer: Answered, param: string | undefined, bound: string): void {
  expect(answer.status, answer.text.slice(0, 500)).to.equal(400);
  const { error } = answer.json;
  expect(error.code).to.equal('NOT_TRANSLATABLE');
  if (param !== undefined) expect(error.param).to.equal(param);
  expect(error.message).to.include(bound);
  expect(answer.text.length).to.be.below(2_000);
}

/** Conversations of 300,000 entries. */
const NATIVE: Readonly<Record<string, (protocol: TestProtocol) => readonly unknown[]>> = {
  parts: (protocol) => {
    const type = protocol === 'responses' ? 'input_text' : 'text';
    return [{ role: 'user', content: many(300_000, () => ({ type, text: 'a' })) }];
  },
  turns: () => many(300_000, (at) => ({ role: at % 2 === 0 ? 'user' : 'assistant', content: 'a' })),
};

/** Returns a conversation with a call of a tool, and its result. */
function calledWith(protocol: TestProtocol, id: string, name: string): readonly unknown[] {
  const user = { role: 'user', content: 'Hello' };
  if (protocol === 'responses')
    return [
      user,
      { type: 'function_call', call_id: id, name, arguments: '{}' },
      { type: 'function_call_output', call_id: id, output: 'rain' },
    ];
  if (protocol === 'chat')
    return [
      user,
      { role: 'assistant', tool_calls: [{ id, type: 'function', function: { name, arguments: '{}' } }] },
      { role: 'tool', tool_call_id: id, content: 'rain' },
    ];
  return [
    user,
    { role: 'assistant', content: [{ type: 'tool_use', id, name, input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'rain' }] },
  ];
}

describe('Calls with many entries (messages, content parts or tools)', function () {
  this.timeout(120_000);
  const upstream = useUpstream();
  let key: string;

  const gateway = useGateway(() => {
    const model = { context: 10_000_000, tokenizerFactor: 1 };
    const only = (adapter: string, ...models: readonly string[]): TestEndpoint => ({
      url: upstream.url,
      adapter,
      models: Object.fromEntries(models.map((name) => [name, model])),
    });
    return {
      upstreams: Object.fromEntries(
        UPSTREAM_DIALECTS.map((dialect) => [`only-${dialect}`, only(dialect, `${dialect}-model`, 'any-model')]),
      ),
      env: TURNS_PROBED,
    };
  });

  before(async () => {
    ({ key } = await gateway.newCustomer('100000'));
  });
  beforeEach(() => upstream.reset());

  const send = (protocol: TestProtocol, body: unknown) => gateway.call(PATH[protocol], { key, body });

  /** Returns the CPU of the longest turn during a call, the least of three. */
  async function turnMsOf(protocol: TestProtocol, body: unknown, status = 200): Promise<number> {
    const text = JSON.stringify(body);
    const turns: number[] = [];
    for (let tries = 0; tries < 3; tries += 1) {
      await maxTurnMs(gateway);
      const answer = await send(protocol, text);
      expect(answer.status, answer.text.slice(0, 500)).to.equal(status);
      turns.push(await maxTurnMs(gateway));
    }
    return Math.min(...turns);
  }

  for (const protocol of ['messages', 'chat', 'responses'] as const) {
    for (const [what, talkOf] of Object.entries(NATIVE))
      it(`of ${protocol} with 300,000 ${what} for a native upstream take less than 50 ms of CPU in a turn of the event loop`, async () => {
        upstream.always(answerIn(protocol));
        const body = withTalk(protocol, `${protocol}-model`, talkOf(protocol));
        expect(await turnMsOf(protocol, body)).to.be.below(50);
      });
  }

  for (const { from, to, model, name } of DIRECTIONS) {
    it(`are translated from ${name} with ${MAX_ENTRIES} entries, and get 400 with more`, async () => {
      upstream.always(answerIn(to));
      // One turn reads the call and one writes it, each as a whole.
      expect(await turnMsOf(from, callOf(from, model, MAX_ENTRIES))).to.be.below(500);
      const { length } = upstream.calls;
      const answer = await send(from, callOf(from, model, MAX_ENTRIES + 2));
      expectRefusal(answer, from === 'responses' ? 'input' : 'messages', '20000');
      expect(upstream.calls).to.have.length(length);
      expect(await turnMsOf(from, callOf(from, model, 300_000), 400)).to.be.below(50);
    });

    it(`are not translated from ${name} if they have an id of 4 MB of dots`, async () => {
      const answer = await send(from, withTalk(from, model, calledWith(from, '.'.repeat(4_000_000), 'weather')));
      expectRefusal(answer, undefined, '512');
      expectRefusal(
        await send(from, withTalk(from, model, calledWith(from, '.'.repeat(513), 'weather'))),
        undefined,
        '512',
      );
      expectRefusal(await send(from, withTalk(from, model, calledWith(from, 'a', 'n'.repeat(513)))), undefined, '512');
      expect(upstream.calls).to.have.length(0);
      upstream.always(answerIn(to));
      const longest = await send(from, withTalk(from, model, calledWith(from, 'i'.repeat(512), 'n'.repeat(512))));
      expect(longest.status, longest.text).to.equal(200);
    });
  }

  it("get 400 if they offer more than 1,000 of a vendor's tools", async () => {
    upstream.always(answerIn('messages'));
    const hello = withTalk('messages', 'messages-model', [{ role: 'user', content: 'Hello' }]);
    const offering = (count: number) => ({
      ...hello,
      tools: many(count, () => ({ type: 'code_execution_20250825', name: 'code_execution' })),
    });
    const answer = await send('messages', offering(1_001));
    expect(answer.status, answer.text).to.equal(400);
    expect(answer.json.error).to.include({ code: 'INVALID_FIELD', param: 'tools[1000]' });
    expect(await turnMsOf('messages', offering(300_000), 400)).to.be.below(50);
  });

  it('go only to an upstream of their protocol if they have too many entries for translation', async () => {
    for (const protocol of ['messages', 'chat', 'responses'] as const) {
      upstream.reset();
      upstream.always(answerIn(protocol));
      const answer = await send(protocol, callOf(protocol, 'any-model', MAX_ENTRIES + 2));
      expect(answer.status, answer.text).to.equal(200);
      expect(upstream.calls.map(({ path }) => path)).to.deep.equal([PATH[protocol]]);
    }
  });

  it("count towards their account's share of memory, as received and as translated, until they end", async () => {
    const text = 'a'.repeat(15_000_000);
    const body = JSON.stringify(withTalk('messages', 'chat-model', [{ role: 'user', content: text }]));
    upstream.always(neverAnswer());
    const waiting = many(2, () => send('messages', body));
    await until('both are at the upstream', () => (upstream.calls.length === 2 ? true : undefined));
    const third = await send('messages', body);
    expect(third.status, third.text).to.equal(503);
    expect(third.json.error.code).to.equal('OVERLOADED');
    const { key: other } = await gateway.newCustomer('100000');
    upstream.reset();
    upstream.always(answerIn('chat'));
    expect((await gateway.call(PATH.messages, { key: other, body })).status).to.equal(200);
    await Promise.all(waiting);
    expect((await send('messages', body)).status).to.equal(200);
    expect((await send('messages', body)).status).to.equal(200);
    expect((await send('messages', body)).status).to.equal(200);
  });
});
