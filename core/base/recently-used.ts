/**
 * Remembers values by name: those of at least the last `atLeast` names that were used, and of at most twice as many. There are two
 * generations, and a full one replaces the older one. A Map whose entries are deleted one by one, or moved to its end at each use,
 * makes its table anew again and again, and a search for its first entry reads all deleted ones.
 */
export class RecentlyUsed<V> {
  #newer = new Map<string, V>();
  #older: ReadonlyMap<string, V> = new Map();

  constructor(private readonly atLeast: number) {}

  get(name: string): V | undefined {
    const value = this.#newer.get(name);
    if (value !== undefined) return value;
    const older = this.#older.get(name);
    return older === undefined ? undefined : this.set(name, older);
  }

  /** Returns the value. */
  set(name: string, value: V): V {
    if (this.#newer.size >= this.atLeast && !this.#newer.has(name)) {
      this.#older = this.#newer;
      this.#newer = new Map();
    }
    this.#newer.set(name, value);
    return value;
  }
}
