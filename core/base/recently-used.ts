/**
 * Caches values by name: at least those of the `atLeast` names used last, and at most twice as many. There are two generations, and a full
 * newer one replaces the older one. A single Map is slower. If entries are deleted one by one, or moved to its end at each use, it rebuilds
 * its table again and again. A search for its first entry then reads all deleted ones.
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

  /** Stores a value and returns it. */
  set(name: string, value: V): V {
    if (this.#newer.size >= this.atLeast && !this.#newer.has(name)) {
      this.#older = this.#newer;
      this.#newer = new Map();
    }
    this.#newer.set(name, value);
    return value;
  }
}
