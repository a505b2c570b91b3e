import { closeSync, openSync, writeSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import type { Payer, SettleRequest } from '../ledger';

interface ClosedBy<Kind> extends Pick<SettleRequest, 'accountId' | 'keyId' | 'rid' | 'costE8' | 'record'> {
  readonly kind: Kind;
}

/** A settle or release as the spool keeps it: enough to send it again. A release costs nothing. */
export type Closing = ClosedBy<'settle'> | ClosedBy<'release'>;

/** A call that a node admitted from an allowance (money that it holds in advance): the hold, and what the node knows of the call. */
export interface Opening extends Payer {
  readonly kind: 'open';
  readonly generation: string;
  readonly rid: string;
  readonly amountE8: bigint;
  /** What the node knows of the call, as JSON. */
  readonly facts: string;
}

/** A report of an allowance (money that a node holds in advance), kept before the process sends it. It lists the calls that it charges in order. */
export interface KeptReport extends Payer {
  readonly kind: 'report';
  readonly rid: string;
  readonly generation: string;
  readonly sequence: number;
  readonly digest: string;
  readonly rids: readonly string[];
}

export type SpoolLine = Closing | Opening | KeptReport;

/**
 * The account of a line in the spool (a file on disk for what Postgres may not have yet). The line holds a reservation or an allowance
 * report. `generation` identifies the allowance that admitted the call.
 */
export interface Waiting {
  readonly accountId: string;
  /** The allowance that admitted the call (money that a node holds in advance); its reports send the call to the ledger. undefined: no allowance did. */
  readonly generation: string | undefined;
}

/** A file of lines that the process appends in order and never changes. If a reservation was settled or released several times, the last line counts. */
export interface SpoolFile {
  readonly waiting: Map<string, Waiting>;
  readonly bytes: number;
  /** Appends a line, which is on disk after the next `flush`. */
  append(line: SpoolLine): void;
  flush(): void;
  lines(): Promise<readonly SpoolLine[]>;
  /** Closes the file. A later `append` opens it again. */
  close(): void;
  remove(): Promise<void>;
}

export class FileOnDisk implements SpoolFile {
  readonly waiting = new Map<string, Waiting>();
  bytes = 0;
  readonly #path: string;
  /** The lines that the next `flush` writes. */
  #pending = '';
  #pendingRids: string[] = [];
  #descriptor: number | undefined;
  /** Whether the file's last line is incomplete because the disk was full. */
  #isCut = false;

  private constructor(path: string) {
    this.#path = path;
  }

  static create(path: string): FileOnDisk {
    const file = new FileOnDisk(path);
    file.#open();
    return file;
  }

  /** Reads a file of a stopped process. */
  static async read(path: string): Promise<FileOnDisk> {
    const file = new FileOnDisk(path);
    for (const line of await file.lines()) file.#wait(line);
    return file;
  }

  append(line: SpoolLine): void {
    this.#pending += textOf(line);
    this.#pendingRids.push(line.rid);
    this.#wait(line);
  }

  #wait(line: SpoolLine): void {
    const { rid, accountId } = line;
    if ('generation' in line) this.waiting.set(rid, { accountId, generation: line.generation });
    else if (!this.waiting.has(rid)) this.waiting.set(rid, { accountId, generation: undefined });
  }

  /** Writes pending lines to the operating system without waiting for the disk. The lines survive the end of this process, but not a loss of power. */
  flush(): void {
    if (this.#pendingRids.length === 0) return;
    const text = this.#isCut ? `\n${this.#pending}` : this.#pending;
    const rids = this.#pendingRids;
    this.#pending = '';
    this.#pendingRids = [];
    try {
      this.#write(text);
    } catch (error) {
      for (const rid of rids) this.waiting.delete(rid);
      throw error;
    }
  }

  #write(text: string): void {
    const written = writeSync(this.#open(), text);
    this.bytes += written;
    this.#isCut = written < Buffer.byteLength(text);
    if (this.#isCut) throw new Error('the disk is full');
  }

  /** Reads all lines except an incomplete last one. A process that was killed while it wrote a line never sent that line. */
  async lines(): Promise<readonly SpoolLine[]> {
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

function textOf(line: SpoolLine): string {
  const { kind, accountId, keyId, rid } = line;
  const head = `${kind}\t${accountId}\t${keyId}\t${rid}`;
  switch (kind) {
    case 'open':
      return `${head}\t${line.amountE8}\t${line.generation}\t${line.facts}\n`;
    case 'report':
      return `${head}\t${line.sequence}\t${line.generation}\t${line.digest}\t${line.rids.join(' ')}\n`;
    default:
      return `${head}\t${line.costE8}\t${line.record}\n`;
  }
}

function parseLine(text: string): readonly SpoolLine[] {
  const [kind, accountId = '', keyId = '', rid = '', number = '', ...rest] = text.split('\t');
  if (!/^\d+$/.test(number)) return [];
  const payer = { accountId, keyId, rid };
  if (kind === 'settle' || kind === 'release') {
    const record = rest.join('\t');
    return isWhole(record) ? [{ ...payer, kind, costE8: BigInt(number), record }] : [];
  }
  const [generation = '', ...content] = rest;
  if (kind === 'open') {
    const facts = content.join('\t');
    return isWhole(facts) ? [{ ...payer, kind, generation, amountE8: BigInt(number), facts }] : [];
  }
  if (kind !== 'report') return [];
  const [digest = '', rids = ''] = content;
  return [{ ...payer, kind, generation, sequence: Number(number), digest, rids: rids.split(' ') }];
}

/** Returns whether the JSON of a record, or of a call's facts, is complete: empty, or an object that was not cut off. */
function isWhole(record: string): boolean {
  return record === '' || record.endsWith('}');
}
