import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * A response that waits behind another of its connection (HTTP pipelining) does not learn that the connection closes: Node emits
 * `close` only on the one that has the socket. Calls, holds and the drain wait for that event, so it is given here.
 */
export function closeWithConnection({ socket }: IncomingMessage, response: ServerResponse): void {
  if (response.socket !== null) return;
  const close = (): void => {
    if (response.closed) return;
    response.destroyed = true;
    // What `closed` reads; stream.pipeline looks at it.
    (response as unknown as { _closed: boolean })._closed = true;
    response.emit('close');
  };
  socket.once('close', close);
  response.once('close', () => socket.off('close', close));
}

/** A refusal takes about 0.1 ms. */
const BEGUN_IN_A_TURN = 8;

type Listener = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * Lets a server begin a few pipelined requests in each turn of the event loop, the connections in turn. Node emits all requests that one
 * read has brought at once, which may be a thousand: no other client would be answered meanwhile. A request that is not pipelined
 * begins at once. Applies to the listeners that the server has now.
 */
export function beginInTurn(server: Server): void {
  const listeners = server.listeners('request') as Listener[];
  const waiting = new Map<Socket, [IncomingMessage, ServerResponse][]>();

  const begin: Listener = (request, response) => {
    for (const listener of listeners) listener.call(server, request, response);
  };
  // Node reads on when an answer has been sent: a client could make the queue as long as it likes.
  const stayPaused = function (this: Socket): void {
    this.pause();
  };
  /** Returns false where its connection is read again: to parse what that brings takes as long as many refusals. */
  const beginOne = (): boolean => {
    const [first] = waiting;
    if (first === undefined) return false;
    const [socket, queue] = first;
    const next = queue.shift();
    waiting.delete(socket);
    if (queue.length > 0) waiting.set(socket, queue);
    else socket.off('resume', stayPaused).resume();
    // Nobody would read its answer.
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
    // Behind another response of its connection it has no socket yet.
    if (response.socket !== null) return begin(request, response);
    const { socket } = request;
    const queue = waiting.get(socket);
    if (queue !== undefined) return void queue.push([request, response]);
    if (waiting.size === 0) setImmediate(beginSome);
    waiting.set(socket, [[request, response]]);
    socket.on('resume', stayPaused).pause();
  });
}
