import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import {
  type Document,
  isMap,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  type Scalar,
  visit,
} from 'yaml';

import { errorCode } from '../base/safe-error';
import type { Nameable } from './nameable';

interface SourceLocation {
  readonly file: string;
  readonly line?: number | undefined;
  readonly column?: number | undefined;
}

/** One problem of the configuration: its file, line and column, and what to do. */
export interface ConfigurationProblem extends SourceLocation {
  readonly message: string;
}

/** All problems of the configuration, reported together in one error. */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError';
  /** @param number the number of the applied revision that has these problems; undefined for files */
  constructor(
    readonly problems: readonly ConfigurationProblem[],
    readonly number?: number,
  ) {
    super(problems.map(problemText).join('\n'));
  }
}

export function problemText(problem: ConfigurationProblem): string {
  const place = [problem.file, problem.line, problem.column].filter((part) => part !== undefined).join(':');
  return `${place}: ${problem.message}`;
}

export interface YamlFile {
  /** The unparsed text of the file. */
  readonly text: string;
  readonly value: unknown;
  /** The parsed value with its variables unreplaced. It contains no secrets, so it may be shown and stored. */
  readonly written: unknown;
  /** Returns the line and column of the value at a path, or of its nearest existing parent. */
  locate(path: readonly (string | number)[]): SourceLocation;
  /** The names of all variables in the file. */
  readonly variables: ReadonlySet<string>;
  /** The variables without a value (unset in the environment, or not permitted), with their paths. Values that contain such a variable are null. */
  readonly unset: readonly UnsetVariable[];
}

interface UnsetVariable {
  readonly path: readonly (string | number)[];
  readonly problem: ConfigurationProblem;
}

/** The most syntax errors that are reported, because later errors usually follow from the first. */
const MAX_SYNTAX_ERRORS = 3;

/** Reads a YAML file and requires a value for every variable. @throws ConfigurationError as `parseYamlFile`, and for unset variables */
export function readYamlFile(path: string, env: NodeJS.ProcessEnv): YamlFile {
  const file = parseYamlFile(path, env);
  if (file.unset.length > 0) throw new ConfigurationError(file.unset.map(({ problem }) => problem));
  return file;
}

/**
 * Reads a YAML file and replaces variables of the environment: `${NAME}` and `${NAME:-default}` inside a scalar. It replaces them
 * after parsing, so that a value never changes the structure and never appears in a syntax error. A plain scalar is then read
 * again as YAML (numbers, booleans); a quoted one stays text. `$${` is a literal `${`.
 * @param nameable refuses variables, even if they have a default; absent: all may be named
 * @param given replaces the text of the file
 * @throws ConfigurationError for a file that cannot be read, and YAML that cannot be parsed.
 */
export function parseYamlFile(
  path: string,
  env: NodeJS.ProcessEnv,
  nameable?: Pick<Nameable, 'variable'>,
  given?: string,
): YamlFile {
  const file = basename(path);
  const lines = new LineCounter();
  const text = given ?? readText(path, file);
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: true, prettyErrors: false });
  const placeAt = (offset: number): SourceLocation => ({
    file,
    line: lines.linePos(offset).line,
    column: lines.linePos(offset).col,
  });
  if (document.errors.length > 0) {
    // Only the first syntax errors are reported, because one unclosed bracket makes every later token an error.
    const first = document.errors.slice(0, MAX_SYNTAX_ERRORS);
    throw new ConfigurationError(first.map((error) => ({ ...placeAt(error.pos[0]), message: error.message })));
  }
  const variables = new Set<string>();
  const unset: UnsetVariable[] = [];
  const lost: ConfigurationProblem[] = [];
  const variable: { readonly scalar: Scalar; readonly text: string }[] = [];
  visit(document, {
    Scalar(role, scalar, ancestors) {
      if (typeof scalar.value !== 'string' || !scalar.value.includes('${')) return;
      const missing = new Map<string, string>();
      const substituted = substitute(scalar.value, env, (name, isMissing) => {
        variables.add(name);
        const message = nameable?.variable(name) ?? (isMissing ? whyMissing(name) : undefined);
        if (message === undefined) return true;
        missing.set(name, message);
        return false;
      });
      for (const message of missing.values()) {
        const problem = { ...placeAt(scalar.range?.[0] ?? 0), message };
        unset.push({ path: pathOf([...ancestors, scalar]), problem });
      }
      // A key has its variables replaced even in `written`. `value` and `written` must have the same keys, because keys are names.
      if (role !== 'key') variable.push({ scalar, text: scalar.value });
      scalar.value = scalar.type === 'PLAIN' ? readPlain(substituted) : substituted;
    },
    Alias(_, alias) {
      if (alias.resolve(document) !== undefined) return;
      lost.push({
        ...placeAt(alias.range?.[0] ?? 0),
        message: `the anchor &${alias.source} is not defined before this alias`,
      });
    },
  });
  if (lost.length > 0) throw new ConfigurationError([...lost, ...unset.map(({ problem }) => problem)]);
  const value = contentsOf(document, file);
  for (const each of variable) each.scalar.value = each.text;
  const written = contentsOf(document, file);
  return { text, value, written, locate: (path) => placeAt(offsetOf(document, path)), variables, unset };
}

