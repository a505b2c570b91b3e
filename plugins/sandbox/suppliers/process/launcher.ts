import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { ownProgram } from '../../../../core/own-program';
import { Ambiguous, type CommandExit } from '../supplier';
import type { Asked, Program, Report } from './launcher-process';

/** The search path for programs, both in instances and for starting them. */
export const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** A started program, the first process of a new session and group. */
export interface StartedProgram {
  readonly pid: number;
  /** The program's streams by descriptor. Nothing is read from them until a reader attaches. */
  readonly streams: readonly Socket[];
  /** Resolves with the program's end. @throws Ambiguous if the launcher process has ended */
  readonly exit: Promise<CommandExit>;
}

interface Start {
  readonly streams: Socket[];
  readonly started: Deferred<StartedProgram>;
  readonly ended: Deferred<CommandExit>;
}

/**
 * Starts programs through a small process of its own. Starting a program copies the parent's page tables and blocks it meanwhile,
 * which would stop a gateway of 700 MB for 20 ms. The programs' output does not pass through that process.
 */
export class Launcher {
  #child: ChildProcess | undefined;
  /** The programs that were requested and have not ended, by id. */
  readonly #starts = new Map<number, Start>();
  #lastId = 0;

  /** Starts a program. Rejects with the system's code if that fails. @throws Ambiguous */
  start(program: Program): Promise<StartedProgram> {
    this.#child ??= this.#open();
    this.#child.channel?.ref();
    this.#lastId += 1;
    const asked: Asked = { ...program, id: this.#lastId };
    const start: Start = { streams: [], started: deferred(), ended: deferred() };
    this.#starts.set(asked.id, start);
    // A rejection that no caller awaits must not end the process.
    start.ended.promise.catch(() => undefined);
    this.#child.send(asked, (error) => error && start.started.reject(ambiguous(error)));
    return start.started.promise;
  }

  #open(): ChildProcess {
    const { file, execArgv } = ownProgram(require.resolve('./launcher-process'));
    // It has a group of its own, because a signal from the terminal is meant for the gateway, which stops it last.
    const child = fork(file, [], {
      execArgv,
      env: { PATH },
      detached: true,
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    child.unref();
    child.on('message', (report: Report, socket) => this.#apply(report, socket as Socket));
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

  #apply(report: Report, socket: Socket): void {
    const start = this.#starts.get(report.id);
    if (start === undefined) return;
    const { streams, started, ended } = start;
    if (report.is === 'stream') streams.push(socket);
    else if (report.is === 'started') started.resolve({ pid: report.pid, streams, exit: ended.promise });
    else {
      if (report.is === 'ended') ended.resolve(report.exit);
      else started.reject(Object.assign(new Error(report.message), { code: report.code }));
      this.#starts.delete(report.id);
      if (this.#starts.size === 0) this.#child?.channel?.unref();
    }
  }

  /** Ends the launcher process. Programs continue, but their ends are no longer reported. */
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
  let handlers = {} as Omit<Deferred<T>, 'promise'>;
  const promise = new Promise<T>((resolve, reject) => {
    handlers = { resolve, reject };
  });
  return { promise, ...handlers };
}
