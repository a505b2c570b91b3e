import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';

interface SeenCommand {
  /** The command's name, then its arguments. */
  readonly words: readonly string[];
  /** The client's address, or `lua` for a command that a script ran. */
  readonly source: string;
}

/**
 * Reports every command of a Redis until it is stopped. It uses a connection of its own, because ioredis fails with "Command queue state error" if
 * the first command arrives together with the OK to its MONITOR.
 */
export async function watchCommands(url: string, see: (command: SeenCommand) => void): Promise<{ stop(): void }> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const lines = createInterface({ input: socket });
  const watching = new Promise<void>((resolve, reject) => {
    lines.on('line', (line) => {
      const command = commandOf(line);
      if (command !== undefined) see(command);
      else if (line === '+OK') resolve();
      else reject(new Error(`Redis answered MONITOR with ${line}`));
    });
    socket.on('error', reject);
  });
  await once(socket, 'connect');
  socket.write('MONITOR\r\n');
  await watching;
  return { stop: () => void socket.destroy() };
}

/** Reads `+1700000000.123456 [0 127.0.0.1:4711] "set" "key" "value"`. */
function commandOf(line: string): SeenCommand | undefined {
  const [, source, rest] = /^\+[\d.]+ \[\d+ ([^\]]+)\] (.+)$/.exec(line) ?? [];
  if (source === undefined || rest === undefined) return undefined;
  const words = [...rest.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, word = '']) => word.replace(/\\(["\\])/g, '$1'));
  return { words, source };
}
