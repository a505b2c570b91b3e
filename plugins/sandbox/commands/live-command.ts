import { setTimeout as sleep } from 'node:timers/promises';
import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { safeErrorFields } from '../../../core/base/safe-error';
import type { RunningSandbox } from '../admission/access';
import { finishOperation, type Timed } from '../store/queries';
import { InstanceGone, type RunningCommand } from '../suppliers/supplier';
import { KeptOutput } from './kept-output';
import { type Command, endCommand, writeOutput } from './store';

/** The minimum pause between two writes of a command's output to the database. The pause is longer after a write of many bytes. */
const WRITE_EVERY_MS = 50;
const BYTES_PER_MS = 1_024;
const KILL_AGAIN_AFTER_MS = 1_000;

interface LiveOptions extends Timed {
  readonly log: Logger;
  /** Wakes the followers of a command after this process has written its output or its end. */
  readonly changed: (commandId: string) => void;
}

/** A running command whose output this process reads until its end. */
export class LiveCommand {
  readonly output = new KeptOutput();
  /** Resolves with the ended command once its end is written. Never rejects. */
  readonly ended: Promise<Command>;
  #isTimedOut = false;

  constructor(
    readonly command: Command,
    private readonly sandbox: RunningSandbox,
    running: RunningCommand,
    private readonly options: LiveOptions,
  ) {
    this.ended = this.#watch(running);
  }

  async #watch(running: RunningCommand): Promise<Command> {
    const timer = new AbortController();
    void this.#killInTime(timer.signal);
    const exitCode = await this.#read(running);
    timer.abort();
    const status = exitCode === null ? 'LOST' : this.#isTimedOut ? 'TIMED_OUT' : 'EXITED';
    const { truncated } = this.output;
    const ending = {
      status,
      exitCode: status === 'EXITED' ? exitCode : null,
      stdoutTruncated: truncated.stdout,
      stderrTruncated: truncated.stderr,
    } as const;
    const nowMs = this.options.now();
    await this.#keep(async (database) => {
      if (!this.command.background) await finishOperation(this.options, this.command.operationId, outcomeOf(status));
      await endCommand(database, this.command.id, ending, nowMs);
    });
    this.options.changed(this.command.id);
    return { ...this.command, ...ending, endedAtMs: nowMs };
  }

  /** Reads all output and returns the exit code, or null if it is unknown. It reads even if no client follows, and drops the oldest output. */
  async #read({ output, exit }: RunningCommand): Promise<number | null> {
    const stop = new AbortController();
    const writing = this.#writeNowAndThen(stop.signal);
    try {
      for await (const frame of output) this.output.add(frame);
      return (await exit).exitCode;
    } catch (error) {
      this.options.log.warn(
        { commandId: this.command.id, error: safeErrorFields(error) },
        'the output of a command was lost; its exit code is unknown',
      );
      return null;
    } finally {
      this.output.end();
      stop.abort();
      await writing;
      await this.#write();
    }
  }

  async #writeNowAndThen(signal: AbortSignal): Promise<void> {
    let written = 0;
    while (!signal.aborted) {
      await sleep(Math.max(WRITE_EVERY_MS, written / BYTES_PER_MS), undefined, { signal }).catch(() => undefined);
      written = await this.#write();
    }
  }

  /** Writes new output and returns how many bytes it wrote. */
  async #write(): Promise<number> {
    const { added, oldest } = this.output.take();
    if (added.length === 0) return 0;
    await this.#keep((database) => writeOutput(database, this.command.id, added, oldest));
    this.options.changed(this.command.id);
    return added.reduce((bytes, piece) => bytes + piece.bytes.length, 0);
  }

  /**
   * Writes to the database, but only logs a failure, because the command and its answer must not depend on the database. After a failed
   * write, only the stored output lacks that part.
   */
  async #keep(write: (database: Knex) => Promise<void>): Promise<void> {
    try {
      await write(this.options.database);
    } catch (error) {
      this.options.log.error(
        { commandId: this.command.id, error: safeErrorFields(error) },
        'a command or its output could not be written to the database',
      );
    }
  }

  async #killInTime(signal: AbortSignal): Promise<void> {
    const { killAtMs } = this.command;
    if (killAtMs === null) return;
    await sleep(Math.min(killAtMs - this.options.now(), MAX_TIMER_MS), undefined, { signal, ref: false }).catch(
      () => undefined,
    );
    while (!signal.aborted) {
      this.#isTimedOut = true;
      const { driver, reference } = this.sandbox;
      const isOver = await driver.signal(reference, this.command.id, 'SIGKILL').then(
        () => true,
        // A suspended instance rejects the kill signal. Repeat the signal until the instance runs again.
        (error: unknown) => error instanceof InstanceGone,
      );
      if (isOver) return;
      await sleep(KILL_AGAIN_AFTER_MS, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }
}

/** The longest delay that Node's timers accept. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Returns the outcome of a command's operation. It succeeded even if the command failed or timed out, because the command ran as requested. */
function outcomeOf(status: Command['status']) {
  if (status !== 'LOST') return { status: 'SUCCEEDED' } as const;
  return {
    status: 'CANCELLED',
    error: { code: 'SANDBOX_NOT_RUNNING', message: 'The sandbox ended before the operation was done.' },
  } as const;
}
