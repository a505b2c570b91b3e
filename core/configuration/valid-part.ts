import { memberOf } from '../base/json-values';
import type { Check, NameUse, Problem } from '../base/settings';

type Path = readonly (string | number)[];

/** The part of a value that is usable although other parts have mistakes, so that one mistake does not hide the next. */
interface SoundPart<T> {
  readonly problems: readonly Problem[];
  /** The value without its wrong parts. A top-level key that is wrong as a whole is absent. */
  readonly value: Partial<T>;
  /** The uses of names in the value. */
  readonly names: readonly NameUse[];
}

/** The most rounds. Each round removes at least one part, so that a hand-written file never reaches this number. */
const MAX_ROUNDS = 1_000;

/**
 * Finds every problem of a value, and removes wrong parts until the rest has no problem. It removes a wrong value alone if its
 * object can do without it.
 * @param check requires nothing at the top level
 * @param checkRest as `check`, but lets maps be empty
 * @param lost places with unknown values, which are removed without a problem
 */
export function withoutInvalidParts<T>(
  check: Check<T>,
  checkRest: Check<T>,
  value: unknown,
  lost: readonly Path[],
): SoundPart<T> {
  const rest = structuredClone(value);
  for (const path of lost) takeAway(rest, path);
  let problems: readonly Problem[] | undefined;
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const names: NameUse[] = [];
    const checked = (round === 0 ? check : checkRest)(rest, names);
    if ('value' in checked) return { problems: problems ?? [], value: checked.value as Partial<T>, names };
    // Only the first round's problems count, because later ones come from the removals.
    problems ??= checked.problems.filter((problem) => !isWithout(problem, lost));
    if (checked.problems.some(({ path }) => path.length === 0)) break;
    for (const { path } of checked.problems) takeAway(rest, path);
  }
  return { problems: problems ?? [], value: {}, names: [] };
}

/** Returns the schema with maps that may be empty, because the removal of a wrong entry must not remove the whole map. */
export function withEmptyMaps(schema: unknown): object {
  return JSON.parse(JSON.stringify(schema), (_, part: Record<string, unknown> | null) => {
    if (part?.['minProperties'] === undefined || part['maxProperties'] !== undefined) return part;
    const { minProperties: __, ...rest } = part;
    return rest;
  }) as object;
}

/** Whether a problem only reports a value that is missing because it is unknown. */
function isWithout({ path, missing }: Problem, lost: readonly Path[]): boolean {
  return lost.some((each) => {
    const inside = path.every((part, index) => part === each[index]);
    return inside && (missing === undefined || each[path.length] === missing) && each.length > path.length;
  });
}

/** Removes the part at a path. An element of a list is not removed alone, because the elements after it would move. */
function takeAway(value: unknown, path: Path): void {
  const parents: unknown[] = [value];
  for (const part of path.slice(0, -1)) parents.push(memberOf(parents.at(-1), part));
  for (let depth = path.length - 1; depth >= 0; depth -= 1) {
    const parent = parents[depth];
    if (parent === null || typeof parent !== 'object' || Array.isArray(parent)) continue;
    delete (parent as Record<string, unknown>)[String(path[depth])];
    return;
  }
}
