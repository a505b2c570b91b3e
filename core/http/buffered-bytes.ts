import { fail } from '../errors';

/** Bodies up to this size are not counted: most are that small, and the limit of connections bounds them. */
export const SMALL_BODY_BYTES = 65_536;

/** The account whose memory a body takes, and when that is given back. */
export interface BodyOwner {
  /** Undefined for the operator. */
  readonly accountId?: string;
  onEnd(work: () => void): void;
}

export interface BodyRoom {
  /**
   * Counts bytes that have arrived. @throws OVERLOADED when the process, or the account, holds as much as it may. The room is given back
   * then, not only at the end of the call: of bodies that arrive side by side, some find room while others are refused.
   */
  add(bytes: number): void;
}

export interface BufferLimits {
  readonly mostBytes: number;
  readonly mostBytesOfAccount: number;
}

/** Room for twelve of the largest bodies, three of them of one account. */
const LIMITS: BufferLimits = { mostBytes: 268_435_456, mostBytesOfAccount: 67_108_864 };

/**
 * Counts the large bodies that the process holds in memory. A body of a call stays until the call ends, because the next
 * candidate may need it. A client that sends many large bodies at once is refused before the process runs out of memory.
 */
export class BufferedBytes {
  readonly #limits: BufferLimits;
  #bytes = 0;
  /** Bytes that have arrived or are announced, by account. */
  readonly #bytesOfAccounts = new Map<string, number>();

  constructor(limits = LIMITS) {
    this.#limits = limits;
  }

  /** Bytes that have arrived. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Opens the room of one body. An announced length counts at once against its own account, so that the account's first
   * bodies are taken whole instead of all being refused halfway. The process counts only what has arrived, because a
   * client can announce bytes that it never sends.
   * @throws OVERLOADED
   */
  open(owner: BodyOwner, announcedBytes = 0): BodyRoom {
    return new Room(this, owner, announcedBytes);
  }

  /** @throws OVERLOADED */
  take(bytes: number): void {
    if (this.#bytes + bytes > this.#limits.mostBytes) throw overloaded();
    this.#bytes += bytes;
  }

  /** @throws OVERLOADED */
  claim(accountId: string, bytes: number): void {
    const total = (this.#bytesOfAccounts.get(accountId) ?? 0) + bytes;
    if (total > this.#limits.mostBytesOfAccount) throw overloaded();
    this.#bytesOfAccounts.set(accountId, total);
  }

  /**
   * Takes room for bytes of an account that can do without; false when the process, or the account, holds half of what it may.
   * Clients that do not read can keep such room for long, and must not cause refusals of bodies.
   */
  tryHold(accountId: string, bytes: number): boolean {
    const { mostBytes, mostBytesOfAccount } = this.#limits;
    const ofAccount = (this.#bytesOfAccounts.get(accountId) ?? 0) + bytes;
    if (ofAccount > mostBytesOfAccount / 2 || this.#bytes + bytes > mostBytes / 2) return false;
    this.#bytesOfAccounts.set(accountId, ofAccount);
    this.#bytes += bytes;
    return true;
  }

  giveBack(accountId: string | undefined, claimed: number, taken: number): void {
    this.#bytes -= taken;
    if (accountId === undefined) return;
    const left = (this.#bytesOfAccounts.get(accountId) ?? 0) - claimed;
    if (left > 0) this.#bytesOfAccounts.set(accountId, left);
    else this.#bytesOfAccounts.delete(accountId);
  }
}

class Room implements BodyRoom {
  readonly #budget: BufferedBytes;
  readonly #owner: BodyOwner;
  #received = 0;
  #taken = 0;
  #claimed = 0;

  constructor(budget: BufferedBytes, owner: BodyOwner, announcedBytes: number) {
    this.#budget = budget;
    this.#owner = owner;
    if (announcedBytes > SMALL_BODY_BYTES) this.#claimUpTo(announcedBytes);
  }

  add(bytes: number): void {
    this.#received += bytes;
    if (this.#received <= SMALL_BODY_BYTES) return;
    try {
      this.#claimUpTo(this.#received);
      this.#budget.take(this.#received - this.#taken);
      this.#taken = this.#received;
    } catch (error) {
      this.#giveBack();
      throw error;
    }
  }

  /** The first claim arranges for the end, so that small bodies cost nothing. */
  #claimUpTo(bytes: number): void {
    if (bytes <= this.#claimed) return;
    const { accountId } = this.#owner;
    if (accountId !== undefined) this.#budget.claim(accountId, bytes - this.#claimed);
    if (this.#claimed === 0) this.#owner.onEnd(() => this.#giveBack());
    this.#claimed = bytes;
  }

  #giveBack(): void {
    this.#budget.giveBack(this.#owner.accountId, this.#claimed, this.#taken);
    this.#claimed = 0;
    this.#taken = 0;
  }
}

/** The most that one stream is read ahead of its client. */
const READ_AHEAD_AT_MOST_BYTES = 1_048_576;
/** Room for reading ahead is taken in steps of this size. */
const READ_AHEAD_STEP_BYTES = 65_536;

/** Room for what an upstream has sent and its client has not taken yet. A stream without a slow client takes none. */
export class ReadAhead {
  #held = 0;

  constructor(
    private readonly accountId: string,
    private readonly budget: BufferedBytes = BUFFERED,
  ) {}

  /** True where so many bytes may wait; false where the stream or the budget has no room for them. */
  holds(bytes: number): boolean {
    if (bytes <= this.#held) return true;
    const wanted = Math.ceil(bytes / READ_AHEAD_STEP_BYTES) * READ_AHEAD_STEP_BYTES;
    if (wanted > READ_AHEAD_AT_MOST_BYTES) return false;
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

function overloaded() {
  return fail('OVERLOADED', { retryAfterSeconds: 1 });
}

/** The one budget of the process: model calls and our own API count in it together. */
export const BUFFERED = new BufferedBytes();
