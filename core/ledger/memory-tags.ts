import { MAX_TAG_SCOPES, type SetScopeRequest, TAG_IDLE_MS, type TagReader, type TagState } from './ledger';
import { nameOfTag, type SpendingLimits, tagOf, tagScope } from './scopes';

/** How many tags with a limit a call may have. */
const MAX_TAGS = 2;

/** When the values that must stay for now are looked at again. */
const LOOK_MS = 10_000;

export interface TagSettings {
  /** Reads what Postgres has of values that the ledger does not count. */
  readonly readTags?: TagReader;
  /** After how many ms without a use a value leaves the ledger. */
  readonly idleMs?: number;
  /** How many values of one account the ledger counts. */
  readonly most?: number;
}

export const NO_TAG_READER: TagReader = async () => {
  throw new Error('this ledger was opened without a reader of tags');
};

/** The limits of a name; undefined if neither the name nor one of its values has a limit. */
interface TagName {
  readonly rev: number;
  readonly limits: SpendingLimits | undefined;
}

/** What the ledger knows of the tags of one account. */
export interface AccountTags {
  readonly names: Map<string, TagName>;
  /** Counts what makes wrong what was read of values from Postgres: changed limits, and values that left. */
  rev: number;
  /** The scopes of the values that the ledger counts, with the time of their last use. */
  readonly usedAt: Map<string, number>;
  /** How many holds are open, by scope. */
  readonly open: Map<string, number>;
  /** When values are looked for that may leave; undefined while there is none. */
  lookAt: number | undefined;
}

/** Whether the limits of a tag were set, and whether calls with its name count only from now on. */
export interface SetTag {
  readonly isSet: boolean;
  readonly isNew: boolean;
}

/** What the ledger asks Postgres for, and the moment for which the answer holds. */
export interface UnknownTags {
  readonly outcome: 'unknown_tags';
  readonly moment: number;
  readonly scopes: readonly string[];
}

/** What Postgres has answered, and for which moment. */
export interface KnownTags {
  readonly moment: number;
  readonly tags: readonly TagState[];
}

/** The tags of accounts in the reference model. `tags.lua`, `set-tag.lua` and `leave.lua` do the same for Redis. */
export class MemoryTags {
  readonly #accounts = new Map<string, AccountTags>();
  readonly #idleMs: number;
  readonly #most: number;

  constructor({ idleMs = TAG_IDLE_MS, most = MAX_TAG_SCOPES }: TagSettings) {
    this.#idleMs = idleMs;
    this.#most = most;
  }

  of(accountId: string): AccountTags {
    let tags = this.#accounts.get(accountId);
    if (tags === undefined) {
      tags = { names: new Map(), rev: 0, usedAt: new Map(), open: new Map(), lookAt: undefined };
      this.#accounts.set(accountId, tags);
    }
    return tags;
  }

  /** Returns the scopes of those tags of a call whose name has a limit; undefined if there are too many. */
  limited(accountId: string, tags: string | undefined): readonly string[] | undefined {
    const names = this.#accounts.get(accountId)?.names;
    if (tags === undefined || names === undefined) return [];
    const found = tags.split(' ').filter((tag) => names.get(nameOfTag(tag))?.limits !== undefined);
    return found.length > MAX_TAGS ? undefined : found.map((tag) => tagScope(accountId, tag));
  }

  /** Returns the limits that a name has for each of its values; undefined if it has no limit. */
  limitsOfName(accountId: string, scope: string): SpendingLimits | undefined {
    return this.#accounts.get(accountId)?.names.get(nameOfTag(tagOf(scope) ?? ''))?.limits;
  }

  /** Returns the names that have a limit, separated by spaces. */
  namesOf(accountId: string): string {
    const names = [...(this.#accounts.get(accountId)?.names ?? [])];
    return names.flatMap(([name, { limits }]) => (limits === undefined ? [] : [name])).join(' ');
  }

  /** Returns whether the account counts so many values that these cannot be added. */
  isFull(accountId: string, unknown: readonly string[]): boolean {
    return this.of(accountId).usedAt.size + unknown.length > this.#most;
  }

  /** Notes a use of the tags of a chain: by one more or one less open hold, or by neither. */
  use(accountId: string, scopes: readonly string[], opened: 1 | -1, now: number): void {
    if (scopes.length === 0) return;
    const { usedAt, open } = this.of(accountId);
    for (const scope of scopes) {
      open.set(scope, (open.get(scope) ?? 0) + opened);
      usedAt.set(scope, Math.max(now, usedAt.get(scope) ?? 0));
    }
  }

  /** Sets the limits of a name, unless they are newer. */
  setName({ accountId, scope, rev, limits, isLimited = false }: SetScopeRequest): SetTag {
    const { names } = this.of(accountId);
    const name = nameOfTag(tagOf(scope) ?? '');
    const before = names.get(name);
    if (before !== undefined && before.rev > rev) return { isSet: false, isNew: false };
    names.set(name, { rev, limits: isLimited ? limits : undefined });
    return { isSet: true, isNew: isLimited && before?.limits === undefined };
  }

  /** Returns the values that may leave: those not used for a while, without open holds, and without a charge since `waitingFromMs`. */
  leave(accountId: string, now: number, waitingFromMs: number): readonly string[] {
    const tags = this.of(accountId);
    const idle = [...tags.usedAt].filter(([, at]) => at <= now - this.#idleMs);
    const left: string[] = [];
    for (const [scope, at] of idle) {
      if ((tags.open.get(scope) ?? 0) > 0) tags.usedAt.set(scope, now);
      else if (at < waitingFromMs) left.push(scope);
    }
    for (const scope of left) {
      tags.usedAt.delete(scope);
      tags.open.delete(scope);
    }
    if (left.length > 0) tags.rev += 1;
    let oldest = Number.POSITIVE_INFINITY;
    for (const at of tags.usedAt.values()) oldest = Math.min(oldest, at);
    tags.lookAt = tags.usedAt.size === 0 ? undefined : Math.max(oldest + this.#idleMs, now + LOOK_MS);
    return left;
  }

  /** Forgets the values of an account, and the limits of its names. Returns the scopes. */
  clear(accountId: string): readonly string[] {
    const tags = this.of(accountId);
    const scopes = [...tags.usedAt.keys()];
    tags.names.clear();
    tags.usedAt.clear();
    tags.open.clear();
    tags.lookAt = undefined;
    tags.rev += 1;
    return scopes;
  }

  /** Returns the accounts whose values are to be looked at. */
  due(now: number): readonly string[] {
    return [...this.#accounts].flatMap(([accountId, { lookAt }]) =>
      lookAt !== undefined && lookAt <= now ? [accountId] : [],
    );
  }
}
