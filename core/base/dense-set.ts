/**
 * An unordered set in one array, for objects that live as long as a call. `place` is an object's index in the array.
 *
 * A `Set` of short-lived objects rebuilds its table again and again, and each old table points to the next one. Once the garbage collector
 * has moved one table to its old generation, the later tables and all their objects stay in memory. Only the next full collection frees
 * them.
 */
export class DenseSet<T extends { place: number }> {
  readonly #items: T[] = [];

  get size(): number {
    return this.#items.length;
  }

  add(item: T): void {
    item.place = this.#items.push(item) - 1;
  }

  /** Moves the last object to the index of the deleted one. Ignores an object that is not in the set. */
  delete(item: T): void {
    if (this.#items[item.place] !== item) return;
    const last = this.#items.pop() as T;
    if (last === item) return;
    this.#items[item.place] = last;
    last.place = item.place;
  }

  /** Returns a copy of the list of objects. */
  all(): readonly T[] {
    return [...this.#items];
  }
}
