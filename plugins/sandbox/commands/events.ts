import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { object, objectWith, oneOf, orNull, shape } from '../../../core/http/shape';
import type { SandboxService } from '../service';
import type { Commands } from './commands';
import { type Command, findCommand, readOutput } from './store';

export const COMMAND_STATUS = oneOf('RUNNING', 'EXITED', 'TIMED_OUT', 'LOST');
export const TRUNCATED = object({ stdout: shape.yes, stderr: shape.yes });

/** The schema of what `commandView` returns. */
export const COMMAND = objectWith(
  {
    commandId: shape.uuid,
    status: COMMAND_STATUS,
    exitCode: orNull(shape.integer),
    stdout: shape.text,
    stderr: shape.text,
    truncated: TRUNCATED,
    startedAt: shape.time,
    endedAt: orNull(shape.time),
    durationMs: orNull(shape.integer),
  },
  { background: object({ sessionId: shape.uuid, commandId: shape.uuid }) },
);

/** Returns a command as callers see it; docs/contract.md, section 8.1. */
export function commandView(command: Command, output: { readonly stdout: string; readonly stderr: string }) {
  const { id, operationId, startedAtMs, endedAtMs } = command;
  return {
    commandId: id,
    status: command.status,
    exitCode: command.exitCode,
    ...output,
    truncated: { stdout: command.stdoutTruncated, stderr: command.stderrTruncated },
    startedAt: new Date(startedAtMs).toISOString(),
    endedAt: endedAtMs === null ? null : new Date(endedAtMs).toISOString(),
    durationMs: endedAtMs === null ? null : endedAtMs - startedAtMs,
    ...(command.background ? { background: { sessionId: operationId, commandId: id } } : {}),
  };
}

/** How much output one read of the database returns. The output stays in memory while the client reads it. */
const READ_AT_ONCE_BYTES = 65_536;

/** A stream of `CommandEvent`s. */
export const COMMAND_EVENTS = {
  'text/event-stream': { type: 'string', description: 'Events: start, stdout, stderr, ping, exit.' },
} as const;

const PING_EVERY_MS = 15_000;

interface CommandEvent {
  readonly event: 'start' | 'stdout' | 'stderr' | 'ping' | 'exit';
  /** The number that a client sends as `after` to continue behind this event; undefined for an event without a number, such as a ping. */
  readonly sequence: number | undefined;
  readonly data: object;
}

/** The members of the service that `followCommand` uses. */
type Followed = Pick<SandboxService, 'database' | 'gateway'> & { readonly commands: Pick<Commands, 'change'> };

/**
 * Yields a command's output after a sequence number, and then its end. It reads the stored output, so it follows commands of this
 * and of other processes alike. A gap in the numbers is output that was dropped. A stopping process ends the stream early; the
 * client then reconnects to another process.
 */
export async function* followCommand(
  { database, commands, gateway }: Followed,
  { id, sandboxId }: Command,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<CommandEvent> {
  let sequence = after;
  let sentAtMs = performance.now();
  const left = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
  // Subscribe to changes before reading the output, so that output written after the read is not missed.
  let change = commands.change(id);
  while (!signal.aborted && !gateway.isStopping()) {
    // Read the command's state before its output. All output is written before the end, so a command that has ended has all of its output.
    const command = await findCommand(database, sandboxId, id);
    const pieces = await readOutput(database, id, sequence, READ_AT_ONCE_BYTES);
    for (const piece of pieces) {
      ({ sequence } = piece);
      sentAtMs = performance.now();
      yield { event: piece.stream, sequence, data: { sequence, data: piece.bytes.toString() } };
    }
    if (pieces.reduce((sum, { bytes }) => sum + bytes.length, 0) >= READ_AT_ONCE_BYTES) continue;
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
    change = commands.change(id);
  }
}

/** Sends events until they end or the client disconnects, then calls `endFollowing`. */
export async function sendEvents(
  response: ServerResponse,
  status: number,
  events: (signal: AbortSignal) => AsyncIterable<CommandEvent>,
  endFollowing: () => void,
): Promise<void> {
  const left = new AbortController();
  response.once('close', () => left.abort());
  try {
    if (response.destroyed) return;
    response.writeHead(status, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-store' });
    response.flushHeaders();
    for await (const { event, sequence, data } of events(left.signal)) {
      if (response.destroyed) return;
      const id = sequence === undefined ? '' : `id: ${sequence}\n`;
      const isRoom = response.write(`event: ${event}\n${id}data: ${JSON.stringify(data)}\n\n`);
      if (!isRoom) await once(response, 'drain', { signal: left.signal }).catch(() => undefined);
    }
    response.end();
  } finally {
    endFollowing();
  }
}
