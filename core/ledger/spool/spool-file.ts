import { closeSync, openSync, writeSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import type { SettleRequest } from '../ledger';

/** What closes a reservation, as it is kept: enough to send it again. A release is one that costs nothing. */
export interface Closing extends Pick<SettleRequest, 'accountId' | 'keyId' | 'rid' | 'costE8' | 'record'> {
  readonly kind: 'settle' | 'release';
}

/** One file of closings, one line each, appended in order and never changed. Of several of a reservation the last counts. */
export interface SpoolFile {
  /** The account of each reservation that is not known to be done. */
  readonly waiting: Map<string, string>;
  readonly bytes: number;
  append(closing: Closing): void;
  closings(): Promise<readonly Closing[]>;
  /** What is appended after this opens it again. */
  close(): void;
  remove(): Promise<void>;
}

export class FileOnDisk implements SpoolFile {
  readonly waiting = new Map<string, string>();
  bytes = 0;
  readonly #path: string;
  #descriptor: number | undefined;
  /** Its last line is not whole: the disk was full. */
  #isCut = false;

  private constructor(path: string) {
    this.#path = path;
  }

  static create(path: string): FileOnDisk {
    const file = new FileOnDisk(path);
    file.#open();
    return file;
  }

  /** One that another process has left. */
  static async read(path: string): Promise<FileOnDisk> {
    const file = new FileOnDisk(path);
    for (const { rid, accountId } of await file.closings()) file.waiting.set(rid, accountId);
    return file;
  }

  /** Handed to the system, not to the disk: it survives the end of this process, and a call does not wait for a disk. */
  append({ kind, accountId, keyId, rid, costE8, record }: Closing): void {
    const line = `${kind}\t${accountId}\t${keyId}\t${rid}\t${costE8}\t${record}\n`;
    const bytes = Buffer.from(this.#isCut ? `\n${line}` : line);
    const written = writeSync(this.#open(), bytes);
    this.bytes += written;
    this.#isCut = written < bytes.length;
    if (this.#isCut) throw new Error('the disk is full');
    this.waiting.set(rid, accountId);
  }

  /** A last line that was cut off, because its process was killed while it wrote, was never sent either. */
  async closings(): Promise<readonly Closing[]> {
    const text = await readFile(this.#path, 'utf8');
    this.bytes = Buffer.byteLength(text);
    return text.split('\n').slice(0, -1).flatMap(parseLine);
  }

  #open(): number {
    this.#descriptor ??= openSync(this.#path, 'a', 0o600);
    return this.#descriptor;
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }

  async remove(): Promise<void> {
    this.close();
    await rm(this.#path, { force: true });
  }
}

function parseLine(line: string): readonly Closing[] {
  const [kind, accountId = '', keyId = '', rid = '', cost = '', ...record] = line.split('\t');
  if ((kind !== 'settle' && kind !== 'release') || !/^\d+$/.test(cost) || !isWhole(record.at(-1))) return [];
  return [{ kind, accountId, keyId, rid, costE8: BigInt(cost), record: record.join('\t') }];
}

/** A record is an object, or none; one that was cut off has no end. */
function isWhole(recordEnd: string | undefined): boolean {
  return recordEnd === '' || recordEnd?.endsWith('}') === true;
}
