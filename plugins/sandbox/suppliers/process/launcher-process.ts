import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, Socket } from 'node:net';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import type { CommandExit } from '../supplier';

export interface Program {
  readonly argv: readonly string[];
  readonly cwd: string;
  /** The program's whole environment. It inherits none of the gateway's variables. */
  readonly env: Readonly<Record<string, string>>;
  /** How many of the program's descriptors, counted from 0, are connected with the gateway. */
  readonly streams: number;
  /** What the program reads from the next descriptor. */
  readonly words?: readonly string[];
}

export type Asked = Program & { readonly id: number };

/** The messages about a program, in this order: its streams with a socket each, its start, and its end. */
export type Report = { readonly id: number } & (
  | { readonly is: 'stream' }
  | { readonly is: 'started'; readonly pid: number }
  | { readonly is: 'ended'; readonly exit: CommandExit }
  | { readonly is: 'failed'; readonly message: string; readonly code: string | undefined }
);

function send(report: Report, socket?: Socket): void {
  process.send?.(report, socket);
}

/** Connects two sockets. This process reads neither, because the gateway would miss what it read. */
async function connectPair(server: Server, path: string): Promise<readonly [Socket, Socket]> {
  const accepted = once(server, 'connection') as Promise<[Socket]>;
  const socket = new Socket().pause().connect(path);
  const [[other]] = await Promise.all([accepted, once(socket, 'connect')]);
  return [socket, other];
}

async function start(server: Server, path: string, { id, argv, cwd, env, streams, words }: Asked): Promise<void> {
  const pairs: (readonly [Socket, Socket])[] = [];
  try {
    while (pairs.length < streams) pairs.push(await connectPair(server, path));
    const [program = '', ...rest] = argv;
    const theirs = pairs.map(([, socket]) => socket);
    const stdio = words === undefined ? theirs : [...theirs, 'pipe' as const];
    const child = spawn(program, rest, { cwd, env, detached: true, stdio });
    const exit = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
    exit.catch(() => undefined);
    await once(child, 'spawn');
    const descriptor = child.stdio[streams] as Writable | undefined;
    descriptor?.on('error', () => undefined);
    descriptor?.end(words?.map((word) => `${word}\0`).join(''));
    for (const [socket] of pairs) send({ id, is: 'stream' }, socket);
    send({ id, is: 'started', pid: child.pid ?? 0 });
    void exit.then(([code, signal]) =>
      send({ id, is: 'ended', exit: { exitCode: code ?? 128 + constants.signals[signal ?? 'SIGKILL'] } }),
    );
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    for (const [socket] of pairs) socket.destroy();
    send({ id, is: 'failed', message, code });
  } finally {
    for (const [, socket] of pairs) socket.destroy();
  }
}

function main(): void {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-'));
  const path = join(folder, 'pairs');
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  process.once('disconnect', () => process.exit());
  const server = createServer({ pauseOnConnect: true }).listen(path);
  // Programs start one after the other, because only the order of connections shows which two sockets belong together.
  let turn: Promise<unknown> = once(server, 'listening');
  process.on('message', (asked: Asked) => {
    turn = turn.then(() => start(server, path, asked));
  });
}

main();
