import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { ownProgram } from '../../../../core/own-program';
import { Ambiguous, type CommandExit } from '../supplier';
import type { Asked, Program, Told } from './launcher-process';

/** Where programs are looked for, in instances and for what starts them. */
export const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** A program that was started as the first of a new session and group. */
export interface StartedProgram {
  readonly pid: number;
  /** By descriptor. Nothing is read from them before somebody asks. */
  readonly streams: readonly Socket[];
  /** @throws Ambiguous when nobody waits for the program any more */
  readonly exit: Promise<CommandExit>;
}

interface Start {
  readonly streams: Socket[];
  readonly started: Deferred<StartedProgram>;
  readonly ended: Deferred<CommandExit>;
}

/**
 * Starts programs through a small process of its own. A process that starts another is copied first, page tables and all, and
 * does nothing else meanwhile: a gateway of 700 MB would serve nobody for 20 ms. What programs print does not pass through
 * that process.
 */
export class Launcher {
  #child: ChildProcess | undefined;
  /** What was asked for and has not ended, by id. */
  readonly #starts = new Map<number, Start>();
  #lastId = 0;

  /** Rejects with the system's code when the program cannot be started. @throws Ambiguous */
  start(program: Program): Promise<StartedProgram> {
    this.#child ??= this.#open();
    this.#child.channel?.ref();
    this.#lastId += 1;
    const asked: Asked = { ...program, id: this.#lastId };
    const start: Start = { streams: [], started: deferred(), ended: deferred() };
    this.#starts.set(asked.id, start);
    // One that is never waited for must not end the process.
    start.ended.promise.catch(() => undefined);
    this.#child.send(asked, (error) => error && start.started.reject(ambiguous(error)));
    return start.started.promise;
  }

  #open(): ChildProcess {
    const { file, execArgv } = ownProgram(require.resolve('./launcher-process'));
    // In a group of its own: a signal from the terminal is for the gateway, which stops it last.
    const child = fork(file, [], {
      execArgv,
      env: { PATH },
      detached: true,
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    child.unref();
    child.on('message', (told: Told, socket) => this.#hear(told, socket as Socket));
    const end = (error?: unknown) => {
      if (this.#child !== child) return;
      this.#child = undefined;
      for (const { started, ended } of this.#starts.values()) {
        started.reject(ambiguous(error));
        ended.reject(ambiguous(error));
      }
      this.#starts.clear();
    };
    child.once('exit', () => end());
    child.once('error', end);
    return child;
  }

  #hear(told: Told, socket: Socket): void {
    const start = this.#starts.get(told.id);
    if (start === undefined) return;
    const { streams, started, ended } = start;
    if (told.is === 'stream') streams.push(socket);
    else if (told.is === 'started') started.resolve({ pid: told.pid, streams, exit: ended.promise });
    else {
      if (told.is === 'ended') ended.resolve(told.exit);
      else started.reject(Object.assign(new Error(told.message), { code: told.code }));
      this.#starts.delete(told.id);
      if (this.#starts.size === 0) this.#child?.channel?.unref();
    }
  }

  /** Programs run on, and nobody learns how they end. */
  async close(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    this.#starts.clear();
    if (child === undefined) return;
    const exit = once(child, 'exit');
    child.disconnect();
    await exit;
  }
}

function ambiguous(cause: unknown): Ambiguous {
  return new Ambiguous('the process that starts programs has ended', { cause });
}

interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: Error) => void;
}

function deferred<T>(): Deferred<T> {
  let settle = {} as Omit<Deferred<T>, 'promise'>;
  const promise = new Promise<T>((resolve, reject) => {
    settle = { resolve, reject };
  });
  return { promise, ...settle };
}
