import { Command, Redis } from 'ioredis';

/**
 * ioredis takes a timer that has run out for silence of Redis. When it was this process that stood still (a busy machine, a long
 * collection of garbage) the timers run before what has arrived meanwhile is read: calls would be refused, and a good connection
 * given up. So both timers look again after reading (`setImmediate` comes behind it). Timers, not `await`s: this is on every call.
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
    // After ioredis' own reader of the stream, which takes what was answered off the queue.
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

/** What we touch of a command. */
interface CommandTimer {
  readonly isResolved: boolean;
  _commandTimeoutTimer?: NodeJS.Timeout;
  reject(error: Error): void;
  setTimeout(this: CommandTimer, ms: number): void;
}

/** What we touch of a connection. */
interface SocketTimer {
  readonly options: { readonly socketTimeout: number };
  readonly stream: NodeJS.EventEmitter & { destroy(error: Error): void };
  readonly commandQueue: { readonly length: number };
  socketTimeoutTimer: NodeJS.Timeout | undefined;
  setSocketTimeout(this: SocketTimer): void;
}
