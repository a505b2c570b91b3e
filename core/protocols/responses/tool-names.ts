import { asArray, asObject, asText, type JsonObject } from '../../base/json-values';

/** The name of a tool as the client knows it. Other dialects know only functions, and no namespaces. */
export interface OwnName {
  readonly name: string;
  readonly namespace?: string | undefined;
  /** Whether a call of this tool is a search for tools, which the client runs. */
  readonly isSearch?: boolean;
}

/** The name that the tool search has in other dialects. */
export const SEARCH = 'tool_search';

/** Returns a tool's name in other dialects: namespace, `__` and name. Some clients already end a namespace with `__`. */
export function flatName(name: string, namespace: string | undefined): string {
  if (namespace === undefined || namespace === '') return name;
  return namespace.endsWith('__') ? namespace + name : `${namespace}__${name}`;
}

/** Returns the client's names of namespaced tools and of the tool search, by their names in other dialects. */
export function ownNames(request: JsonObject): ReadonlyMap<string, OwnName> {
  const names = new Map<string, OwnName>();
  for (const list of [request['tools'], ...asArray(request['input']).map(toolsIn)])
    for (const given of asArray(list)) {
      const tool = asObject(given) ?? {};
      if (tool['type'] === SEARCH) names.set(SEARCH, { name: SEARCH, isSearch: true });
      if (tool['type'] === 'namespace') addInner(names, tool);
    }
  return names;
}

/** Returns the tools that an input item contains: results of a tool search, or additional tools. */
function toolsIn(given: unknown): unknown {
  return asObject(given)?.['tools'];
}

function addInner(names: Map<string, OwnName>, tool: JsonObject): void {
  const namespace = asText(tool['name']);
  for (const each of asArray(tool['tools'])) {
    const name = asText(asObject(each)?.['name']);
    names.set(flatName(name, namespace), { name, namespace });
  }
}
