import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { ask } from '../support/calls';
import { startGateway, type TestGateway } from '../support/gateway';
import { readMetrics } from '../support/metrics';
import { statusOf } from '../support/raw';
import { until } from '../support/until';
import { messagesAnswer, messagesStream, startUpstream, type TestUpstream } from '../support/upstream';

const CLIENT_IDLE_MS = 1_000;

/** The number of pieces. Their 12 MB are more than the buffers between an upstream and a client that does not read. */
const PIECES = 192;
const PIECE_BYTES = 64 * 1024;
const LONG = messagesStream({ texts: Array.from({ length: PIECES }, () => 'x'.repeat(PIECE_BYTES)) });

/** A gateway with its own upstream and customer. */
class Way {
  readonly #sockets: Socket[] = [];

  constructor(
    readonly upstream: TestUpstream,
    readonly gateway: TestGateway,
    readonly key: string,
  ) {}

  static async open(fastLane: boolean): Promise<Way> {
    const upstream = await startUpstream();
    const gateway = await startGateway({
      upstreams: { acme: { url: upstream.url, models: { 'acme-large': { maxOutput: 10_000_000 } } } },
      system: { clientIdle: `${CLIENT_IDLE_MS}ms` },
      env: { FAST_LANE: String(fastLane) },
      configure: (config) => {
        for (const step of config['pipelines'].quality.policies)
          if ('model-request' in step) step['model-request'] = [{ action: { slowBodyTimeout: '1200ms' } }];
      },
    });
    return new Way(upstream, gateway, (await gateway.newCustomer('1000')).key);
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await this.gateway.stop();
    await this.upstream.stop();
  }

  /** Begins a call whose body has this length, and sends the given part of it. */
  begin(length: number, body: string): Socket {
    const socket = connect(Number(new URL(this.gateway.url).port), '127.0.0.1');
    const head = ['POST /v1/messages HTTP/1.1', 'Host: x', `x-api-key: ${this.key}`, 'content-type: application/json'];
    socket.write(`${head.join('\r\n')}\r\ncontent-length: ${length}\r\n\r\n${body}`);
    socket.on('error', () => undefined);
    this.#sockets.push(socket);
    return socket;
  }

  stream(): Socket {
    const body = JSON.stringify(ask({ stream: true, max_tokens: 9_000_000 }));
    return this.begin(body.length, body);
  }

  record(status: number): Promise<Record<string, unknown>> {
    return until(`the record of ${status} is there`, async () => {
      const { items } = (await this.gateway.call(`/v1/usage?status=${status}`, { method: 'GET', key: this.key })).json;
      return items[0];
    });
  }

  nothingIsHeld(): Promise<boolean> {
    return until('nothing is held', async () => (await this.gateway.balance(this.key)).heldUsd === '0.00000000');
  }
}

describe('A slow client, through the fast lane and through Express Gateway,', function () {
  this.timeout(60_000);
  let ways: Way[];

  before(async () => {
    ways = await Promise.all([Way.open(true), Way.open(false)]);
  });
  after(() => Promise.all((ways ?? []).map((way) => way.close())));
  beforeEach(() => {
    for (const { upstream } of ways) upstream.reset();
  });

  const byBoth = (story: (way: Way) => Promise<void>) => async () => {
    await Promise.all(ways.map(story));
  };

  it(
    'gets 408 if its body arrives byte by byte; no upstream is asked, and nothing is held',
    byBoth(async (way) => {
      const socket = way.begin(100_000, '{"model":');
      const dripping = setInterval(() => socket.write(' '), 50);
      let answer = '';
      try {
        for await (const chunk of socket) {
          answer += String(chunk);
          if (answer.includes('}}')) break;
        }
      } finally {
        clearInterval(dripping);
      }
      expect(statusOf(answer)).to.equal(408);
      expect(answer)
        .to.include('"code":"BODY_TIMEOUT"')
        .and.match(/x-svc-source: platform/i);
      expect(way.upstream.calls).to.have.length(0);
      const refused = { errorCode: 'BODY_TIMEOUT', billing: 'released', cost: '0.00000000', attempts: 0 };
      expect(await way.record(408)).to.include(refused);
      await way.nothingIsHeld();
    }),
  );

  it(
    'is treated as disconnected if it reads nothing of its stream, and pays what the upstream reports',
    byBoth(async (way) => {
      way.upstream.always(LONG);
      const socket = way.stream();
      socket.pause();
      await (await way.upstream.call(1)).ended;
      await way.nothingIsHeld();
      const record = await way.record(200);
      expect(record).to.include({ status: 200, billing: 'actual', errorCode: null, outputTokens: 5 });
      socket.resume();
      await until('its connection is closed', () => socket.closed);
    }),
  );

  it(
    'is treated as disconnected if it reads nothing of an unstreamed answer, which then takes no memory',
    byBoth(async (way) => {
      way.upstream.always(messagesAnswer({ texts: ['x'.repeat(PIECES * PIECE_BYTES)] }));
      const body = JSON.stringify(ask());
      const socket = way.begin(body.length, body);
      socket.pause();
      const bufferedBytes = async () => (await readMetrics(way.gateway)).get('tollgate_buffered_bytes') ?? Number.NaN;
      await until('the answer waits', async () => (await bufferedBytes()) >= PIECES * PIECE_BYTES);
      await until('the answer waits no more', async () => (await bufferedBytes()) === 0);
      expect(await way.record(200)).to.include({ billing: 'actual', errorCode: null });
      socket.resume();
      await until('its connection is closed', () => socket.closed);
    }),
  );

  it(
    'is served to the end if it reads something',
    byBoth(async (way) => {
      way.upstream.always(LONG);
      const startedMs = performance.now();
      let end = '';
      for await (const chunk of way.stream()) {
        end = end.slice(-100) + String(chunk);
        if (end.includes('message_stop')) break;
        await sleep(6);
      }
      expect(end).to.include('message_stop');
      expect(performance.now() - startedMs).to.be.above(CLIENT_IDLE_MS);
      await way.nothingIsHeld();
    }),
  );

  it(
    'is not idle while its upstream sends nothing',
    byBoth(async ({ upstream, gateway, key }) => {
      const waitFor = { before: 4, until: sleep(1.5 * CLIENT_IDLE_MS) };
      upstream.always(messagesStream({ texts: ['one ', 'two ', 'three'], waitFor }));
      const answer = await gateway.call('/v1/messages', { key, body: ask({ stream: true }) });
      expect(answer.text).to.include('three').and.include('message_stop');
    }),
  );
});
