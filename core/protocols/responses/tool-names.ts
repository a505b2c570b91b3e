import { asArray, asObject, asText, type JsonObject } from '../../base/json-values';

/** A tool as the client knows it. Other dialects have no namespaces, and only functions. */
export interface OwnName {
  readonly name: string;
  readonly namespace?: string | undefined;
  /** Whether its calls are searches for tools, which the client runs. */
  readonly isSearch?: boolean;
}

/** The name of the search for tools in other dialects. */
export const SEARCH = 'tool_search';

/** Returns the name of a tool in other dialects. Some clients already end their namespaces with the two underscores. */
export function flatName(name: string, namespace: string | undefined): string {
  if (namespace === undefined || namespace === '') return name;
  return namespace.endsWith('__') ? namespace + name : `${namespace}__${name}`;
}

/** Returns the original names of the request's tools that have another name in other dialects. */
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

/** Returns the tools that an item brings: found or additional ones. */
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
