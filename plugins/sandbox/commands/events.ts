import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Looks } from './looks';
import { commandView } from './view';

/** A stream of `CommandEvent`s. */
export const COMMAND_EVENTS = {
  'text/event-stream': { type: 'string', description: 'Events: start, stdout, stderr, ping, exit.' },
} as const;

const PING_EVERY_MS = 15_000;

export interface CommandEvent {
  readonly event: 'start' | 'stdout' | 'stderr' | 'ping' | 'exit';
  /** The position to continue from with `after`. A ping has none. */
  readonly sequence: number | undefined;
  readonly data: object;
}

/** The members of the plugin's service that following a command uses. */
interface FollowedService {
  readonly commands: { readonly looks: Pick<Looks, 'change' | 'look'> };
  readonly gateway: { readonly isStopping: () => boolean };
}

/**
 * Yields a command's output after a sequence number, and then its end. It reads the stored output, so it follows commands of this
 * and of other processes alike. A gap in the numbers is output that was dropped. A stopping process ends the stream early; the
 * client then reconnects to another process.
 */
export async function* followCommand(
  service: FollowedService,
  { sandboxId, commandId }: { readonly sandboxId: string; readonly commandId: string },
  after: number,
  signal: AbortSignal,
): AsyncGenerator<CommandEvent> {
  let sequence = after;
  let sentAtMs = performance.now();
  const left = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
  const { looks } = service.commands;
  while (!signal.aborted && !service.gateway.isStopping()) {
    // Subscribe before reading, so that output written in between is not missed.
    const change = looks.change(commandId);
    const { command, pieces, isAll } = await looks.look(sandboxId, commandId, sequence);
    for (const piece of pieces) {
      ({ sequence } = piece);
      sentAtMs = performance.now();
      yield { event: piece.stream, sequence, data: { sequence, data: piece.bytes.toString() } };
    }
    if (!isAll) continue;
    if (command.status !== 'RUNNING') {
      const { stdout: _, stderr: __, ...ending } = commandView(command, { stdout: '', stderr: '' });
      yield { event: 'exit', sequence: undefined, data: ending };
      return;
    }
    if (performance.now() - sentAtMs >= PING_EVERY_MS) {
      sentAtMs = performance.now();
      yield { event: 'ping', sequence: undefined, data: {} };
    }
    await Promise.race([change, left]);
  }
}

/** Sends events until they end or the client disconnects, then calls `endFollowing`. */
export async function sendEvents(
  response: ServerResponse,
  status: number,
  events: (signal: AbortSignal) => AsyncIterable<CommandEvent>,
  endFollowing: () => void,
): Promise<void> {
  try {
    if (!response.destroyed) await send(response, status, events);
  } finally {
    endFollowing();
  }
}

async function send(
  response: ServerResponse,
  status: number,
  events: (signal: AbortSignal) => AsyncIterable<CommandEvent>,
): Promise<void> {
  const left = new AbortController();
  response.once('close', () => left.abort());
  response.writeHead(status, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-store' });
  response.flushHeaders();
  for await (const { event, sequence, data } of events(left.signal)) {
    if (response.destroyed) return;
    const id = sequence === undefined ? '' : `id: ${sequence}\n`;
    const isRoom = response.write(`event: ${event}\n${id}data: ${JSON.stringify(data)}\n\n`);
    if (!isRoom) await once(response, 'drain', { signal: left.signal }).catch(() => undefined);
  }
  response.end();
}
