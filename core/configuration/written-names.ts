import { normaliseModelName } from '../catalog/model-names';
import type { NamedKind, NameUse } from '../settings';
import { hint, type LocatedProblem } from './problems';

/**
 * The names in a file, including those of parts with mistakes. A name must not be reported as unknown because the part that it
 * names has a mistake.
 */
export interface WrittenNames {
  /** The keys at the top level. */
  readonly keys: readonly string[];
  readonly endpoints: readonly string[];
  /** The endpoints that any pipeline uses. */
  readonly usedEndpoints: readonly unknown[];
  readonly upstreams: readonly string[];
  /** The models and their aliases. */
  readonly models: readonly string[];
}

export function namesWritten(value: unknown): WrittenNames {
  const file = asObject(value);
  const models = Object.values(asObject(file['serviceEndpoints'])).map((each) => asObject(asObject(each)['models']));
  return {
    keys: Object.keys(file),
    endpoints: Object.keys(asObject(file['apiEndpoints'])),
    usedEndpoints: Object.values(asObject(file['pipelines'])).flatMap((each) =>
      asArray(asObject(each)['apiEndpoints']),
    ),
    upstreams: Object.keys(asObject(file['serviceEndpoints'])),
    models: models.flatMap((each) => [...Object.keys(each), ...Object.values(each).flatMap(aliasesOf)]),
  };
}

/** Reports the names that the file does not have. `*` stands for all. */
export function unknownNames(uses: readonly NameUse[], written: WrittenNames): LocatedProblem[] {
  return uses
    .filter(({ kind, name }) => name !== '*' && !isKnown(kind, name, written))
    .map(({ kind, name, path }) => ({
      path,
      message: `${kind} "${name}" does not exist${hint(name, kind === 'upstream' ? written.upstreams : written.models)}`,
    }));
}

function isKnown(kind: NamedKind, name: string, { upstreams, models }: WrittenNames): boolean {
  if (kind === 'upstream') return upstreams.includes(name);
  return models.some((each) => normaliseModelName(each) === normaliseModelName(name));
}

function aliasesOf(model: unknown): string[] {
  return asArray(asObject(model)['aliases']).filter((each) => typeof each === 'string');
}

function asObject(value: unknown): Readonly<Record<string, unknown>> {
  return value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

function asArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
