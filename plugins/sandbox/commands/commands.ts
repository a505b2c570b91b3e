import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http';
import { fail } from '../../../core/base/errors';
import { startLoop } from '../../../core/base/loop';
import type { Stop } from '../../../core/base/resources';
import { safeErrorFields } from '../../../core/base/safe-error';
import { failureOf, type RunningSandbox } from '../admission/access';
import type { Sandbox } from '../lifecycle/sandbox';
import { isFinal } from '../lifecycle/states';
import type { SandboxService } from '../service';
import type { Places } from '../store/places';
import { beginOperation, finishOperation, type Timed } from '../store/queries';
import { firstOf } from '../store/rows';
import { toCallerError } from '../suppliers/failure';
import { Ambiguous, FileFailure, InstanceGone, type RunningCommand } from '../suppliers/supplier';
import { LiveCommand } from './live-command';
import {
  abandonCommand,
  type Command,
  endCommand,
  findUnwatched,
  forgetOutput,
  insertWithin,
  removeCommand,
  tooMany,
  watchCommands,
} from './store';

/** A request to run a command: the command line and its settings. */
interface CommandRequest {
  readonly command: string;
  /** The timeout of the command. undefined: 60 s, or no timeout for a command in the background. */
  readonly timeoutSeconds?: number | undefined;
  readonly cwd?: string | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly stdin?: string | undefined;
  readonly background: boolean;
}

const TIMEOUT_SECONDS = 60;
const WATCH_EVERY_MS = 10_000;
const WATCH_AT_REST_EVERY_MS = 60_000;
/** How long a process may stay silent before it counts as stopped. Every process regularly reports that it still reads its commands' output. */
const WATCHED_FOR_MS = 30_000;
const OUTPUT_KEPT_MS = 3_600_000;
/** How often this process polls for the output of another process's command. */
const LOOK_EVERY_MS = 250;
/** How often this process polls for output of its own commands. In addition, each new output at once wakes the clients that follow the command. */
const LOOK_AT_OWN_EVERY_MS = 5_000;

type CommandsOptions = Pick<SandboxService, 'database' | 'log' | 'driverOf' | 'now' | 'limits'> &
  Pick<Timed, 'spans'> & { readonly places: Pick<Places, 'own'> };

/** The sandbox commands that this process started, and the takeover of commands whose process has stopped. */
export class Commands {
  readonly #live = new Map<string, LiveCommand>();
  /** Emits an event, named by the command's id, when this process has written output or the end of one of its commands. */
  readonly #events = new EventEmitter().setMaxListeners(0);
  /** How many clients of this process follow commands, by sandbox. */
  readonly #followers = new Map<string, number>();

  constructor(private readonly options: CommandsOptions) {}