function whyMissing(name: string): string {
  return `the environment variable ${name} is not set; set it, or give a default with \${${name}:-default}`;
}

/** The most uses of one YAML anchor, directly or within other anchors. The limit bounds the memory of an expanded file. */
const MAX_ALIASES = 10_000;

function contentsOf(document: Document, file: string): unknown {
  try {
    return document.toJS({ maxAliasCount: MAX_ALIASES });
  } catch (cause) {
    if (!(cause instanceof ReferenceError)) throw cause;
    const message = `has aliases that stand for more than ${MAX_ALIASES} values; write some of them out`;
    throw new ConfigurationError([{ file, line: undefined, column: undefined, message }]);
  }
}

/** Returns the keys and list indices on the path from the document to a YAML node. `nodes` are its ancestors and the node itself. */
function pathOf(nodes: readonly unknown[]): (string | number)[] {
  return nodes.flatMap((node, index): (string | number)[] => {
    if (isPair(node)) return [isScalar(node.key) ? String(node.key.value) : ''];
    return isSeq(node) ? [node.items.indexOf(nodes[index + 1])] : [];
  });
}

/** Returns the YAML value of a plain scalar: number, boolean, null or text. Text that would parse as more than one scalar stays text. */
function readPlain(text: string): unknown {
  if (text.trim() === '') return null;
  const { contents, errors } = parseDocument(text);
  if (errors.length > 0 || !isScalar(contents) || contents.type !== 'PLAIN') return text;
  if (contents.source !== text.trim()) return text;
  const { value } = contents;
  // A number with too many digits for JavaScript stays text, because it is a name or an API key and would lose its last digits.
  return typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value) ? text : value;
}

function readText(path: string, file: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    const message = `cannot be read (${errorCode(cause, String(cause))}); TOLLGATE_CONFIG_DIR names the folder it is looked for in`;
    throw new ConfigurationError([{ file, line: undefined, column: undefined, message }]);
  }
}

/** @param isFine decides whether a variable may be replaced; gets the variable's name, and whether it has neither a value nor a default */
function substitute(
  text: string,
  env: NodeJS.ProcessEnv,
  isFine: (name: string, isMissing: boolean) => boolean,
): string {
  return text.replace(
    /\$?\$\{([A-Za-z0-9_]+)(?::-([^}]*))?\}/g,
    (whole, name: string, fallback: string | undefined) => {
      if (whole.startsWith('$$')) return whole.slice(1);
      const value = env[name];
      if (!isFine(name, (value ?? fallback) === undefined)) return '';
      return value !== undefined && value !== '' ? value : (fallback ?? '');
    },
  );
}

/** Returns the offset of the key of the value at a path, because a problem is reported at the key; without a key, the offset of the value. */
function offsetOf(document: Document, path: readonly (string | number)[]): number {
  let node: unknown = document.contents;
  let offset = startOf(node);
  for (const part of path) {
    if (isMap(node)) {
      const pair = node.items.find(
        (item) => isPair(item) && (isScalar(item.key) ? String(item.key.value) : undefined) === String(part),
      );
      if (pair === undefined) return offset;
      offset = startOf(pair.key);
      node = pair.value;
    } else {
      const item: unknown =
        typeof part === 'number' && node !== null && typeof node === 'object' && 'items' in node
          ? (node.items as unknown[])[part]
          : undefined;
      if (item === undefined) return offset;
      offset = startOf(item);
      node = item;
    }
  }
  return offset;
}

function startOf(node: unknown): number {
  return (node as Node | null | undefined)?.range?.[0] ?? 0;
}
