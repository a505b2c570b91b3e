import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Closes the connection of a client that has read nothing of its answer for this time. Its call then ends like that of any client
 * that disconnects. Backpressure limits the memory of such a call, but nothing else limits its duration.
 */
export function leaveIdleClients(server: Server, idleMs: number): void {
  // Node emits the same event for this timeout and for the keep-alive timeout, so the two must be different numbers.
  const timeoutMs = idleMs + 1;
  server.timeout = timeoutMs;
  server.on('timeout', (socket: Socket) => {
    const waitsForAnswer = socket.timeout === timeoutMs && socket.writableLength === 0;
    if (!waitsForAnswer) socket.destroy();
  });
}
