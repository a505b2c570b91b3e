import { fail } from '../base/errors';

/**
 * The largest body, in bytes, that does not count in the memory budget. Most bodies are smaller, and the limits on connections and calls
 * bound them. For larger bodies, space is reserved in steps of this size.
 */
export const SMALL_BODY_BYTES = 65_536;

/** The account in whose memory budget a body's bytes count. `onEnd` registers the function that releases these bytes. */
export interface BodyOwner {
  /** The account's id; undefined for requests of operators. */
  readonly accountId?: string;
  onEnd(work: () => void): void;
}

export interface BodyRoom {
  /**
   * Counts received bytes.
   * @throws OVERLOADED if the process or the account already holds as many bytes as it may. The body's space is then released at once, not
   * only at the end of the call. If several bodies arrive at the same time, that leaves room for some of them.
   */
  add(bytes: number): void;
}

interface BufferLimits {
  readonly maxBytes: number;
  readonly maxBytesPerAccount: number;
}

/** A process has space for twelve bodies of the largest size, and an account for three of them. */
const LIMITS: BufferLimits = { maxBytes: 268_435_456, maxBytesPerAccount: 67_108_864 };

interface Share {
  /** The received or announced bytes of an account's request bodies, plus the bytes of its answers. */
  bytes: number;
  /** How many of the account's `bytes` belong to answers or parts of answers that the client has not read yet. */
  unreadBytes: number;
  /** When a client last read something, or when data first waited for a client, on the clock of `performance.now()`. */
  readMs: number;
  /** The answers that are still arriving from upstreams, oldest first. */
  readonly arriving: Set<object>;
}

/**
 * Counts the large bodies and answers that the process holds in memory. A call's body stays until the call ends, because the next candidate
 * may need it. An answer stays until its client has read it. Above the limits, the gateway rejects further large bodies before memory runs
 * out, and further answers wait.
 */
export class BufferedBytes {
  readonly #limits: BufferLimits;
  #bytes = 0;
  readonly #shares = new Map<string, Share>();
  /** The answers of all accounts that are still arriving from upstreams, oldest first. */
  readonly #arriving = new Set<object>();
  #change: { readonly come: Promise<void>; readonly wake: () => void } | undefined;

  constructor(limits = LIMITS) {
    this.#limits = limits;
  }

  /** The received bytes of all accounts, bodies and answers together. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Reserves space for a body. The announced length counts at once against its account. The account's first bodies are thus accepted
   * completely, instead of all being rejected halfway. The process counts only received bytes, because a client can announce bytes and
   * never send them.
   * @throws OVERLOADED
   */
  open(owner: BodyOwner, announcedBytes = 0): BodyRoom {
    return new Room(this, owner, announcedBytes);
  }

