import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { ask, askIn, PATH, PROTOCOLS, type TestProtocol } from '../support/calls';
import { DIALECT, streamOf } from '../support/dialects';
import { type Answered, type GatewayOptions, startGateway, type TestGateway } from '../support/gateway';
import { LeavingClient } from '../support/leaving-client';
import { statusOf } from '../support/raw';
import { newStores } from '../support/stores';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { messagesStream, neverAnswer, type Script, startUpstream, type TestUpstream } from '../support/upstream';

/** A stream that would continue for minutes. */
const WORDS = { texts: Array.from({ length: 10_000 }, () => 'word '), delayMs: 20 };
/** A stream larger than the buffers between an upstream and a client that does not read. */
const LONG = longStream(192);

describe('A stop of a process whose calls would not end', function () {
  this.timeout(120_000);
  const upstream = useUpstream();
  let key: string;
  let code: number | null;
  const streams = {} as Record<TestProtocol, Answered>;
  let unstreamed: Answered;
  let uploading: string;
  let unread: Socket;

  const next = useGateway(async () => {
    const options: GatewayOptions = {
      stores: await newStores(),
      upstreams: { acme: { url: upstream.url, models: { 'acme-large': { maxOutput: 10_000_000 } } } },
      system: { shutdownGrace: '500ms' },
    };
    const gateway = await startGateway(options);
    ({ key } = await gateway.newCustomer('1000'));

    const running: Promise<Answered>[] = [];
    for (const protocol of PROTOCOLS) {
      upstream.next(streamOf(protocol, WORDS));
      running.push(gateway.call(PATH[protocol], { key, body: askIn(protocol, { stream: true }) }));
      await upstream.call(running.length);
    }
    upstream.next(neverAnswer());
    const waiting = gateway.call(PATH.messages, { key, body: ask() });
    await upstream.call(PROTOCOLS.length + 1);
    upstream.next(LONG);
    unread = begin(
      gateway,
      (await gateway.newCustomer('1000')).key,
      JSON.stringify(ask({ stream: true, max_tokens: 9_000_000 })),
    );
    unread.pause();
    await upstream.call(PROTOCOLS.length + 2);
    const slow = begin(gateway, key, '{"model":', 1_000);
    const uploaded = readAll(slow);
    await until('the streams have begun', async () => (await gateway.balance(key)).heldUsd !== '0.00000000');

    gateway.process.kill('SIGTERM');
    const ended = await Promise.all(running);
    for (const [at, protocol] of PROTOCOLS.entries()) streams[protocol] = ended[at] as Answered;
    [unstreamed, uploading] = await Promise.all([waiting, uploaded]);
    code = await gateway.ended;
    await gateway.stop();
    return options;
  });
  after(async () => {
    unread?.destroy();
  });

  const recordOf = (answer: Answered) => next.record(key, answer.headers['x-svc-request-id'] ?? '');

  it('ends the process with exit code 0', () => {
    expect(code).to.equal(0);
  });

  for (const protocol of PROTOCOLS) {
    it(`ends a stream with the error event of its protocol and charges nothing (${protocol})`, async () => {
      const { text } = streams[protocol];
      const last = text.trimEnd().split('\n\n').at(-1) ?? '';
      const [, data = ''] = /^data: (.*)$/m.exec(last) ?? [];
      expect(last).to.match(DIALECT[protocol].errorEnd);
      const told = JSON.parse(data);
      expect(told.error ?? told.response.error).to.include({ code: 'DRAINING', retryable: true });
      expect(text).not.to.match(DIALECT[protocol].end);
      expect(await recordOf(streams[protocol])).to.include({
        billing: 'released',
        cost: '0.00000000',
        errorCode: 'DRAINING',
      });
    });
  }

  it('answers an unstreamed call with 503 and charges nothing', async () => {
    expect([unstreamed.status, unstreamed.json.error.code]).to.deep.equal([503, 'DRAINING']);
    expect(unstreamed.headers).to.include({ 'retry-after': '1', 'x-should-retry': 'true' });
    expect(await recordOf(unstreamed)).to.include({ billing: 'released', cost: '0.00000000', errorCode: 'DRAINING' });
  });

  it('answers a call whose body is incomplete with 503', () => {
    expect(statusOf(uploading)).to.equal(503);
  });

  it('releases every hold', async () => {
    const records = await until('all are recorded', async () => {
      const { items } = (await next.call('/v1/usage', { method: 'GET', key })).json;
      return items.length === PROTOCOLS.length + 2 ? items : undefined;
    });
    for (const record of records) expect(record).to.include({ billing: 'released', cost: '0.00000000' });
    expect((await next.balance(key)).heldUsd).to.equal('0.00000000');
  });
});

