import type { SpoolFile, SpoolLine, Waiting } from '../../core/ledger/spool/spool-file';
import type { SpoolFolder } from '../../core/ledger/spool/spool-folder';

/** The disk of a simulated process. Its content outlives the process, for the next one. */
export class SimulatedSpoolFolder {
  #files: FileInMemory[] = [];

  /** Opens the folder for its current process. */
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

  /** The settles that wait on the disk. */
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

  /** Reads the folder for the next process. Unwritten data of the previous one is lost. */
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