  take(bytes: number): void {
    if (this.#bytes + bytes > this.#limits.maxBytes) throw overloaded();
    this.#bytes += bytes;
  }

  claim(accountId: string, bytes: number): void {
    const share = this.#shareOf(accountId);
    if (share.bytes + bytes > this.#limits.maxBytesPerAccount) {
      this.#forgetIfEmpty(accountId, share);
      throw overloaded();
    }
    share.bytes += bytes;
  }

  /** Reserves space for bytes that are already in memory. @throws OVERLOADED */
  hold(accountId: string, bytes: number): void {
    this.claim(accountId, bytes);
    try {
      this.take(bytes);
    } catch (error) {
      this.giveBack(accountId, bytes, 0);
      throw error;
    }
  }

  /**
   * Reserves memory space that the caller can do without. Returns false if the process or the account would then hold more than half of its
   * maximum. Slow clients can occupy this space for long, so the other half stays available for request bodies.
   */
  tryHold(accountId: string, bytes: number): boolean {
    const { maxBytes, maxBytesPerAccount } = this.#limits;
    if ((this.#shares.get(accountId)?.bytes ?? 0) + bytes > maxBytesPerAccount / 2) return false;
    if (this.#bytes + bytes > maxBytes / 2) return false;
    this.#shareOf(accountId).bytes += bytes;
    this.#bytes += bytes;
    return true;
  }

  /**
   * Reserves space for an arriving answer. Several answers must never block each other. The oldest one therefore has three quarters of an
   * account's limit to itself. It may exceed the limit while no client of the account has unread data.
   */
  tryArrive(accountId: string, answer: object, bytes: number): boolean {
    const { maxBytes, maxBytesPerAccount } = this.#limits;
    const ofOldest = (3 / 4) * maxBytesPerAccount;
    const share = this.#shareOf(accountId);
    const isOldest = first(share.arriving.add(answer)) === answer;
    const isOldestOfAll = first(this.#arriving.add(answer)) === answer;
    if (this.#bytes + bytes > maxBytes - (isOldestOfAll ? 0 : ofOldest)) return false;
    const fits = share.bytes + bytes <= maxBytesPerAccount - (isOldest ? 0 : ofOldest);
    if (!fits && !(isOldest && share.unreadBytes === 0)) return false;
    share.bytes += bytes;
    this.#bytes += bytes;
    return true;
  }

  /** Returns whether waiting for space is useless: clients of the answer's account occupy it, and have read nothing for a while or read too slowly. */
  isHopeless(accountId: string, answer: object, bytes: number, sinceMs: number): boolean {
    const share = this.#shareOf(accountId);
    if (share.unreadBytes === 0 || first(share.arriving) !== answer) return false;
    if (share.bytes + bytes <= this.#limits.maxBytesPerAccount) return false;
    const nowMs = performance.now();
    return nowMs - share.readMs > READS_WITHIN_MS || nowMs - sinceMs > MAX_WAIT_MS;
  }

  /** Records that an answer has stopped arriving from its upstream. Adds `bytes` to the account's bytes that clients have not read yet. */
  noteUnread(accountId: string, answer: object, bytes: number): void {
    const share = this.#shareOf(accountId);
    share.arriving.delete(answer);
    this.#arriving.delete(answer);
    share.unreadBytes += bytes;
    if (bytes !== 0) share.readMs = performance.now();
    this.#forgetIfEmpty(accountId, share);
    this.#changed();
  }

  /** Records that a client of the account has read something. */
  noteRead(accountId: string): void {
    this.#shareOf(accountId).readMs = performance.now();
  }

  /** Resolves when space in the memory budget was possibly released, or after a short time in any case. */
  change(): Promise<void> {
    if (this.#change !== undefined) return this.#change.come;
    let wake = (): void => undefined;
    const come = new Promise<void>((resolve) => {
      const timer = setTimeout(() => wake(), LOOK_EVERY_MS);
      wake = () => {
        clearTimeout(timer);
        this.#change = undefined;
        resolve();
      };
    });
    this.#change = { come, wake: () => wake() };
    return come;
  }

  giveBack(accountId: string | undefined, claimed: number, taken: number): void {
    if (claimed === 0 && taken === 0) return;
    this.#bytes -= taken;
    this.#changed();
    if (accountId === undefined) return;
    const share = this.#shareOf(accountId);
    share.bytes -= claimed;
    this.#forgetIfEmpty(accountId, share);
  }

  #changed(): void {
    this.#change?.wake();
  }

  #shareOf(accountId: string): Share {
    let share = this.#shares.get(accountId);
    if (share === undefined) {
      share = { bytes: 0, unreadBytes: 0, readMs: 0, arriving: new Set() };
      this.#shares.set(accountId, share);
    }
    return share;
  }

  #forgetIfEmpty(accountId: string, { bytes, unreadBytes, arriving }: Share): void {
    if (bytes === 0 && unreadBytes === 0 && arriving.size === 0) this.#shares.delete(accountId);
  }
}

function first(set: ReadonlySet<object>): object | undefined {
  for (const each of set) return each;
  return undefined;
}

class Room implements BodyRoom {
  #received = 0;
  #taken = 0;
  #claimed = 0;

  constructor(
    private readonly budget: BufferedBytes,
    private readonly owner: BodyOwner,
    announcedBytes: number,
  ) {
    if (announcedBytes > SMALL_BODY_BYTES) this.#claimUpTo(announcedBytes);
  }

  add(bytes: number): void {
    this.#received += bytes;
    if (this.#received <= SMALL_BODY_BYTES) return;
    try {
      this.#claimUpTo(this.#received);
      this.budget.take(this.#received - this.#taken);
      this.#taken = this.#received;
    } catch (error) {
      this.#giveBack();
      throw error;
    }
  }

  /** The release of a body's memory space is registered only when space is first reserved, so that small bodies cost nothing. */
  #claimUpTo(bytes: number): void {
    if (bytes <= this.#claimed) return;
    const { accountId } = this.owner;
    if (accountId !== undefined) this.budget.claim(accountId, bytes - this.#claimed);
    if (this.#claimed === 0) this.owner.onEnd(() => this.#giveBack());
    this.#claimed = bytes;
  }

  #giveBack(): void {
    this.budget.giveBack(this.owner.accountId, this.#claimed, this.#taken);
    this.#claimed = 0;
    this.#taken = 0;
  }
}

/** The most bytes that the gateway buffers of one stream before its client reads them. */
const MAX_READ_AHEAD_BYTES = 1_048_576;

/** Reserves space for bytes that an upstream has sent and the client has not read yet. A stream whose client is fast needs no space. */
export class ReadAhead {
  #held = 0;

  constructor(
    private readonly accountId: string,
    private readonly budget: BufferedBytes = BUFFERED,
  ) {}

  /** Reserves space for this many bytes of a stream to wait for the client. Returns false above the limit of the stream, the account or the process. */
  holds(bytes: number): boolean {
    if (bytes <= this.#held) return true;
    const wanted = inSteps(bytes);
    if (wanted > MAX_READ_AHEAD_BYTES) return false;
    if (!this.budget.tryHold(this.accountId, wanted - this.#held)) return false;
    this.#held = wanted;
    return true;
  }

  giveBack(): void {
    if (this.#held === 0) return;
    this.budget.giveBack(this.accountId, this.#held, this.#held);
    this.#held = 0;
  }
}

/** If the clients of an account read nothing for this time, the account's further answers get no memory space. */
const READS_WITHIN_MS = 5_000;
/** How long an answer waits while the clients of its account read slowly. */
const MAX_WAIT_MS = 60_000;
const LOOK_EVERY_MS = 250;

/**
 * The memory space of one answer, from its first received byte until its client has read the last byte. Answers up to 64 KB need no space.
 * An arriving answer waits for space unless the clients of its own account occupy the space without reading.
 */
export class AnswerRoom {
  #held = 0;
  /** The part of the answer's reserved bytes (`#held`) that counts as unread by the client. */
  #unread = 0;
  #arrives = false;
  #isClosed = false;

  constructor(
    private readonly accountId: string,
    private readonly budget: BufferedBytes = BUFFERED,
  ) {}

  /**
   * Reserves memory space for this many bytes of the answer in total. If there is no space and waiting for it is useless, this returns or
   * resolves with false, and frees the space of the answer.
   */
  arrive(bytes: number): boolean | Promise<boolean> {
    if (bytes <= SMALL_BODY_BYTES || bytes <= this.#held) return true;
    if (this.#isClosed) return false;
    const more = inSteps(bytes) - this.#held;
    this.#arrives = true;
    return this.#take(more) || this.#wait(more);
  }

  /**
   * Records that this many bytes of the answer now wait for the client; without `bytes`, all that have arrived.
   * @throws OVERLOADED if they need more space than is reserved, and none is free
   */
  wait(bytes = this.#held): void {
    if (this.#isClosed) return;
    const wanted = bytes > SMALL_BODY_BYTES ? inSteps(bytes) : 0;
    if (wanted > this.#held) this.budget.hold(this.accountId, wanted - this.#held);
    else this.budget.giveBack(this.accountId, this.#held - wanted, this.#held - wanted);
    this.#held = wanted;
    this.#noteUnread(wanted);
  }

  read(): void {
    if (this.#held > 0) this.budget.noteRead(this.accountId);
  }

  /** Frees the memory space of a discarded answer. This AnswerRoom can then be used for another answer. */
  giveBack(): void {
    if (this.#held === 0 && !this.#arrives) return;
    this.#noteUnread(0);
    this.budget.giveBack(this.accountId, this.#held, this.#held);
    this.#held = 0;
  }

  /** Frees the space permanently, because no client waits for the answer any more. */
  close(): void {
    this.#isClosed = true;
    this.giveBack();
  }

  #noteUnread(bytes: number): void {
    if (bytes === this.#unread && !this.#arrives) return;
    this.#arrives = false;
    this.budget.noteUnread(this.accountId, this, bytes - this.#unread);
    this.#unread = bytes;
  }

  #take(more: number): boolean {
    if (!this.budget.tryArrive(this.accountId, this, more)) return false;
    this.#held += more;
    return true;
  }

  async #wait(more: number): Promise<boolean> {
    const sinceMs = performance.now();
    while (!this.#isClosed && !this.budget.isHopeless(this.accountId, this, more, sinceMs)) {
      await this.budget.change();
      if (!this.#isClosed && this.#take(more)) return true;
    }
    this.giveBack();
    return false;
  }
}

function inSteps(bytes: number): number {
  return Math.ceil(bytes / SMALL_BODY_BYTES) * SMALL_BODY_BYTES;
}

function overloaded() {
  return fail('OVERLOADED', { retryAfterSeconds: 1 });
}

/** The process's only memory budget for bodies and answers. Model calls and the gateway's own API share it. */
export const BUFFERED = new BufferedBytes();
