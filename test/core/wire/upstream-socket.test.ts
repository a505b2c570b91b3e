import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { expect } from 'chai';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Upstream } from '../../../core/catalog/catalog';
import { findMembers } from '../../../core/http/json-members';
import { readAll } from '../../../core/wire/chunk-reader';
import { classifyDialFailure, type Egress, openEgress, wasReusedConnection } from '../../../core/wire/egress';
import type { UpstreamExchange } from '../../../core/wire/upstream-exchange';
import { UpstreamSocket } from '../../../core/wire/upstream-socket';
import responses from '../../../plugins/upstreams/responses';
import { sampleCandidate, sampleCredential } from '../../support/catalog-samples';
import { rejection } from '../../support/rejection';
import { sampleModelRequest } from '../../support/request-sample';
import { until } from '../../support/until';
import { closedPort } from '../../support/upstream';

const DONE = '{"type":"response.completed","response":{"id":"resp_1","usage":{"input_tokens":7,"output_tokens":2}}}';
const MAX_BYTES = 1_000_000;

describe("the upstream WebSocket of a client's WebSocket", () => {
  let server: Server;
  let url: string;
  let egress: Egress;
  let socket: UpstreamSocket;
  /** The upstream's reactions to a handshake and to a frame. */
  let onHandshake: ((request: IncomingMessage, raw: Duplex) => void) | undefined;
  let onFrame: (from: WebSocket, frame: string) => void;
  const open = new Set<WebSocket>();

  before(async () => {
    const sockets = new WebSocketServer({ noServer: true });
    server = createServer();
    server.on('upgrade', (request, raw, head) => {
      if (onHandshake !== undefined) return void onHandshake(request, raw);
      sockets.handleUpgrade(request, raw, head, (each) => {
        open.add(each);
        each.once('close', () => open.delete(each));
        each.on('message', (data) => onFrame(each, String(data)));
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    egress = openEgress();
  });
  after(async () => {
    await egress.close();
    server.close();
    server.closeAllConnections();
  });
  beforeEach(() => {
    onHandshake = undefined;
    onFrame = (from) => from.send(DONE);
    socket = new UpstreamSocket('responses_websockets=1');
  });
  afterEach(() => socket.release());

  const ask = (upstream: Partial<Upstream> = {}, isFresh = false): UpstreamExchange => {
    const timeouts = { connectMs: 1_000, headersMs: 1_000, firstTokenMs: undefined, idleMs: 300, answerMs: 1_000 };
    const at = { url: new URL(url), allowPrivate: true, credential: sampleCredential('secret'), timeouts, ...upstream };
    const { upstream: asked, model } = sampleCandidate('acme', { upstream: at });
    const bytes = Buffer.from('{"model":"x","stream":true}');
    const members = findMembers([bytes]) ?? new Map();
    const body = { chunks: [bytes], byteLength: bytes.length, members };
    const request = sampleModelRequest({ protocol: 'responses', stream: true, body });
    return socket.ask({ upstream: asked, model, adapter: responses }, request, egress, isFresh);
  };

  const textOf = async (exchange: UpstreamExchange) => String(await readAll(exchange, MAX_BYTES));

  it('is reused for later calls, remembers which upstream answered, and reconnects if the credential changes', async () => {
    await textOf(ask());
    expect(socket.find('resp_1')).to.include({ upstream: 'acme', inputTokens: 7, outputTokens: 2 });
    const [first] = open;
    await textOf(ask());
    expect([...open]).to.deep.equal([first]);
    await textOf(ask({ credential: sampleCredential('another') }));
    await until('the first is closed', () => open.size === 1 && !open.has(first as WebSocket));
  });

  it('converts line breaks within a frame into lines of one event', async () => {
    onFrame = (from) => from.send('{\n "type": "response.completed",\r\n "response": {}\r}');
    expect(await textOf(ask())).to.equal(
      'event: response.completed\ndata: {\ndata:  "type": "response.completed",\ndata:  "response": {}\ndata: }\n\n',
    );
  });

  it('returns the HTTP response of an upstream that refuses the handshake', async () => {
    onHandshake = (_, raw) => raw.end('HTTP/1.1 401 No\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}');
    const exchange = ask();
    expect((await exchange.head).status).to.equal(401);
    expect(await textOf(exchange)).to.equal('{}');
    expect(exchange.isRequestSent).to.equal(false);
  });

  it('fails like any connection if the port is closed or the address is private', async () => {
    const refused = ask({ url: new URL(await closedPort()) });
    expect(classifyDialFailure(await rejection(refused.head))).to.equal('connect_failed');
    const hidden = await rejection(ask({ allowPrivate: false }).head);
    expect(hidden.name).to.equal('AddressRefused');
  });

  it('fails if it closes before an answer, and reports whether it had answered an earlier call', async () => {
    onFrame = (from) => from.terminate();
    expect(wasReusedConnection(await rejection(ask().head))).to.equal(false);
    onFrame = (from) => from.send(DONE);
    await textOf(ask());
    onFrame = (from) => from.terminate();
    expect(wasReusedConnection(await rejection(ask().head))).to.equal(true);
  });

  for (const [what, send, kind] of [
    ['is silent for too long', () => undefined, 'timeout'],
    ['sends a binary frame', (from: WebSocket) => from.send(Buffer.from('{}')), 'reset'],
    ['sends a frame of more than 8 MB', (from: WebSocket) => from.send('x'.repeat(9_000_000)), 'reset'],
  ] as const)
    it(`ends an answer with an error if the upstream ${what}`, async () => {
      onFrame = (from) => {
        from.send('{"type":"response.created"}');
        send(from);
      };
      const exchange = ask();
      await exchange.head;
      expect(classifyDialFailure(await rejection(textOf(exchange)))).to.equal(kind);
      await until('it is closed', () => open.size === 0);
    });
});
