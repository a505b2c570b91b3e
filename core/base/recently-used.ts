/**
 * Caches values by name. It keeps at least the values of the `atLeast` most recently used names, and at most twice as many. New values
 * enter the newer of two maps. Once the newer map is full, it replaces the older one.
 *
 * A single Map is slower, because deleting single entries, or moving them to the end at each use, makes the Map rebuild its table
 * repeatedly. Finding its first entry then requires reading all deleted entries.
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
