/** A bounded queue that serves accounts in turn: an account with many waiting items delays only its own. */
export class FairQueue<T> {
  /** The waiting items by account, in the order in which accounts are served next. */
  readonly #byAccount = new Map<string, T[]>();
  #length = 0;

  constructor(private readonly maxLength: number) {}

  get length(): number {
    return this.#length;
  }

  /** Adds an item behind the account's other items. Returns false if the queue is full. */
  push(accountId: string, item: T): boolean {
    if (this.#length >= this.maxLength) return false;
    const items = this.#byAccount.get(accountId);
    if (items === undefined) this.#byAccount.set(accountId, [item]);
    else items.push(item);
    this.#length += 1;
    return true;
  }

  /** Removes and returns the oldest item of the account whose turn it is; undefined if the queue is empty. That account is then the last in turn. */
  shift(): T | undefined {
    const [turn] = this.#byAccount;
    if (turn === undefined) return undefined;
    const [accountId, [item, ...rest]] = turn;
    this.#byAccount.delete(accountId);
    if (rest.length > 0) this.#byAccount.set(accountId, rest);
    this.#length -= 1;
    return item;
  }

  /** Removes an item that need not wait any more. Ignores an item that is not in the queue. */
  remove(accountId: string, item: T): void {
    const items = this.#byAccount.get(accountId) ?? [];
    const at = items.indexOf(item);
    if (at === -1) return;
    items.splice(at, 1);
    if (items.length === 0) this.#byAccount.delete(accountId);
    this.#length -= 1;
  }
}
