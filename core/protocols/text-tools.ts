import { asObject, asText, type JsonObject } from '../base/json-values';
import { parseJson } from '../base/parse-json';
import type { AnswerEvent } from '../catalog/answer';
import { type Conversation, NotTranslatable, type Tool, type ToolCallPart } from '../catalog/conversation';
import { parseForeign, withMember } from '../http/raw-json';
import { shortName } from './fitted';
import { BROKEN_INPUT } from './limits';

/** The member for the plain-text input of a text tool, in dialects whose tools accept only JSON. The gateway extracts the text from answers again. */
const MEMBER = 'input';

/** Returns the schema of a tool's input, for an upstream without text tools. A text input becomes a member of an object. */
export function schemaOf(tool: Tool): JsonObject {
  if (tool.input === 'json') return completed(asObject(tool.schema) ?? {});
  const description = tool.format === undefined ? undefined : `Text of this form: ${JSON.stringify(tool.format)}`;
  return {
    type: 'object',
    properties: { [MEMBER]: { type: 'string', ...(description !== undefined && { description }) } },
    required: [MEMBER],
    additionalProperties: false,
  };
}

/** Returns a tool's schema with `type` and `properties`, which vendors require of every tool. */
function completed(schema: JsonObject): JsonObject {
  const typed = 'type' in schema ? schema : withMember(schema, 'type', 'object');
  return typed['type'] !== 'object' || 'properties' in typed ? typed : withMember(typed, 'properties', {});
}

/** Returns a tool call's input as JSON, for an upstream whose tools do not accept text. */
export function jsonInputOf({ input, isText }: ToolCallPart): string {
  if (isText === true) return JSON.stringify({ [MEMBER]: input });
  return input.trim() === '' ? '{}' : input;
}

/** Returns a tool call's input for an upstream that expects an object. The input's JSON text stays unchanged. @throws NotTranslatable */
export function inputObjectOf(part: ToolCallPart): JsonObject {
  const input = parseForeign(jsonInputOf(part));
  if (input !== undefined) return input;
  throw new NotTranslatable('tool_call', `${BROKEN_INPUT.why}, of the tool "${part.name}"`);
}

/** Restores the client's tool names in tool calls. If the upstream has no text tools, extracts the input of text tools from the upstream's JSON. */
export class TextTools {
  /** The tools whose calls must be changed, by their names at the upstream. */
  readonly #tools: ReadonlyMap<string, Tool>;
  /** The JSON input of tool calls that have not ended, by the number of their part. */
  readonly #inputs = new Map<number, string>();

  constructor({ tools }: Conversation) {
    const named = tools.map((tool) => [shortName(tool.name), tool] as const);
    this.#tools = new Map(named.filter(([short, { name, input }]) => short !== name || input === 'text'));
  }

  unwrapped(events: readonly AnswerEvent[]): readonly AnswerEvent[] {
    return this.#tools.size === 0 ? events : events.flatMap((event) => this.#unwrap(event));
  }

  #unwrap(event: AnswerEvent): readonly AnswerEvent[] {
    if (event.kind === 'open') {
      const { part } = event;
      const tool = part.kind === 'tool_call' ? this.#tools.get(part.name) : undefined;
      if (part.kind !== 'tool_call' || tool === undefined) return [event];
      const isWrapped = tool.input === 'text' && part.isText !== true;
      if (isWrapped) this.#inputs.set(event.at, '');
      return [{ ...event, part: { ...part, name: tool.name, ...(isWrapped && { isText: true }) } }];
    }
    if (event.kind !== 'add' && event.kind !== 'close') return [event];
    const before = this.#inputs.get(event.at);
    if (before === undefined) return [event];
    if (event.kind === 'add') {
      this.#inputs.set(event.at, before + event.text);
      return [];
    }
    this.#inputs.delete(event.at);
    const text = textIn(before);
    return text === '' ? [event] : [{ kind: 'add', at: event.at, text }, event];
  }
}

/** Returns the text in the JSON input of a tool call. If a model ignored the schema and wrote plain text, returns that text. */
function textIn(json: string): string {
  const object = asObject(parseJson(json));
  return object === undefined ? json : asText(object[MEMBER]);
}
