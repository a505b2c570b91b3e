import type { IncomingMessage, ServerResponse } from 'node:http';

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
