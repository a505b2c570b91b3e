import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Emits `close` on a response that waits behind another response of its connection (HTTP pipelining). Node emits it only on the
 * response that has the socket, but calls, holds and an orderly stop wait for it.
 */
export function closeWithConnection({ socket }: IncomingMessage, response: ServerResponse): void {
  if (response.socket !== null) return;
  const close = (): void => {
    if (response.closed) return;
    response.destroyed = true;
    // `closed` returns this field, and stream.pipeline reads `closed`.
    (response as unknown as { _closed: boolean })._closed = true;
    response.emit('close');
  };
  socket.once('close', close);
  response.once('close', () => socket.off('close', close));
}

/** Rejecting a request takes about 0.1 ms. */
const BEGUN_IN_A_TURN = 8;

type Listener = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * Lets a server begin a few pipelined requests in each turn of the event loop, and takes turns between connections. Node emits
 * all requests of one read at once. These may be a thousand, and no other client would be answered meanwhile. A request that is
 * not pipelined begins at once. This applies to the listeners that the server has now.
 */
export function limitPipelining(server: Server): void {
  const listeners = server.listeners('request') as Listener[];
  const waiting = new Map<Socket, [IncomingMessage, ServerResponse][]>();

  const begin: Listener = (request, response) => {
    for (const listener of listeners) listener.call(server, request, response);
  };
  // Node continues to read after an answer has been sent, so a client could make the queue as long as it likes.
  const stayPaused = function (this: Socket): void {
    this.pause();
  };
  /**
   * Returns false if reading of the connection has been resumed, because parsing what arrives takes as long as rejecting many
   * requests.
   */
  const beginOne = (): boolean => {
    const [first] = waiting;
    if (first === undefined) return false;
    const [socket, queue] = first;
    const next = queue.shift();
    waiting.delete(socket);
    if (queue.length > 0) waiting.set(socket, queue);
    else socket.off('resume', stayPaused).resume();
    // The connection is closed, so nobody would receive the answer.
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
    // A response that waits behind another response of its connection has no socket yet.
    if (response.socket !== null) return begin(request, response);
    const { socket } = request;
    const queue = waiting.get(socket);
    if (queue !== undefined) return void queue.push([request, response]);
    if (waiting.size === 0) setImmediate(beginSome);
    waiting.set(socket, [[request, response]]);
    socket.on('resume', stayPaused).pause();
  });
}
