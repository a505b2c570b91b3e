import type { Knex } from 'knex';
import type { Piece } from './kept-output';
import { type Command, findCommand, readOutput } from './store';

/** A command, and its output after a sequence number, at one moment. */
export interface Look {
  readonly command: Command;
  readonly pieces: readonly Piece[];
}

/**
 * Looks at commands for the clients that follow them. All followers of a command wait for the same news, and those that
 * have read equally far share one look.
 */
export class Looks {
  readonly #news = new Map<string, { readonly come: Promise<void>; readonly wake: () => void }>();
  readonly #underWay = new Map<string, Map<number, Promise<Look>>>();

  constructor(
    private readonly database: Knex,
    /** How late the news may be of a command that tells none here. */
    private readonly everyMs: (commandId: string) => number,
  ) {}

  /** Something of this command may be new. */
  tell(commandId: string): void {
    // A look that is under way may have read from before: later callers read again.
    this.#underWay.delete(commandId);
    this.#news.get(commandId)?.wake();
  }

  /** Resolves when something may be new, or it has been waited for long enough. */
  news(commandId: string): Promise<void> {
    const coming = this.#news.get(commandId);
    if (coming !== undefined) return coming.come;
    let wake = () => {};
    const come = new Promise<void>((resolve) => {
      const timer = setTimeout(() => wake(), this.everyMs(commandId)).unref();
      wake = () => {
        clearTimeout(timer);
        this.#news.delete(commandId);
        resolve();
      };
    });
    this.#news.set(commandId, { come, wake: () => wake() });
    return come;
  }

  /** @throws NOT_FOUND */
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
    // The state before the output: an end that was seen has all its output written.
    const command = await findCommand(this.database, sandboxId, commandId);
    return { command, pieces: await readOutput(this.database, commandId, after) };
  }
}
