/** Returns a model name without insignificant differences: case, vendor prefix, `.` and `_`, date suffix and `-latest`. */
export function normaliseModelName(name: string): string {
  return name
    .slice(name.lastIndexOf('/') + 1)
    .toLowerCase()
    .replace(/[._]/g, '-')
    .replace(/-latest$/, '')
    .replace(/-(\d{8}|\d{4}-\d{2}-\d{2})$/, '');
}

/** Shortens a name for an error message, because a client may send a name of a megabyte. */
export function shortenName(name: string): string {
  return name.length > 100 ? `${name.slice(0, 100)}…` : name;
}

/** Returns at most three known names that are similar to a misspelled one, nearest first; empty if none is similar. */
export function nearestNames(name: string, known: Iterable<string>): string[] {
  const limit = Math.max(2, Math.floor(name.length / 3));
  return [...new Set(known)]
    .map((candidate) => ({ candidate, distance: editDistance(name.toLowerCase(), candidate.toLowerCase(), limit) }))
    .filter(({ distance }) => distance <= limit)
    .sort((a, b) => a.distance - b.distance || (a.candidate < b.candidate ? -1 : 1))
    .slice(0, 3)
    .map(({ candidate }) => candidate);
}

/** Returns the Levenshtein distance, or any number above `limit` when the distance exceeds it. */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) > limit) return limit + 1;
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let row = 1; row <= a.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= b.length; column += 1) {
      const substitution = (previous[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1);
      current.push(Math.min(substitution, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1));
    }
    previous = current;
  }
  return previous[b.length] ?? limit + 1;
}
