import { expect } from 'chai';
import { askIn, PATH } from '../support/calls';
import { DIALECT } from '../support/dialects';
import { DIRECTIONS, type Direction, streamIn } from '../support/directions';
import { type Answered, startGateway, type TestGateway } from '../support/gateway';
import { newStores } from '../support/stores';
import { TestSocket } from '../support/test-socket';
import { until } from '../support/until';
import { startUpstream, type TestUpstream } from '../support/upstream';

const USAGE = { input: 120, output: 30, cacheRead: 80 };
/** The cost of that usage: 120 × 3 + 80 × 0.3 + 30 × 15 USD per million. */
const COST = '0.00083400';
const TEXTS = Array.from({ length: 50 }, (_, at) => `word ${at} `);

describe('A stop while translated streams are open', function () {
  this.timeout(120_000);
  let upstream: TestUpstream;
  let key: string;
  let code: number | null;
  let next: TestGateway;
  const answers = new Map<Direction, Answered>();
  let frames: readonly { readonly type: string; readonly response?: { readonly usage: object } }[];

  before(async () => {
    upstream = await startUpstream();
    const models = (['messages', 'chat', 'responses', 'gemini'] as const).map(
      (adapter) => [`only-${adapter}`, { url: upstream.url, adapter, models: { [`${adapter}-model`]: {} } }] as const,
    );
    const options = { stores: await newStores(), upstreams: Object.fromEntries(models) };
    const gateway = await startGateway(options);
    ({ key } = await gateway.newCustomer('10'));

    const running: Promise<Answered>[] = [];
    for (const { from, to, model } of DIRECTIONS) {
      upstream.next(streamIn(to, { texts: TEXTS, usage: USAGE, delayMs: 60 }));
      running.push(gateway.call(PATH[from], { key, body: askIn(from, { model, stream: true }) }));
      await upstream.call(running.length);
    }
    const socket = await TestSocket.open(gateway, key);
    upstream.next(streamIn('chat', { texts: TEXTS, usage: USAGE, delayMs: 60 }));
    socket.send(TestSocket.create({ model: 'chat-model' }));
    await until('the last stream has begun', () => socket.frames.some(({ type }) => type.endsWith('.delta')));

    gateway.process.kill('SIGTERM');
    frames = await socket.answer();
    for (const [at, answer] of (await Promise.all(running)).entries()) answers.set(DIRECTIONS[at] as Direction, answer);
    code = await gateway.ended;
    await gateway.stop();
    next = await startGateway(options);
  });

  after(async () => {
    await next?.stop();
    await upstream?.stop();
  });

  it('ends the process with exit code 0', () => {
    expect(code).to.equal(0);
  });

  for (const way of DIRECTIONS)
    it(`lets a stream finish and charges it exactly (${way.name})`, async () => {
      const { headers, text } = answers.get(way) as Answered;
      expect(DIALECT[way.from].textOf(text)).to.equal(TEXTS.join(''));
      expect(text).to.match(DIALECT[way.from].end);
      const record = await next.record(key, headers['x-svc-request-id'] ?? '');
      expect(record).to.deep.include({ billing: 'actual', cost: COST, flags: ['translated'], errorCode: null });
    });

  it('lets an answer over a WebSocket finish', () => {
    expect(frames.filter(({ type }) => type === 'response.output_text.delta')).to.have.length(TEXTS.length);
    expect(frames.at(-1)?.response?.usage).to.include({ cost: Number(COST) });
  });

  it('leaves nothing held, and each call charged once', async () => {
    const { balanceUsd, heldUsd } = await next.balance(key);
    expect(heldUsd).to.equal('0.00000000');
    expect(Number(balanceUsd)).to.be.closeTo(10 - (DIRECTIONS.length + 1) * Number(COST), 1e-9);
  });
});
