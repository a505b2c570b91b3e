import type { SpoolFile, SpoolLine, Waiting } from '../../core/ledger/spool/spool-file';
import type { SpoolFolder } from '../../core/ledger/spool/spool-folder';

/** The disk of a simulated process: what is on it outlives the process, for the next one that uses it. */
export class SimulatedSpoolFolder {
  #files: FileInMemory[] = [];

  /** By the one process that uses it now. */
  open(): SpoolFolder {
    for (const file of this.#files) file.read();
    const left = [...this.#files];
    return {
      left,
      create: () => {
        const file = new FileInMemory(() => {
          this.#files = this.#files.filter((each) => each !== file);
        });
        this.#files.push(file);
        return file;
      },
      close: async () => undefined,
    };
  }

  /** What waits on it. */
  get waiting(): readonly string[] {
    return this.#files.flatMap((file) => [...file.waiting.keys()]);
  }

  get isEmpty(): boolean {
    return this.#files.length === 0;
  }
}

class FileInMemory implements SpoolFile {
  readonly waiting = new Map<string, Waiting>();
  readonly bytes = 0;
  readonly #lines: SpoolLine[] = [];
  #pending: SpoolLine[] = [];
  readonly #forget: () => void;

  constructor(forget: () => void) {
    this.#forget = forget;
  }

  append(line: SpoolLine): void {
    this.#pending.push(line);
    this.#wait(line);
  }

  /** By the next process: what was not written is gone with the one before. */
  read(): void {
    this.#pending = [];
    this.waiting.clear();
    for (const line of this.#lines) this.#wait(line);
  }

  #wait(line: SpoolLine): void {
    const { rid, accountId } = line;
    const generation = 'generation' in line ? line.generation : this.waiting.get(rid)?.generation;
    this.waiting.set(rid, { accountId, generation });
  }

  flush(): void {
    this.#lines.push(...this.#pending);
    this.#pending = [];
  }

  async lines(): Promise<readonly SpoolLine[]> {
    return this.#lines;
  }

  close(): void {}

  async remove(): Promise<void> {
    this.#forget();
  }
}
