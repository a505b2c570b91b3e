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
  /** The place to go on from with `after`; a ping has none. */
  readonly sequence: number | undefined;
  readonly data: object;
}

/** What following a command needs of the plugin. */
interface FollowedService {
  readonly commands: { readonly looks: Pick<Looks, 'news' | 'look'> };
  readonly gateway: { readonly isStopping: () => boolean };
}

/**
 * What a command prints after a sequence number, as it is written, and its end. The same for commands of this process and of
 * others: everybody reads what is kept. A number that is left out is output that was cut. A process that is to stop breaks off
 * before the end: whoever reads comes back to another.
 */
export async function* followCommand(
  service: FollowedService,
  { sandboxId, commandId }: { readonly sandboxId: string; readonly commandId: string },
  after: number,
  signal: AbortSignal,
): AsyncGenerator<CommandEvent> {
  let sequence = after;
  let toldAtMs = performance.now();
  const left = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
  const { looks } = service.commands;
  while (!signal.aborted && !service.gateway.isStopping()) {
    // Asked for before it is read, so that nothing falls in between.
    const news = looks.news(commandId);
    const { command, pieces } = await looks.look(sandboxId, commandId, sequence);
    for (const piece of pieces) {
      ({ sequence } = piece);
      toldAtMs = performance.now();
      yield { event: piece.stream, sequence, data: { sequence, data: piece.bytes.toString() } };
    }
    if (command.status !== 'RUNNING') {
      const { stdout: _, stderr: __, ...ending } = commandView(command, { stdout: '', stderr: '' });
      yield { event: 'exit', sequence: undefined, data: ending };
      return;
    }
    if (performance.now() - toldAtMs >= PING_EVERY_MS) {
      toldAtMs = performance.now();
      yield { event: 'ping', sequence: undefined, data: {} };
    }
    await Promise.race([news, left]);
  }
}

/** Sends events until they end or the client leaves; `endFollowing` is called then. */
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
