import type { SpoolFile, SpoolLine, Waiting } from '../../core/ledger/spool/spool-file';
import type { SpoolFolder } from '../../core/ledger/spool/spool-folder';

/** The disk of a simulated process: what is on it outlives the process, for the next one that uses it. */
export class SimulatedSpoolFolder {
  #files: SpoolFile[] = [];

  /** By the one process that uses it now. */
  open(): SpoolFolder {
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

  get isEmpty(): boolean {
    return this.#files.length === 0;
  }
}

class FileInMemory implements SpoolFile {
  readonly waiting = new Map<string, Waiting>();
  readonly bytes = 0;
  readonly #lines: SpoolLine[] = [];
  readonly #forget: () => void;

  constructor(forget: () => void) {
    this.#forget = forget;
  }

  append(line: SpoolLine): void {
    this.#lines.push(line);
    const { rid, accountId } = line;
    const generation = 'generation' in line ? line.generation : this.waiting.get(rid)?.generation;
    this.waiting.set(rid, { accountId, generation });
  }

  flush(): void {}

  async lines(): Promise<readonly SpoolLine[]> {
    return this.#lines;
  }

  close(): void {}

  async remove(): Promise<void> {
    this.#forget();
  }
}
