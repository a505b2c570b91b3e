import type { Knex } from 'knex';
import type { Piece } from './kept-output';
import { type Command, findCommand, readOutput } from './store';

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
