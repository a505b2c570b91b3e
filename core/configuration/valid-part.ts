import { memberOf } from '../base/json-values';
import type { Check, NameUse, Problem } from '../base/settings';

type Path = readonly (string | number)[];

/** The valid part of a value that has mistakes elsewhere. It can be checked further, so that one mistake does not hide the next. */
interface SoundPart<T> {
  readonly problems: readonly Problem[];
  /** The value without its invalid parts. A top-level key is absent if it is invalid as a whole. */
  readonly value: Partial<T>;
  /** The places in the value that refer to something by name, such as a pipeline that names an endpoint. */
  readonly names: readonly NameUse[];
}

/** The most rounds of checking. Each removes at least one part, so a hand-written file never needs this many. */
const MAX_ROUNDS = 1_000;

/**
 * Finds every problem of a value, and removes invalid parts until the rest has no problem. An invalid member is removed alone if it is
 * optional. If it is required, the object that contains it becomes invalid, too.
 * @param check the check by the schema, which requires no top-level key
 * @param checkRest the same check as `check`, but with maps that may be empty
 * @param lost paths with unknown values, which are removed without a problem
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
    // Only the problems of the first round are reported, because later rounds find only problems that the removal of invalid parts causes.
    problems ??= checked.problems.filter((problem) => !isWithout(problem, lost));
    if (checked.problems.some(({ path }) => path.length === 0)) break;
    for (const { path } of checked.problems) takeAway(rest, path);
  }
  return { problems: problems ?? [], value: {}, names: [] };
}

/** Returns the schema without its rule that maps must not be empty. A map whose only entry was invalid and was removed then stays valid. */
export function withEmptyMaps(schema: unknown): object {
  return JSON.parse(JSON.stringify(schema), (_, part: Record<string, unknown> | null) => {
    if (part?.['minProperties'] === undefined || part['maxProperties'] !== undefined) return part;
    const { minProperties: __, ...rest } = part;
    return rest;
  }) as object;
}

/** Returns whether a problem reports a value as missing only because it could not be read. `lost` has the paths of such values. */
function isWithout({ path, missing }: Problem, lost: readonly Path[]): boolean {
  return lost.some((each) => {
    const inside = path.every((part, index) => part === each[index]);
    return inside && (missing === undefined || each[path.length] === missing) && each.length > path.length;
  });
}

/** Removes the part at a path. If it is an element of a list, its nearest parent in an object is removed, because the later elements would shift. */
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
