/** Adds many items to a list. `push(...items)` throws above about 100,000 of them, because each becomes an argument. */
export function append<T>(list: T[], items: Iterable<T>): void {
  for (const item of items) list.push(item);
}

/** Returns an object with the same names, whose values a function computes from the old ones. */
export function mapValues<T, U>(
  values: Readonly<Record<string, T>>,
  change: (value: T, name: string) => U,
): Record<string, U> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, change(value, name)]));
}

/** Returns the map's value under a name. If there is none, makes and stores it first. */
export function getOrInsert<T, K = string>(all: Map<K, T>, name: K, make: (name: K) => T): T {
  const known = all.get(name);
  if (known !== undefined) return known;
  const made = make(name);
  all.set(name, made);
  return made;
}
