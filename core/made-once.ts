/** Returns the map's value under a name; makes it if there is none. */
export function madeOnce<T>(all: Map<string, T>, name: string, make: (name: string) => T): T {
  const known = all.get(name);
  if (known !== undefined) return known;
  const made = make(name);
  all.set(name, made);
  return made;
}
