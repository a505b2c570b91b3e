import type { Closing, SpoolFile } from '../../core/ledger/spool/spool-file';
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
  readonly waiting = new Map<string, string>();
  readonly bytes = 0;
  readonly #closings: Closing[] = [];
  readonly #forget: () => void;

  constructor(forget: () => void) {
    this.#forget = forget;
  }

  append(closing: Closing): void {
    this.#closings.push(closing);
    this.waiting.set(closing.rid, closing.accountId);
  }

  async closings(): Promise<readonly Closing[]> {
    return this.#closings;
  }

  close(): void {}

  async remove(): Promise<void> {
    this.#forget();
  }
}
