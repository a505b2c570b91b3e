import { Command, Redis } from 'ioredis';

/**
 * Makes ioredis read received data before a timeout applies. ioredis concludes from an expired timer that Redis is silent. If this process
 * itself stalled (a busy machine, a long garbage collection), its timers run before it reads the data that arrived meanwhile. Calls would
 * fail, and ioredis would close a working connection. The timers of commands and of connections therefore act in `setImmediate`, which runs
 * after the reading. They are timers, not `await`s, because every call passes here.
 */
export function readBeforeGivingUp(): void {
  const command = Command.prototype as unknown as CommandTimer;
  command.setTimeout = function (ms) {
    this._commandTimeoutTimer ??= afterReading(ms, () => {
      if (!this.isResolved) this.reject(new Error('Command timed out'));
    });
  };
  const connection = Redis.prototype as unknown as SocketTimer;
  connection.setSocketTimeout = function () {
    const { stream } = this;
    const { socketTimeout } = this.options;
    const timer = afterReading(socketTimeout, () => {
      if (this.socketTimeoutTimer !== timer) return;
      this.socketTimeoutTimer = undefined;
      stream.destroy(new Error(`Redis did not answer for ${socketTimeout} ms.`));
    });
    this.socketTimeoutTimer = timer;
    // This listener runs after ioredis' own reader of the stream, which removes answered commands from the queue.
    stream.once('data', () => {
      clearTimeout(timer);
      this.socketTimeoutTimer = undefined;
      if (this.commandQueue.length > 0) this.setSocketTimeout();
    });
  };
}

function afterReading(ms: number, act: () => void): NodeJS.Timeout {
  return setTimeout(() => setImmediate(act), ms);
}

/** The members of a command that this file uses. */
interface CommandTimer {
  readonly isResolved: boolean;
  _commandTimeoutTimer?: NodeJS.Timeout;
  reject(error: Error): void;
  setTimeout(this: CommandTimer, ms: number): void;
}

/** The members of a connection that this file uses. */
interface SocketTimer {
  readonly options: { readonly socketTimeout: number };
  readonly stream: NodeJS.EventEmitter & { destroy(error: Error): void };
  readonly commandQueue: { readonly length: number };
  socketTimeoutTimer: NodeJS.Timeout | undefined;
  setSocketTimeout(this: SocketTimer): void;
}
