import type { AnswerEvent } from '../catalog/answer';
import { type Conversation, NotTranslatable, type Tool, type ToolCallPart } from '../catalog/conversation';
import { asObject, asText, type JsonObject } from '../json-values';
import { parseJson } from '../parse-json';
import { DEEP_INPUT, MOST_LEVELS } from './limits';

/** The name of a tool's free text in dialects that only have tools with JSON. The text becomes the one member of an object and is extracted again. */
const MEMBER = 'input';

/** Returns the schema of a tool's input, for an upstream without text tools. A text input becomes a member of an object. */
export function schemaOf(tool: Tool): unknown {
  if (tool.input === 'json') return tool.schema ?? { type: 'object', properties: {} };
  const description = tool.format === undefined ? undefined : `Text of this form: ${JSON.stringify(tool.format)}`;
  return {
    type: 'object',
    properties: { [MEMBER]: { type: 'string', ...(description !== undefined && { description }) } },
    required: [MEMBER],
    additionalProperties: false,
  };
}

/** Returns the JSON of a call's input, for an upstream without tools that take text. */
export function jsonInputOf({ input, isText }: ToolCallPart): string {
  if (isText === true) return JSON.stringify({ [MEMBER]: input });
  return input.trim() === '' ? '{}' : input;
}

/**
 * Returns the input of a call for an upstream that takes an object; undefined if it is not an object.
 * @throws NotTranslatable for one that is nested too deep
 */
export function inputObjectOf(part: ToolCallPart): JsonObject | undefined {
  const input = asObject(parseJson(jsonInputOf(part)));
  if (!isDeeper(input, MOST_LEVELS)) return input;
  throw new NotTranslatable(DEEP_INPUT.feature, DEEP_INPUT.why);
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((each) => isDeeper(each, levels - 1));
}

/** Extracts the text from the JSON objects with which an upstream without text tools calls them. */
export class TextTools {
  readonly #names: ReadonlySet<string>;
  /** The JSON of the open calls, by part. */
  readonly #inputs = new Map<number, string>();

  constructor({ tools }: Conversation) {
    this.#names = new Set(tools.flatMap(({ input, name }) => (input === 'text' ? [name] : [])));
  }

  unwrapped(events: readonly AnswerEvent[]): readonly AnswerEvent[] {
    return this.#names.size === 0 ? events : events.flatMap((event) => this.#unwrap(event));
  }

  #unwrap(event: AnswerEvent): readonly AnswerEvent[] {
    if (event.is === 'open') {
      const { part } = event;
      if (part.is !== 'tool_call' || part.isText === true || !this.#names.has(part.name)) return [event];
      this.#inputs.set(event.at, '');
      return [{ ...event, part: { ...part, isText: true } }];
    }
    if (event.is !== 'add' && event.is !== 'close') return [event];
    const before = this.#inputs.get(event.at);
    if (before === undefined) return [event];
    if (event.is === 'add') {
      this.#inputs.set(event.at, before + event.text);
      return [];
    }
    this.#inputs.delete(event.at);
    const text = textIn(before);
    return text === '' ? [event] : [{ is: 'add', at: event.at, text }, event];
  }
}

/** Returns the text in a call's JSON. A model may ignore the schema and write the text itself. */
function textIn(json: string): string {
  const object = asObject(parseJson(json));
  return object === undefined ? json : asText(object[MEMBER]);
}
