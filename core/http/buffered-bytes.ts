import { fail } from '../errors';

/** Bodies up to this size are not counted. Most bodies are smaller, and the connection limits bound them. */
export const SMALL_BODY_BYTES = 65_536;

/** The account that a body counts against, and when the body is released. */
export interface BodyOwner {
  /** Undefined for requests of operators. */
  readonly accountId?: string;
  onEnd(work: () => void): void;
}

export interface BodyRoom {
  /**
   * Counts received bytes.
   * @throws OVERLOADED if the process or the account holds its maximum. The space is released at once and not only at the end of
   * the call, so that some of several simultaneous bodies are accepted.
   */
  add(bytes: number): void;
}

export interface BufferLimits {
  readonly mostBytes: number;
  readonly mostBytesOfAccount: number;
}

/** Twelve bodies of the largest size fit into the process, three of them of one account. */
const LIMITS: BufferLimits = { mostBytes: 268_435_456, mostBytesOfAccount: 67_108_864 };

/**
 * Counts the large bodies that the process holds in memory. The body of a call stays until the call ends, because the next
 * candidate may need it. Above the limits, further large bodies are rejected before the process runs out of memory.
 */
export class BufferedBytes {
  readonly #limits: BufferLimits;
  #bytes = 0;
  /** Received or announced bytes by account. */
  readonly #bytesOfAccounts = new Map<string, number>();

  constructor(limits = LIMITS) {
    this.#limits = limits;
  }

  /** Received bytes of all accounts. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Reserves space for a body. The announced length counts at once against its account, so that the account's first bodies are
   * accepted completely instead of all being rejected halfway. The process counts only received bytes, because a client can
   * announce bytes and never send them.
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
   * Reserves space that an account can do without. Returns false if the process or the account already holds half of its maximum,
   * because clients that do not read can occupy this space for long and must not cause rejected bodies.
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

  /** The first reservation registers the release, so that small bodies cost nothing. */
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

/** The most bytes that one stream is read ahead of its client. */
const READ_AHEAD_AT_MOST_BYTES = 1_048_576;
/** Space for reading ahead is reserved in steps of this size. */
const READ_AHEAD_STEP_BYTES = 65_536;

/** Reserves space for bytes that an upstream has sent and the client has not read yet. A stream with a fast client needs none. */
export class ReadAhead {
  #held = 0;

  constructor(
    private readonly accountId: string,
    private readonly budget: BufferedBytes = BUFFERED,
  ) {}

  /** Returns whether this many bytes may wait. It is false above the limit of the stream or of the process. */
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

/** The only budget of the process. Model calls and our own API share it. */
export const BUFFERED = new BufferedBytes();
