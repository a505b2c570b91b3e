import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/**
 * After an early answer, the longest time for reading the rest of the request, in milliseconds. It is enough for the largest body over an
 * ordinary connection.
 */
const MAX_DRAIN_MS = 5_000;
/** After an early answer, the most bytes of the rest of the request that the gateway reads: twice the size of the largest body. */
const MAX_DRAIN_BYTES = 41_943_040;
const LOOK_EVERY_MS = 250;

/**
 * Sends a complete answer although the request may still be arriving, and closes the connection when the request has ended. Node would
 * close it right after the answer, and a client that is still sending would get a reset instead of the answer. The rest of the request is
 * read and dropped. If the request does not end, the connection is destroyed.
 */
export function answerEarly(request: IncomingMessage, response: ServerResponse, body: string): void {
  if (request.complete) return void response.end(body);
  const { socket } = request;
  let stop = (): void => undefined;
  const end = (): void => {
    stop();
    answered.delete(socket);
    if (!response.writableEnded) response.end();
  };
  request.resume();
  if (response.socket !== null) answered.add(socket);
  // Node calls this callback after the connection's earlier answers have been sent.
  response.write(body, () => {
    if (request.complete || request.destroyed) return end();
    answered.add(socket);
    stop = limitRest(socket);
    for (const event of ['end', 'close']) request.once(event, end);
  });
}

const answered = new WeakSet<Socket>();

/** Returns whether the answer has been sent completely. The rest of the request is then dropped. */
export function isAnswered(socket: Socket): boolean {
  return answered.has(socket);
}

type AnsweringSocket = Duplex & { readonly _httpMessage?: ServerResponse | null };

/** Calls `then` once all earlier requests on the same connection have been answered. */
export function whenAnswered(socket: AnsweringSocket, then: () => void): void {
  const { _httpMessage: earlier } = socket;
  if (earlier) earlier.once('close', () => whenAnswered(socket, then));
  else if (!socket.destroyed) then();
}

const closing = new WeakSet<Socket>();

/** Sends the last bytes on a connection that is no longer HTTP, and drops received bytes until the client closes it. */
export function closeAfter(socket: Socket, bytes = ''): void {
  closing.add(socket);
  limitRest(socket);
  socket.end(bytes);
}

export function isClosing(socket: Socket): boolean {
  return closing.has(socket);
}

/**
 * Destroys a connection that stays open too long or sends too many bytes.
 * @returns a function that ends this supervision of the connection
 */
function limitRest(socket: Socket): () => void {
  const maxBytes = socket.bytesRead + MAX_DRAIN_BYTES;
  let looksLeft = MAX_DRAIN_MS / LOOK_EVERY_MS;
  const look = setInterval(() => {
    looksLeft -= 1;
    if (looksLeft > 0 && socket.bytesRead <= maxBytes) return;
    stop();
    socket.destroy();
  }, LOOK_EVERY_MS);
  const stop = (): void => {
    clearInterval(look);
    socket.off('close', stop);
  };
  socket.once('close', stop);
  return stop;
}
