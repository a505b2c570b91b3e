import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Closes the connection of a client that has taken nothing of what waits for it for so long; its call then ends as that of any
 * client that leaves. Backpressure bounds what it costs in memory, and nothing else would bound for how long.
 */
export function leaveIdleClients(server: Server, idleMs: number): void {
  // Node tells of this time and of that between two requests by one event: they must never be the same number.
  const timeoutMs = idleMs + 1;
  server.timeout = timeoutMs;
  server.on('timeout', (socket: Socket) => {
    const waitsForAnswer = socket.timeout === timeoutMs && socket.writableLength === 0;
    if (!waitsForAnswer) socket.destroy();
  });
}
