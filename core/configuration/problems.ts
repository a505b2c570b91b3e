import { nearestNames } from '../catalog/model-names';
import { pathText } from '../http/http';
import type { Problem } from '../settings';
import type { ConfigurationProblem, YamlFile } from './yaml-file';

/** A problem at a place of the parsed file. */
export type LocatedProblem = Pick<Problem, 'path' | 'message'>;

/** Returns the problems with file, line and column, and with the path before the message. */
export function locate(file: YamlFile, problems: readonly LocatedProblem[]): ConfigurationProblem[] {
  return problems.map(({ path, message }) => {
    const where = pathText(path);
    return { ...file.locate(path), message: where === '' ? message : `${where}: ${message}` };
  });
}

export function withHint(problem: Problem): LocatedProblem {
  return { path: problem.path, message: problem.message + hint(problem.unknown, problem.known ?? []) };
}

/** Returns a hint with the nearest known name, or with all of them when none is near. */
export function hint(unknown: string | undefined, known: readonly string[]): string {
  if (unknown === undefined || known.length === 0) return '';
  const [nearest] = nearestNames(unknown, known);
  return nearest === undefined ? `; known: ${known.join(', ')}` : `; did you mean "${nearest}"?`;
}
