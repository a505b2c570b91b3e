import { asArray, asObject, type JsonObject } from '../base/json-values';
import type { NamedKind, NameUse, Problem } from '../base/settings';
import { nearestNames, normaliseModelName } from '../catalog/model-names';
import { pathText } from '../http/http';
import type { ConfigurationProblem, YamlFile } from './yaml-file';

/** A problem at a path of the parsed file. */
export type LocatedProblem = Pick<Problem, 'path' | 'message'>;

/** Adds file, line and column to the problems. Each message begins with the path of the setting that has the problem. */
export function locate(file: YamlFile, problems: readonly LocatedProblem[]): ConfigurationProblem[] {
  return problems.map(({ path, message }) => {
    const where = pathText(path);
    return { ...file.locate(path), message: where === '' ? message : `${where}: ${message}` };
  });
}

export function withHint(problem: Problem): LocatedProblem {
  return { path: problem.path, message: problem.message + hint(problem.unknown, problem.known ?? []) };
}

/** Returns a hint with the known name that is spelled most similarly, or with all known names if none is similar. */
export function hint(unknown: string | undefined, known: readonly string[]): string {
  if (unknown === undefined || known.length === 0) return '';
  const [nearest] = nearestNames(unknown, known);
  return nearest === undefined ? `; known: ${known.join(', ')}` : `; did you mean "${nearest}"?`;
}

/** The names in a file, including those of parts with mistakes. A reference to a part with a mistake must not be reported as an unknown name. */
export interface DeclaredNames {
  /** The keys at the top level of the file. */
  readonly keys: readonly string[];
  readonly endpoints: readonly string[];
  /** The names of the endpoints that at least one pipeline uses. */
  readonly usedEndpoints: readonly unknown[];
  readonly upstreams: readonly string[];
  /** The names of the models and their aliases. */
  readonly models: readonly string[];
}

export function declaredNames(value: unknown): DeclaredNames {
  const file = membersOf(value);
  const models = Object.values(membersOf(file['serviceEndpoints'])).map((each) => membersOf(membersOf(each)['models']));
  return {
    keys: Object.keys(file),
    endpoints: Object.keys(membersOf(file['apiEndpoints'])),
    usedEndpoints: Object.values(membersOf(file['pipelines'])).flatMap((each) =>
      asArray(membersOf(each)['apiEndpoints']),
    ),
    upstreams: Object.keys(membersOf(file['serviceEndpoints'])),
    models: models.flatMap((each) => [...Object.keys(each), ...Object.values(each).flatMap(aliasesOf)]),
  };
}

/** Reports references to names that the file does not declare. `*` refers to all names and is always valid. */
export function unknownNames(uses: readonly NameUse[], written: DeclaredNames): LocatedProblem[] {
  return uses
    .filter(({ kind, name }) => name !== '*' && !isKnown(kind, name, written))
    .map(({ kind, name, path }) => ({
      path,
      message: `${kind} "${name}" does not exist${hint(name, kind === 'upstream' ? written.upstreams : written.models)}`,
    }));
}

function isKnown(kind: NamedKind, name: string, { upstreams, models }: DeclaredNames): boolean {
  if (kind === 'upstream') return upstreams.includes(name);
  return models.some((each) => normaliseModelName(each) === normaliseModelName(name));
}

function aliasesOf(model: unknown): string[] {
  return asArray(membersOf(model)['aliases']).filter((each) => typeof each === 'string');
}

function membersOf(value: unknown): JsonObject {
  return asObject(value) ?? {};
}
