/**
 * A set in one array, in no order, for objects that come and go with calls. Each object knows its place. A Set of such objects
 * makes its table anew again and again, and each old table points to the next one. Once one of them is in the old generation, all
 * objects that were ever in the set stay in memory until the next full collection.
 */
export class DenseSet<T extends { place: number }> {
  readonly #items: T[] = [];

  get size(): number {
    return this.#items.length;
  }

  add(item: T): void {
    item.place = this.#items.push(item) - 1;
  }

  /** Puts the last object in the place of this one. It ignores an object that is not in the set. */
  delete(item: T): void {
    if (this.#items[item.place] !== item) return;
    const last = this.#items.pop() as T;
    if (last === item) return;
    this.#items[item.place] = last;
    last.place = item.place;
  }

  /** Returns the objects as they are now. */
  all(): readonly T[] {
    return [...this.#items];
  }
}
