import { fail } from '../../../core/errors';

/** Counts this process's clients that follow commands, by sandbox. */
export class Followers {
  readonly #counts = new Map<string, number>();

  constructor(private readonly mostPerSandbox: number) {}

  /** Counts one more follower. Returns the function that ends it. @throws COMMAND_LIMIT */
  add(sandboxId: string): () => void {
    const count = this.#counts.get(sandboxId) ?? 0;
    if (count >= this.mostPerSandbox)
      throw tooMany(`${count} clients already follow commands of this sandbox. Close one first.`);
    this.#counts.set(sandboxId, count + 1);
    return () => this.#remove(sandboxId);
  }

  #remove(sandboxId: string): void {
    const left = (this.#counts.get(sandboxId) ?? 1) - 1;
    if (left === 0) this.#counts.delete(sandboxId);
    else this.#counts.set(sandboxId, left);
  }
}

/** A slot may become free at any time. A few seconds keep rejected clients from retrying without pause. */
const RETRY_AFTER_SECONDS = 5;

export function tooMany(message: string) {
  return fail('COMMAND_LIMIT', { message, retryAfterSeconds: RETRY_AFTER_SECONDS });
}
