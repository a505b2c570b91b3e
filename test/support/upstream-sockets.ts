import type { IncomingHttpHeaders, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { WebSocket, WebSocketServer } from 'ws';

/** The header of a recorded call that arrived over a WebSocket: its number on that socket, from 1. */
export const OVER_SOCKET = 'x-over-socket';

export interface UpstreamSockets {
  /** The accepted handshakes, in order. */
  readonly handshakes: IncomingHttpHeaders[];
  readonly open: ReadonlySet<WebSocket>;
}

/**
 * Lets a scripted upstream accept WebSockets like the vendor of the Responses protocol. Each `response.create` becomes a POST to the same server, so
 * that every script works over a WebSocket. Its events become frames, and a script that breaks the connection breaks the socket.
 */
export function takeSockets(server: Server): UpstreamSockets {
  const handshakes: IncomingHttpHeaders[] = [];
  const open = new Set<WebSocket>();
  const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false });
  server.on('upgrade', (request, socket, head) => {
    sockets.handleUpgrade(request, socket, head, (webSocket) => {
      const number = handshakes.push(request.headers);
      open.add(webSocket);
      const { port } = server.address() as AddressInfo;
      const left = new AbortController();
      webSocket.on('error', () => undefined);
      webSocket.once('close', () => {
        open.delete(webSocket);
        left.abort();
      });
      webSocket.on('message', (data) => {
        const call = { method: 'POST', body: String(data), signal: left.signal };
        const headers = { 'content-type': 'application/json', [OVER_SOCKET]: String(number) };
        play(webSocket, fetch(`http://127.0.0.1:${port}${request.url}`, { ...call, headers })).catch(() =>
          webSocket.terminate(),
        );
      });
    });
  });
  return { handshakes, open };
}

async function play(socket: WebSocket, asked: Promise<Response>): Promise<void> {
  const answer = await asked;
  if (answer.status >= 400) {
    const { error } = (await answer.json()) as { error: unknown };
    socket.send(
      JSON.stringify({ type: 'error', status: answer.status, error, headers: Object.fromEntries(answer.headers) }),
    );
    return;
  }
  let text = '';
  for await (const chunk of answer.body ?? []) {
    text += Buffer.from(chunk as Uint8Array).toString('utf8');
    const events = text.split('\n\n');
    text = events.pop() ?? '';
    for (const event of events) await give(socket, event.slice(event.indexOf('data: ') + 'data: '.length));
  }
}

function give(socket: WebSocket, data: string): Promise<void> {
  if (socket.readyState !== WebSocket.OPEN) return Promise.resolve();
  return new Promise((resolve) => socket.send(data, () => resolve()));
}
