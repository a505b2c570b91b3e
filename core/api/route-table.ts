import { getOrInsert } from '../base/collections';

/** The result of matching a path: the route and its `{name}` values, or the allowed methods if only the method differs. */
type RouteMatch<T> =
  | { readonly route: T; readonly params: Readonly<Record<string, string>> }
  | { readonly allow: readonly string[] };

interface Node<T> {
  readonly literals: Map<string, Node<T>>;
  /** The child node for `{name}`, which matches one segment that is not empty. */
  parameter: Node<T> | undefined;
  /** The child node for `{name...}`, which matches the rest of the path. The rest may be empty. */
  rest: Node<T> | undefined;
  readonly routes: Map<string, Entry<T>>;
}

interface Entry<T> {
  readonly route: T;
  readonly path: string;
  readonly names: readonly string[];
}

interface Leaf<T> {
  readonly routes: ReadonlyMap<string, Entry<T>>;
  readonly values: readonly string[];
}

const PARAMETER = /^\{([A-Za-z][A-Za-z0-9]*)(\.\.\.)?\}$/;

/**
 * Finds a route by method and path. A literal segment takes precedence over `{name}`, and `{name}` over `{name...}`, regardless of
 * registration order. Segments are compared without decoding; parameter values are percent-decoded.
 */
export class RouteTable<T> {
  readonly #root: Node<T> = newNode();

  add(method: string, path: string, route: T): void {
    const names: string[] = [];
    let node = this.#root;
    for (const segment of segmentsOf(path)) {
      const [, name, rest] = PARAMETER.exec(segment) ?? [];
      if (name === undefined) {
        node = getOrInsert(node.literals, segment, () => newNode<T>());
      } else {
        names.push(name);
        if (rest === undefined) node = node.parameter ??= newNode();
        else node = node.rest ??= newNode();
      }
    }
    const other = node.routes.get(method);
    if (other !== undefined)
      throw new Error(`${method} ${path} conflicts with the existing route ${method} ${other.path}`);
    node.routes.set(method, { route, path, names });
  }

  /** Returns undefined if no route has this path. A route for GET also serves HEAD, and `*` serves every method. */
  find(method: string, path: string): RouteMatch<T> | undefined {
    const leaves = this.#leaves(path);
    if (leaves.length === 0) return undefined;
    for (const { routes, values } of leaves) {
      const entry = routes.get(method) ?? (method === 'HEAD' ? routes.get('GET') : undefined) ?? routes.get('*');
      if (entry !== undefined) return { route: entry.route, params: nameValues(entry.names, values) };
    }
    return { allow: allowed(leaves) };
  }

  methodsOf(path: string): readonly string[] {
    return allowed(this.#leaves(path));
  }

  /** Returns all nodes of the route tree that match the path, the most specific node first. */
  #leaves(path: string): Leaf<T>[] {
    const segments = segmentsOf(path);
    const decoded = segments.map(decode);
    const leaves: Leaf<T>[] = [];
    const values: string[] = [];
    const walk = (node: Node<T>, index: number): void => {
      const segment = segments[index];
      if (segment === undefined) {
        if (node.routes.size > 0) leaves.push({ routes: node.routes, values: [...values] });
        return;
      }
      const literal = node.literals.get(segment);
      if (literal !== undefined) walk(literal, index + 1);
      const value = decoded[index];
      if (node.parameter !== undefined && value !== undefined && value !== '') {
        values.push(value);
        walk(node.parameter, index + 1);
        values.pop();
      }
      const left = decoded.slice(index);
      if (node.rest !== undefined && left.every((each) => each !== undefined)) {
        leaves.push({ routes: node.rest.routes, values: [...values, left.join('/')] });
      }
    };
    walk(this.#root, 0);
    return leaves;
  }
}

function newNode<T>(): Node<T> {
  return { literals: new Map(), parameter: undefined, rest: undefined, routes: new Map() };
}

function segmentsOf(path: string): string[] {
  return path.split('/').slice(1);
}

/** Decodes a segment. Returns undefined for invalid percent-encoding, because such a segment cannot be the value of a `{name}`. */
function decode(segment: string): string | undefined {
  if (!segment.includes('%')) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

function nameValues(names: readonly string[], values: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(names.map((name, index) => [name, values[index] ?? '']));
}

function allowed<T>(leaves: readonly Leaf<T>[]): readonly string[] {
  const methods = new Set(leaves.flatMap(({ routes }) => [...routes.keys()]));
  if (methods.has('GET')) methods.add('HEAD');
  return [...methods].sort();
}
