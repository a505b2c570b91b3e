import { isDeepStrictEqual } from 'node:util';
import { asObject, type JsonObject } from '../../base/json-values';
import { NotTranslatable, type Tool, type ToolChoice } from '../../catalog/conversation';
import { booleanAt, listAt, optionalSchema, optionalText, textAt } from '../checked';
import { memberPath } from '../translation-rules';
import { RESPONSES_RULES } from './request';
import { flatName, SEARCH } from './tool-names';

const CHOICES = 'must be "auto", "none", "required" or one of the functions and custom tools';

interface Named {
  readonly tool: Tool;
  /** The tool's name without its namespace. */
  readonly name: string;
}

/** Reads the tools of a request: those in its `tools`, and those inside of input items. */
export class ToolReader {
  readonly #tools = new Map<string, Named>();

  get tools(): readonly Tool[] {
    return [...this.#tools.values()].map(({ tool }) => tool);
  }

  /** Reads a list of tools and returns the names under which other dialects know them. @throws NotTranslatable */
  readList(object: JsonObject, path = ''): readonly string[] {
    return listAt(object, 'tools', path).flatMap((given, at) =>
      this.#read(given, `${memberPath(path, 'tools')}[${at}]`),
    );
  }

  /** Reads `tool_choice`; undefined if the request has none. @throws NotTranslatable */
  readChoice(request: JsonObject): ToolChoice | undefined {
    const given = request['tool_choice'];
    if (given === undefined || given === 'auto' || given === 'none' || given === 'required') return given;
    const type = asObject(given)?.['type'];
    if (type !== 'function' && type !== 'custom') throw new NotTranslatable('tool_choice', CHOICES);
    const { name } = RESPONSES_RULES.carriedMembers(given, 'tool_choice', 'tool_choice');
    const [only, ...others] = [...this.#tools.values()].filter((each) => each.name === name);
    if (only === undefined || others.length > 0) throw new NotTranslatable('tool_choice', CHOICES);
    return { tool: only.tool.name, input: only.tool.input };
  }

  #read(given: unknown, path: string): readonly string[] {
    const type = RESPONSES_RULES.carriedType(given, 'tools', path);
    const tool = RESPONSES_RULES.carriedMembers(given, `tools[${type}]`, path);
    if (type === 'namespace') return this.#readNamespace(tool, path);
    return [type === SEARCH ? this.#add(search(tool, path), SEARCH, path) : this.#readOne(tool, path)];
  }

  #readNamespace(given: JsonObject, path: string): readonly string[] {
    const namespace = { name: textAt(given, 'name', path), about: optionalText(given, 'description', path) };
    return listAt(given, 'tools', path).map((each, at) => {
      const place = `${path}.tools[${at}]`;
      const type = RESPONSES_RULES.carriedType(each, 'tools', place);
      if (type !== 'function' && type !== 'custom')
        throw new NotTranslatable(`${place}.type`, 'must be function or custom');
      return this.#readOne(RESPONSES_RULES.carriedMembers(each, `tools[${type}]`, place), place, namespace);
    });
  }

  /** Reads one tool. Puts the description of the namespace before the description of the tool. */
  #readOne(
    given: JsonObject,
    path: string,
    namespace: { readonly name?: string; readonly about?: string | undefined } = {},
  ) {
    const name = textAt(given, 'name', path);
    const about = [namespace.about, optionalText(given, 'description', path)].filter((text) => text);
    const common = { name: flatName(name, namespace.name), description: about.join('\n\n') || undefined };
    const tool: Tool =
      given['type'] === 'custom'
        ? { ...common, input: 'text', format: given['format'] }
        : {
            ...common,
            input: 'json',
            schema: optionalSchema(given, 'parameters', path),
            strict: booleanAt(given, 'strict', path),
          };
    return this.#add(tool, name, path);
  }

  /** Adds a tool. The same tool may occur twice, because two searches may find it. */
  #add(tool: Tool, name: string, path: string): string {
    const known = this.#tools.get(tool.name);
    if (known !== undefined && !isDeepStrictEqual(known, { tool, name }))
      throw new NotTranslatable(`${path}.name`, `makes "${tool.name}", which is the name of another tool, too`);
    this.#tools.set(tool.name, { tool, name });
    return tool.name;
  }
}

function search(given: JsonObject, path: string): Tool {
  atClient(given, path);
  const description = optionalText(given, 'description', path) ?? 'Searches for more tools.';
  return { name: SEARCH, description, input: 'json', schema: optionalSchema(given, 'parameters', path) };
}

/** Checks that the client, not the vendor, runs a tool search. Without `execution` the vendor runs it. @throws NotTranslatable if the vendor runs it */
export function atClient({ execution = 'server' }: JsonObject, path: string): void {
  if (execution !== 'client')
    throw new NotTranslatable(`${path}.execution`, `is ${JSON.stringify(execution)}: the search runs at its vendor`);
}
