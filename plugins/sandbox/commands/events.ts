import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Knex } from 'knex';
import { object, objectWith, oneOf, orNull, shape } from '../../../core/http/shape';
import { type Piece, textOf } from './kept-output';
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

export function outputView(pieces: Parameters<typeof textOf>[0]): { stdout: string; stderr: string } {
  return { stdout: textOf(pieces, 'stdout'), stderr: textOf(pieces, 'stderr') };
}

/** A command, and the beginning of its output after a sequence number, read at one moment. */
export interface Look {
  readonly command: Command;
  readonly pieces: readonly Piece[];
  /** False if there may be output after these pieces. */
  readonly isAll: boolean;
}

/** How much output is read at once. It waits in memory while the client reads it. */
const READ_AT_ONCE_BYTES = 65_536;

/**
 * Reads commands for the clients that follow them. All followers of a command wait for the same event, and those at the same
 * position share one read.
 */
export class Looks {
  readonly #changes = new Map<string, { readonly come: Promise<void>; readonly wake: () => void }>();
  readonly #underWay = new Map<string, Map<number, Promise<Look>>>();

  constructor(
    private readonly database: Knex,
    /** How often to poll a command whose events may not reach this process. */
    private readonly everyMs: (commandId: string) => number,
  ) {}

  /** Wakes the followers of a command, because it may have new output. */
  notify(commandId: string): void {
    // A read in progress may have missed the new output: later callers must read again.
    this.#underWay.delete(commandId);
    this.#changes.get(commandId)?.wake();
  }

  /** Resolves when the command may have new output, or after the polling interval. */
  change(commandId: string): Promise<void> {
    const coming = this.#changes.get(commandId);
    if (coming !== undefined) return coming.come;
    let wake = () => {};
    const come = new Promise<void>((resolve) => {
      const timer = setTimeout(() => wake(), this.everyMs(commandId)).unref();
      wake = () => {
        clearTimeout(timer);
        this.#changes.delete(commandId);
        resolve();
      };
    });
    this.#changes.set(commandId, { come, wake: () => wake() });
    return come;
  }

  /** Reads a command and its output after a position. @throws NOT_FOUND */
  look(sandboxId: string, commandId: string, after: number): Promise<Look> {
    const underWay = this.#underWay.get(commandId) ?? new Map<number, Promise<Look>>();
    this.#underWay.set(commandId, underWay);
    const shared = underWay.get(after);
    if (shared !== undefined) return shared;
    const look = this.#read(sandboxId, commandId, after).finally(() => {
      underWay.delete(after);
      if (underWay.size === 0 && this.#underWay.get(commandId) === underWay) this.#underWay.delete(commandId);
    });
    underWay.set(after, look);
    return look;
  }

  async #read(sandboxId: string, commandId: string, after: number): Promise<Look> {
    // Read the state first: all output of a command is written before its end.
    const command = await findCommand(this.database, sandboxId, commandId);
    const pieces = await readOutput(this.database, commandId, after, READ_AT_ONCE_BYTES);
    const byteLength = pieces.reduce((sum, { bytes }) => sum + bytes.length, 0);
    return { command, pieces, isAll: byteLength < READ_AT_ONCE_BYTES };
  }
}

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
