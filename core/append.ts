/** Adds many items to a list. `push(...items)` throws above about 100,000 of them, because each becomes an argument. */
export function append<T>(list: T[], items: Iterable<T>): void {
  for (const item of items) list.push(item);
}
