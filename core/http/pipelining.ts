import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Emits `close` on a response that is queued behind another response of its connection (HTTP pipelining). Node emits `close` only on the
 * response that owns the socket, but calls, holds and an orderly stop depend on it.
 */
export function closeWithConnection({ socket }: IncomingMessage, response: ServerResponse): void {
  if (response.socket !== null) return;
  const close = (): void => {
    if (response.closed) return;
    response.destroyed = true;
    // The stream's getter `closed` returns the field `_closed`, and Node's stream.pipeline reads `closed`.
    (response as unknown as { _closed: boolean })._closed = true;
    response.emit('close');
  };
  socket.once('close', close);
  response.once('close', () => socket.off('close', close));
}

/** How many requests of a connection begin per turn of the event loop. Rejecting one takes about 0.1 ms. */
const BEGUN_IN_A_TURN = 8;

type Listener = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * Limits how many pipelined requests a server begins in each turn of the event loop, alternating between connections. Node emits all
 * requests of one read at once. These may be a thousand, and no other client would be answered meanwhile. A request that is not pipelined
 * begins at once. The limit applies to the request listeners that the server has now.
 */
export function limitPipelining(server: Server): void {
  const listeners = server.listeners('request') as Listener[];
  const waiting = new Map<Socket, [IncomingMessage, ServerResponse][]>();

  const begin: Listener = (request, response) => {
    for (const listener of listeners) listener.call(server, request, response);
  };
  // Keeps the connection paused while requests wait. Node would resume reading after each sent answer, and the client could then make the queue of
  // requests as long as it likes.
  const stayPaused = function (this: Socket): void {
    this.pause();
  };
  /**
   * Begins the next waiting request. Returns false if this was the last one of its connection. Reading of the connection then continues,
   * and parsing the data that arrives takes as long as rejecting many requests.
   */
  const beginOne = (): boolean => {
    const [first] = waiting;
    if (first === undefined) return false;
    const [socket, queue] = first;
    const next = queue.shift();
    waiting.delete(socket);
    if (queue.length > 0) waiting.set(socket, queue);
    else socket.off('resume', stayPaused).resume();
    // A request on a closed connection is skipped, because its answer would reach no client.
    if (next !== undefined && !socket.destroyed) begin(...next);
    return queue.length > 0;
  };
  const beginSome = (): void => {
    let count = 1;
    while (beginOne() && count < BEGUN_IN_A_TURN) count += 1;
    if (waiting.size > 0) setImmediate(beginSome);
  };

  server.removeAllListeners('request');
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    // A response that is queued behind another response of its connection has no socket yet.
    if (response.socket !== null) return begin(request, response);
    const { socket } = request;
    const queue = waiting.get(socket);
    if (queue !== undefined) return void queue.push([request, response]);
    if (waiting.size === 0) setImmediate(beginSome);
    waiting.set(socket, [[request, response]]);
    socket.on('resume', stayPaused).pause();
  });
}
