import { asObject, type JsonObject } from '../base/json-values';

/** The maximum number of paths that are reported for unknown numbers. All items of a list share one path, such as `iterations.input_tokens`. */
const MAX_PATHS = 20;

/** Returns the paths of numbers in a usage report that `known` lacks; undefined if there are none. Vendors may charge for new numbers. Ignores zeros. */
export function unknownNumbers(report: JsonObject, known: ReadonlySet<string>): readonly string[] | undefined {
  const found: string[] = [];
  look(report, '', known, found);
  return found.length === 0 ? undefined : [...new Set(found)];
}

function look(value: unknown, path: string, known: ReadonlySet<string>, found: string[]): void {
  if (found.length === MAX_PATHS) return;
  if (typeof value === 'number') {
    if (value !== 0 && !known.has(path)) found.push(path);
  } else if (Array.isArray(value)) {
    for (const each of value) look(each, path, known, found);
  } else {
    const object = asObject(value);
    for (const name in object) {
      const member = object[name];
      // Zeros and texts are skipped here, before their path is built.
      if (member === 0 || (typeof member !== 'number' && typeof member !== 'object')) continue;
      look(member, path === '' ? name : `${path}.${name}`, known, found);
    }
  }
}
