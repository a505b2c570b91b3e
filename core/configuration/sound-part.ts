import type { Check, NameUse, Problem } from '../settings';

type Path = readonly (string | number)[];

/** What of a value can be used although other parts of it are wrong, so that one mistake does not hide the next. */
export interface SoundPart<T> {
  readonly problems: readonly Problem[];
  /** Without the parts that are wrong; top-level keys that are wrong altogether are not there. */
  readonly value: Partial<T>;
  /** The names that stand in it. */
  readonly names: readonly NameUse[];
}

/** Each round takes away at least one part, so that this is never reached by a file a person wrote. */
const ROUNDS_AT_MOST = 1_000;

/**
 * Finds every problem of a value, and takes away what has one until the rest has none: a wrong value alone, where its object
 * can do without it.
 * @param check requires nothing at the top level
 * @param checkRest the same, but lets maps be empty
 * @param lost places whose values are not known; they are taken away without a word
 */
export function soundPart<T>(
  check: Check<T>,
  checkRest: Check<T>,
  value: unknown,
  lost: readonly Path[],
): SoundPart<T> {
  const rest = structuredClone(value);
  for (const path of lost) takeAway(rest, path);
  let problems: readonly Problem[] | undefined;
  for (let round = 0; round < ROUNDS_AT_MOST; round += 1) {
    const names: NameUse[] = [];
    const checked = (round === 0 ? check : checkRest)(rest, names);
    if ('value' in checked) return { problems: problems ?? [], value: checked.value as Partial<T>, names };
    // What is wrong later is so because something was taken away.
    problems ??= checked.problems.filter((problem) => !isWithout(problem, lost));
    if (checked.problems.some(({ path }) => path.length === 0)) break;
    for (const { path } of checked.problems) takeAway(rest, path);
  }
  return { problems: problems ?? [], value: {}, names: [] };
}

/** The schema, but maps of named things may be empty: one of them that is wrong does not take the others' parent away. */
export function withEmptyMaps(schema: unknown): object {
  return JSON.parse(JSON.stringify(schema), (_, part: Record<string, unknown> | null) => {
    if (part?.['minProperties'] === undefined || part['maxProperties'] !== undefined) return part;
    const { minProperties: __, ...rest } = part;
    return rest;
  }) as object;
}

/** Something is missing because its value is not known. */
function isWithout({ path, missing }: Problem, lost: readonly Path[]): boolean {
  return lost.some((each) => {
    const inside = path.every((part, index) => part === each[index]);
    return inside && (missing === undefined || each[path.length] === missing) && each.length > path.length;
  });
}

/** An element of a list is not taken out alone: the ones behind it would move. */
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

function memberOf(value: unknown, part: string | number): unknown {
  return value === null || typeof value !== 'object' ? undefined : (value as Record<string, unknown>)[String(part)];
}
