import { asObject, type JsonObject } from '../../base/json-values';
import { NotTranslatable, type Tool, type ToolCallPart, type ToolChoice } from '../../catalog/conversation';
import { booleanAt, listAt, optionalSchema, optionalText, textAt } from '../checked';
import { CHAT_RULES } from './request';

/** Reads the tools of a request. @throws NotTranslatable */
export function readTools(request: JsonObject): readonly Tool[] {
  return listAt(request, 'tools').map((given, at) => {
    const path = `tools[${at}]`;
    const type = typeOf(given, path);
    const tool = CHAT_RULES.carriedMembers(given, 'tools[]', path);
    return type === 'custom'
      ? readCustom(tool['custom'], `${path}.custom`)
      : readFunction(tool['function'], `${path}.function`);
  });
}

/** Returns the type of a tool or a call, which is `function` if absent. */
function typeOf(given: unknown, path: string): 'function' | 'custom' {
  const { type, custom } = asObject(given) ?? {};
  if (type === 'function' || type === 'custom') return type;
  if (type === undefined || type === null) return custom === undefined ? 'function' : 'custom';
  throw new NotTranslatable(`${path}.type`, `is ${JSON.stringify(type)}, which other dialects do not have`);
}

function readFunction(given: unknown, path: string): Tool {
  const described = CHAT_RULES.carriedMembers(given, 'tools[].function', path);
  return {
    name: textAt(described, 'name', path),
    description: optionalText(described, 'description', path),
    schema: optionalSchema(described, 'parameters', path),
    strict: booleanAt(described, 'strict', path),
    input: 'json',
  };
}

function readCustom(given: unknown, path: string): Tool {
  const described = CHAT_RULES.carriedMembers(given, 'tools[].custom', path);
  return {
    name: textAt(described, 'name', path),
    description: optionalText(described, 'description', path),
    input: 'text',
    format: flatFormat(described['format']),
  };
}

/** Returns a grammar in the form of Responses, which `Tool` uses. Chat nests the grammar one level deeper. */
function flatFormat(given: unknown): unknown {
  const { type, grammar, ...others } = asObject(given) ?? {};
  const inner = asObject(grammar);
  return type === 'grammar' && inner !== undefined ? { type, ...others, ...inner } : given;
}

/** Reads the tool choice. @throws NotTranslatable */
export function readToolChoice(request: JsonObject): ToolChoice | undefined {
  const given = request['tool_choice'];
  if (given === undefined || given === 'auto' || given === 'none' || given === 'required') return given;
  const type = asObject(given)?.['type'];
  if (type === 'function' || type === 'custom') {
    const path = `tool_choice.${type}`;
    const chosen = CHAT_RULES.carriedMembers(
      CHAT_RULES.carriedMembers(given, 'tool_choice', 'tool_choice')[type],
      path,
      path,
    );
    return { tool: textAt(chosen, 'name', path), input: type === 'custom' ? 'text' : 'json' };
  }
  throw new NotTranslatable(
    'tool_choice',
    'must be "auto", "none", "required" or one tool of the type function or custom',
  );
}

/** Reads a tool call in a message of the assistant. @throws NotTranslatable */
export function readToolCall(given: unknown, path: string): ToolCallPart {
  const type = typeOf(given, path);
  const call = CHAT_RULES.carriedMembers(given, 'tool_calls[]', path);
  const typePath = `${path}.${type}`;
  const called = CHAT_RULES.carriedMembers(call[type], `tool_calls[].${type}`, typePath);
  const [id, name] = [textAt(call, 'id', path), textAt(called, 'name', typePath)];
  return type === 'custom'
    ? { kind: 'tool_call', id, name, input: textAt(called, 'input', typePath), isText: true }
    : { kind: 'tool_call', id, name, input: textAt(called, 'arguments', typePath) };
}