  /** Resolves when the command may have new output. Commands of other processes are polled. */
  async change(commandId: string): Promise<void> {
    const withinMs = this.#live.has(commandId) ? LOOK_AT_OWN_EVERY_MS : LOOK_EVERY_MS;
    await once(this.#events, commandId, { signal: AbortSignal.timeout(withinMs) }).catch(() => undefined);
  }

  /** Counts one more client that follows commands of a sandbox. Returns the function that removes the client. @throws COMMAND_LIMIT */
  addFollower(sandboxId: string): () => void {
    const count = this.#followers.get(sandboxId) ?? 0;
    if (count >= this.options.limits.followersPerSandbox)
      throw tooMany(`${count} clients already follow commands of this sandbox. Close one first.`);
    this.#followers.set(sandboxId, count + 1);
    return () => {
      const left = (this.#followers.get(sandboxId) ?? 1) - 1;
      if (left === 0) this.#followers.delete(sandboxId);
      else this.#followers.set(sandboxId, left);
    };
  }

  /**
   * Starts a command, which continues until its end or timeout even if the client disconnects. `headers` are those of the request.
   * @throws COMMAND_INVALID, COMMAND_LIMIT and the supplier's errors
   */
  async start(
    running: RunningSandbox,
    request: CommandRequest,
    headers: IncomingHttpHeaders = {},
  ): Promise<LiveCommand> {
    const { database, log, now, limits, spans } = this.options;
    const operationId = await beginOperation(this.options, running.sandbox.id, { type: 'EXEC', headers });
    const command = newCommand(running.sandbox.id, operationId, request, now());
    let started: RunningCommand;
    try {
      await insertWithin(database, command, running.sandbox.accountId, limits);
      const { cwd, env = {}, stdin } = request;
      const spec = { id: command.id, command: request.command, env, cwd };
      const input = stdin === undefined ? undefined : Buffer.from(stdin);
      started = await running.driver.exec(running.reference, { ...spec, stdin: input });
    } catch (error) {
      // The command may run despite the error. Mark it as abandoned, so that the loop for unwatched commands kills it.
      if (error instanceof Ambiguous) await abandonCommand(database, command.id, now());
      else await removeCommand(database, command.id);
      const shown = commandError(error);
      await finishOperation(this.options, operationId, { status: 'FAILED', error: failureOf(shown) });
      throw shown;
    }
    const changed = (id: string) => this.#events.emit(id);
    const live = new LiveCommand(command, running, started, { database, log, now, spans, changed });
    this.#live.set(command.id, live);
    void live.ended.then(() => this.#live.delete(command.id));
    if (request.background) await finishOperation(this.options, operationId, { status: 'SUCCEEDED' });
    return live;
  }

  /** Runs the background loop: reports the live commands, takes over abandoned ones, and deletes old output. */
  run(): Stop {
    const loop = startLoop(() => this.#lookAfter(), {
      everyMs: WATCH_EVERY_MS,
      atRestMs: () => (this.#live.size === 0 ? WATCH_AT_REST_EVERY_MS : 0),
      whenFailed: (error) =>
        this.options.log.error(
          { error: safeErrorFields(error) },
          'running commands could not be checked; the check is retried',
        ),
    });
    return async () => {
      await loop.stop();
      // The commands keep running after this process stops. End its watch now, so that another process takes the commands over at once.
      await watchCommands(this.options.database, [...this.#live.keys()], this.options.now());
    };
  }

  async #lookAfter(): Promise<void> {
    const { database, log, now } = this.options;
    await watchCommands(database, [...this.#live.keys()], now() + WATCHED_FOR_MS);
    for (const command of await findUnwatched(database, this.options.places.own(), now())) {
      await this.#takeOver(command).catch((error: unknown) =>
        log.warn(
          { commandId: command.id, error: safeErrorFields(error) },
          'a running command could not be checked; the check is retried',
        ),
      );
    }
    await forgetOutput(database, now() - OUTPUT_KEPT_MS);
  }

  /** Takes over a command of a stopped process. Its output is lost, but its timeout and its end still apply. */
  async #takeOver(command: Command): Promise<void> {
    const { database, driverOf, now } = this.options;
    const sandbox = await firstOf<Sandbox>(database('sandboxes').where({ id: command.sandboxId }));
    const reference = sandbox?.supplierRef ?? undefined;
    if (sandbox === undefined || reference === undefined || isFinal(sandbox.observedState))
      return this.#end(command, 'LOST', null);
    if (sandbox.observedState !== 'RUNNING') return;
    try {
      const driver = driverOf(sandbox.supplier);
      const state = await driver.inspectCommand(reference, command.id);
      if (state.kind === 'lost') return await this.#end(command, 'LOST', null);
      if (state.kind === 'ended') return await this.#end(command, 'EXITED', state.exitCode);
      if (command.killAtMs === null || command.killAtMs > now()) return;
      await driver.signal(reference, command.id, 'SIGKILL');
      await this.#end(command, 'TIMED_OUT', null);
    } catch (error) {
      if (error instanceof InstanceGone) await this.#end(command, 'LOST', null);
      else throw error;
    }
  }

  async #end(command: Command, status: Command['status'], exitCode: number | null): Promise<void> {
    const { database, now } = this.options;
    await finishOperation(this.options, command.operationId, { status: status === 'LOST' ? 'CANCELLED' : 'SUCCEEDED' });
    await endCommand(database, command.id, { status, exitCode }, now());
  }
}

function newCommand(sandboxId: string, operationId: string, request: CommandRequest, startedAtMs: number): Command {
  const { background, timeoutSeconds = background ? undefined : TIMEOUT_SECONDS } = request;
  return {
    id: randomUUID(),
    sandboxId,
    operationId,
    background,
    status: 'RUNNING',
    exitCode: null,
    stdoutTruncated: false,
    stderrTruncated: false,
    startedAtMs,
    endedAtMs: null,
    killAtMs: timeoutSeconds === undefined ? null : startedAtMs + timeoutSeconds * 1_000,
    watchedUntilMs: startedAtMs + WATCHED_FOR_MS,
  };
}

/** Converts an error of starting a command. An error about a path can only concern `cwd`, because a command has no other path. */
function commandError(error: unknown): unknown {
  if (error instanceof FileFailure)
    return fail('COMMAND_INVALID', { param: 'cwd', message: error.message.replace(/^path:/, 'cwd:'), cause: error });
  return toCallerError(error);
}
