import type { IncomingHttpHeaders, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { WebSocket, WebSocketServer } from 'ws';

/** Header of a recorded call that came over a WebSocket: which one it was, counted from 1. */
export const OVER_SOCKET = 'x-over-socket';

export interface UpstreamSockets {
  /** The handshakes that were agreed to, in order. */
  readonly handshakes: IncomingHttpHeaders[];
  readonly open: ReadonlySet<WebSocket>;
}

/**
 * Has a scripted upstream take WebSockets as the vendor of the Responses protocol does. Each `response.create` is played as a POST of the
 * same server, so that every script can be told over a WebSocket: its events are frames, and what breaks it breaks the socket.
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
