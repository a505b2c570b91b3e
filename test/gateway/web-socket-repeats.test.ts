import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { MODEL } from '../support/gateway';
import { useGateway, useUpstream } from '../support/story';
import { type Frame, TestSocket } from '../support/test-socket';
import { until } from '../support/until';
import { responsesFailure, responsesStream } from '../support/upstream';

const FRAME = `{"type":"response.create","model":"${MODEL}","store":false,"max_output_tokens":200,"input":"Hello"}`;
const SESSION = { 'x-session-id': 'task-1' };
const WHOLE = 'response.completed';

describe('A frame of a WebSocket that is delivered twice', function () {
  this.timeout(60_000);
  const upstream = useUpstream();
  let key: string;
  const opened: TestSocket[] = [];

  const gateway = useGateway(() => ({ upstreams: { acme: { url: upstream.url, webSocket: true } } }));
  beforeEach(async () => {
    upstream.reset();
    upstream.always(responsesStream());
    ({ key } = await gateway.newCustomer('10'));
  });
  afterEach(async () => {
    for (const { socket } of opened) socket.terminate();
    await Promise.all(opened.splice(0).map(({ closed }) => closed));
    await until('the upstream sockets are closed', () => upstream.webSockets.open.size === 0, 20_000);
  });

  async function open(headers: Record<string, string> = {}, of = key): Promise<TestSocket> {
    const socket = await TestSocket.open(gateway, of, { headers });
    opened.push(socket);
    return socket;
  }

  /** Lets the next answer stop before its text until the function that this returns is called. */
  function heldAnswer(before = 5): () => void {
    let proceed = (): void => undefined;
    upstream.next(responsesStream({ waitFor: { before, until: new Promise<void>((resolve) => (proceed = resolve)) } }));
    return () => proceed();
  }

  const textOf = (events: readonly Frame[]) => events.map(({ type, delta }) => `${type} ${delta ?? ''}`);

  /** Expects so many calls, each charged once: 10 × 3 + 5 × 15 USD per million. */
  async function expectCalls(count: number, of = key): Promise<void> {
    await until('nothing is held', async () => (await gateway.balance(of)).heldUsd === '0.00000000');
    const { balanceUsd } = await gateway.balance(of);
    expect([upstream.calls.length, balanceUsd]).to.deep.equal([count, (10 - count * 0.000105).toFixed(8)]);
  }

  for (const [title, first, second] of [
    ['with the same bytes', FRAME, FRAME],
    [
      'with the same `event_id` and other bytes',
      FRAME.replace('{', '{"event_id":"event_a",'),
      FRAME.replace('}', ' , "event_id":"event\\u005fa" }'),
    ],
  ] as const) {
    it(`${title} gets the answer that is already running, and no second one`, async () => {
      const proceed = heldAnswer();
      const socket = await open();
      socket.send(first);
      await upstream.call(1);
      socket.send(second);
      await until('the answer has begun', () => socket.frames.length === 5);
      socket.send(second);
      proceed();
      expect((await socket.answer()).at(-1).type).to.equal(WHOLE);
      // The next answer shows that none came between.
      expect((await socket.call()).map(({ type }) => type)).to.include('response.created');
      expect(socket.frames.filter(({ type }) => type === 'error')).to.be.empty;
      await expectCalls(2);
    });

    it(`${title} gets the same answer again after its end, free of charge`, async () => {
      const socket = await open();
      socket.send(first);
      const answer = await socket.answer();
      socket.send(second);
      expect(await socket.answer()).to.deep.equal(answer);
      await expectCalls(1);
    });

    it(`${title} on another WebSocket of its session gets the whole answer, as the first does`, async () => {
      const proceed = heldAnswer(6);
      const [one, other] = [await open(SESSION), await open(SESSION)];
      one.send(first);
      await until('the answer has begun', () => one.frames.length >= 5);
      other.send(second);
      await until('the other one has its beginning', () => other.frames.length >= 5);
      proceed();
      const [said, repeated] = [await one.answer(), await other.answer()];
      expect(said.at(-1).type).to.equal(WHOLE);
      expect(textOf(repeated)).to.deep.equal(textOf(said));
      await expectCalls(1);
    });

    it(`${title} gets the answer although the first WebSocket broke before the answer had begun`, async () => {
      const proceed = heldAnswer(0);
      const lost = await open(SESSION);
      lost.send(first);
      await upstream.call(1);
      lost.socket.terminate();
      await lost.closed;
      const again = await open(SESSION);
      again.send(second);
      proceed();
      expect((await again.answer()).at(-1).type).to.equal(WHOLE);
      await expectCalls(1);
    });
  }

  it('is a new call after 5 s', async () => {
    const socket = await open();
    socket.send(FRAME);
    await socket.answer();
    await sleep(5_500);
    socket.send(FRAME);
    await socket.answer();
    await expectCalls(2);
  });

  it('is a new call if the first was refused or failed', async () => {
    upstream.next(...Array.from({ length: 4 }, () => responsesFailure(500)));
    const socket = await open();
    expect((await socket.refusal(FRAME)).error.code).to.equal('ALL_PROVIDERS_FAILED');
    const failed = upstream.calls.length;
    upstream.reset();
    upstream.always(responsesStream());
    socket.send(FRAME);
    expect((await socket.answer()).at(-1).type).to.equal(WHOLE);
    expect(failed).to.be.above(0);
    await expectCalls(1);
  });

  it('counts as a repetition only with the same session and API key, and never without a session', async () => {
    const { key: stranger } = await gateway.newCustomer('10');
    const sockets = [
      await open(SESSION),
      await open({ 'x-session-id': 'task-2' }),
      await open(),
      await open(),
      await open(SESSION, stranger),
    ];
    for (const socket of sockets) {
      socket.send(FRAME);
      expect((await socket.answer()).at(-1).type).to.equal(WHOLE);
    }
    expect(upstream.calls).to.have.length(5);
    await until('the stranger paid', async () => (await gateway.balance(stranger)).balanceUsd === '9.99989500');
  });

  it('is refused, not charged again, if its answer was too long to be kept', async () => {
    upstream.next(responsesStream({ texts: Array.from({ length: 8 }, () => 'x'.repeat(100_000)) }));
    const socket = await open();
    socket.send(FRAME);
    expect((await socket.answer()).at(-1).type).to.equal(WHOLE);
    const { status, error } = await socket.refusal(FRAME);
    expect([status, error.code]).to.deep.equal([409, 'CONFLICT']);
    await expectCalls(1);
  });

  it('does not affect other frames: they are refused during an answer, even if they have the same length', async () => {
    const proceed = heldAnswer();
    const socket = await open();
    socket.send(FRAME);
    await upstream.call(1);
    socket.send(FRAME.replace('Hello', 'World'));
    await until('it is refused', () => socket.frames.some(({ error }) => error?.code === 'CONFLICT'));
    proceed();
    await until('the first is whole', () => socket.frames.at(-1).type === WHOLE);
    await expectCalls(1);
  });
});
