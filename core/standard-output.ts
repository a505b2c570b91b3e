import { constants, fstatSync, openSync, writeSync } from 'node:fs';
import { pino } from 'pino';

const STANDARD_OUTPUT = 1;
/** The most bytes that a pipe takes at once without mixing them with the output of other processes. */
const ATOMIC_WRITE_BYTES = 4_096;
/** The most bytes that wait for a slow reader. Further lines are dropped, and no call waits. */
const MOST_WAITING_BYTES = 4_194_304;
const WRITTEN_WITHIN_MS = 250;
const RETRIED_AFTER_MS = 10;

/** Takes lines for standard output. It writes several together and never blocks the process. */
export interface LineOutput {
  write(line: string): void;
}

/** Opens standard output for lines. `dropped` is called for each line that is lost because nobody reads them fast enough. */
export function openLineOutput(dropped: () => void): LineOutput {
  const fd = withoutBlocking();
  if (fd !== undefined) return new PieceOutput(fd, dropped);
  const threads = pino.destination({
    dest: STANDARD_OUTPUT,
    sync: false,
    minLength: ATOMIC_WRITE_BYTES / 2,
    maxWrite: ATOMIC_WRITE_BYTES,
    maxLength: MOST_WAITING_BYTES,
    periodicFlush: WRITTEN_WITHIN_MS,
  });
  threads.on('drop', dropped);
  return threads;
}

/**
 * Returns a descriptor of standard output that never blocks: of a file the same, of a pipe another one, which rejects a write while
 * the pipe is full. Other writers of the pipe notice nothing. Returns undefined where there is none, as for sockets.
 */
function withoutBlocking(): number | undefined {
  try {
    const output = fstatSync(STANDARD_OUTPUT);
    if (output.isFile()) return STANDARD_OUTPUT;
    return output.isFIFO() ? openSync('/proc/self/fd/1', constants.O_WRONLY | constants.O_NONBLOCK) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Writes lines in pieces that a pipe takes whole or not at all, from the main thread: a write by Node's threads costs several times
 * as much CPU.
 */
class PieceOutput implements LineOutput {
  /** The lines that were written last. */
  readonly #filling = Buffer.allocUnsafe(ATOMIC_WRITE_BYTES);
  #used = 0;
  /** The pieces before them that standard output has not taken yet. */
  readonly #waiting: Buffer[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly fd: number,
    private readonly dropped: () => void,
  ) {
    process.once('exit', () => this.#writeRest());
  }

  write(line: string): void {
    const bytes = Buffer.byteLength(line);
    if (this.#used + bytes > ATOMIC_WRITE_BYTES) {
      // While pieces wait, the timer writes them: a try for each line would only fail.
      if (this.#waiting.length === 0) this.#flush();
      const waitingBytes = this.#waiting.reduce((sum, { length }) => sum + length, this.#used);
      if (waitingBytes + bytes > MOST_WAITING_BYTES) {
        this.dropped();
        return;
      }
      if (this.#used > 0) this.#waiting.push(this.#take());
    }
    if (bytes > ATOMIC_WRITE_BYTES) this.#waiting.push(Buffer.from(line));
    else this.#used += this.#filling.write(line, this.#used);
    this.#timer ??= setTimeout(this.#flushLater, WRITTEN_WITHIN_MS).unref();
  }

  /** Takes the lines that were written last as a piece. */
  #take(): Buffer {
    const piece = Buffer.from(this.#filling.subarray(0, this.#used));
    this.#used = 0;
    return piece;
  }

  readonly #flushLater = (): void => {
    this.#timer = undefined;
    this.#flush();
    if (this.#waiting.length > 0) this.#timer = setTimeout(this.#flushLater, RETRIED_AFTER_MS).unref();
  };

  /** Writes as much as standard output takes now. */
  #flush(): void {
    while (this.#waiting.length + this.#used > 0) {
      const piece = this.#waiting[0] ?? this.#take();
      const written = this.#tryWrite(piece);
      if (written < piece.length) {
        this.#waiting[0] = piece.subarray(written);
        return;
      }
      this.#waiting.shift();
    }
  }

  /** Returns how many bytes were written. What nobody can read any more counts as written. */
  #tryWrite(piece: Buffer): number {
    try {
      return writeSync(this.fd, piece);
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === 'EAGAIN' ? 0 : piece.length;
    }
  }

  /** Waits for the reader, because the process ends. */
  #writeRest(): void {
    try {
      for (const piece of [...this.#waiting, this.#take()]) {
        for (let at = 0; at < piece.length; ) at += writeSync(STANDARD_OUTPUT, piece, at);
      }
    } catch {
      // Nobody can read them any more.
    }
  }
}