describe('A stop of a process whose clients do not read their streams', function () {
  this.timeout(120_000);
  const records = {} as Record<'stalled' | 'reading', Record<string, unknown>>;
  let upstream: TestUpstream;
  let next: TestGateway;

  before(async () => {
    upstream = await startUpstream();
    const options: GatewayOptions = {
      stores: await newStores(),
      upstreams: { acme: { url: upstream.url, models: { 'acme-large': { maxOutput: 10_000_000 } } } },
      system: { shutdownGrace: '500ms' },
    };
    const gateway = await startGateway(options);
    const keys = {} as Record<keyof typeof records, string>;
    const sockets: Socket[] = [];
    const ofClient = async (client: keyof typeof records, script: Script) => {
      keys[client] = (await gateway.newCustomer('1000')).key;
      upstream.next(script);
      const socket = begin(gateway, keys[client], JSON.stringify(ask({ stream: true, max_tokens: 9_000_000 })));
      sockets.push(socket);
      await upstream.call(sockets.length);
      return socket;
    };
    const reading = readAll(await ofClient('reading', messagesStream(WORDS)));
    (await ofClient('stalled', LONG)).pause();
    await sleep(3_000);

    gateway.process.kill('SIGTERM');
    await gateway.ended;
    for (const socket of sockets) socket.destroy();
    await Promise.allSettled([reading, gateway.stop()]);
    next = await startGateway(options);
    for (const client of ['stalled', 'reading'] as const)
      records[client] = await until(`the record of the client that is ${client} is there`, async () => {
        const { items } = (await next.call('/v1/usage', { method: 'GET', key: keys[client] })).json;
        return items[0];
      });
  });

  after(async () => {
    await next?.stop();
    await upstream?.stop();
  });

  it('charges the part already received from the upstream to a client that has read nothing for more than a second', () => {
    const { stalled } = records;
    expect(stalled).to.include({ billing: 'partial', errorCode: 'DRAINING', inputTokens: 10 });
    expect(stalled['outputTokens']).to.be.within(65_536 / 4, (192 * 65_536) / 4 - 1);
    expect(Number(stalled['cost'])).to.be.above(0);
  });

  it('charges nothing to a client that reads continuously', () => {
    expect(records.reading).to.include({ billing: 'released', cost: '0.00000000', errorCode: 'DRAINING' });
  });
});

describe('A stop of a process that still reads the answers for disconnected clients', function () {
  this.timeout(120_000);
  const GRACE_MS = 3_000;
  const records = {} as Record<'ended' | 'stream' | 'unstreamed', Record<string, unknown>>;
  let upstream: TestUpstream;
  let next: TestGateway;
  let stoppedWithinMs: number;

  before(async () => {
    upstream = await startUpstream();
    const options: GatewayOptions = {
      stores: await newStores(),
      upstreams: { acme: { url: upstream.url, stopsOnCancel: false } },
      system: { shutdownGrace: `${GRACE_MS}ms` },
    };
    const gateway = await startGateway(options);
    const keys = {} as Record<keyof typeof records, string>;
    const scripts = {
      ended: messagesStream({ texts: ['one ', 'two '], delayMs: 300, usage: { input: 1_000, output: 200 } }),
      stream: messagesStream(WORDS),
      unstreamed: neverAnswer(),
    };
    for (const [at, client] of (['stream', 'unstreamed', 'ended'] as const).entries()) {
      keys[client] = (await gateway.newCustomer('1000')).key;
      upstream.next(scripts[client]);
      const caller = new LeavingClient(gateway, PATH.messages, keys[client], ask({ stream: client !== 'unstreamed' }));
      await upstream.call(at + 1);
      if (client !== 'unstreamed') await caller.sees('message_start');
      caller.leave();
    }
    await sleep(200);

    const toldMs = performance.now();
    gateway.process.kill('SIGTERM');
    await gateway.ended;
    stoppedWithinMs = performance.now() - toldMs;
    await gateway.stop();
    next = await startGateway(options);
    for (const client of ['ended', 'stream', 'unstreamed'] as const)
      records[client] = await until(`the record of the call that is ${client} is there`, async () => {
        const { items } = (await next.call('/v1/usage', { method: 'GET', key: keys[client] })).json;
        return items[0];
      });
  });

  after(async () => {
    await next?.stop();
    await upstream?.stop();
  });

  it('waits for these answers until the grace period ends', () => {
    expect(stoppedWithinMs).to.be.above(GRACE_MS);
  });

  it('charges a call whose upstream finishes within the grace period', () => {
    expect(records.ended).to.include({ billing: 'actual', cost: '0.00600000' });
  });

  for (const client of ['stream', 'unstreamed'] as const)
    it(`ends a call that is not finished after the grace period, and charges nothing (${client})`, () => {
      expect(records[client]).to.include({ billing: 'released', cost: '0.00000000' });
    });
});

/** Returns a stream of so many pieces of 64 KB. */
function longStream(length: number): Script {
  return messagesStream({ texts: Array.from({ length }, () => 'x'.repeat(65_536)) });
}

function begin({ url }: TestGateway, key: string, body: string, length = body.length): Socket {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  const head = ['POST /v1/messages HTTP/1.1', 'Host: x', `x-api-key: ${key}`, 'content-type: application/json'];
  socket.write(`${head.join('\r\n')}\r\ncontent-length: ${length}\r\n\r\n${body}`);
  socket.on('error', () => undefined);
  return socket;
}

async function readAll(socket: Socket): Promise<string> {
  let text = '';
  socket.on('data', (chunk) => (text += chunk.toString()));
  await new Promise((done) => socket.once('close', done));
  return text;
}
