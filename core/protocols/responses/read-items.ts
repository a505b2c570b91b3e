import { append } from '../../base/collections';
import { asArray, asObject, asText, type JsonObject } from '../../base/json-values';
import type {
  Conversation,
  Part,
  ReasoningPart,
  TextPart,
  ToolCallPart,
  ToolResultPart,
  Turn,
} from '../../catalog/conversation';
import { jsonOf } from '../../http/raw-json';
import { listAt, onlyText, optionalObject, optionalText, resultParts, textAt, wordAt } from '../checked';
import { unseal } from '../seal';
import { readContent } from './read-parts';
import { atClient, type ToolReader } from './read-tools';
import { RESPONSES_RULES } from './request';
import { flatName, SEARCH } from './tool-names';

/** Reads the input as instructions and turns. @throws NotTranslatable */
export function readInput(request: JsonObject, tools: ToolReader): Pick<Conversation, 'instructions' | 'turns'> {
  const turns = new Turns();
  const instructions = optionalText(request, 'instructions');
  if (instructions) turns.instruct([{ kind: 'text', text: instructions }]);
  const input = request['input'];
  if (typeof input === 'string') turns.add('user', [{ kind: 'text', text: input }]);
  else for (const [at, item] of listAt(request, 'input').entries()) readItem(item, `input[${at}]`, turns, tools);
  return turns;
}

/**
 * Collects turns. All items of one answer form one turn, and so do consecutive tool results. System and developer messages before the first
 * turn become instructions.
 */
class Turns {
  readonly instructions: TextPart[] = [];
  readonly turns: (Turn & { readonly parts: Part[] })[] = [];

  instruct(parts: readonly TextPart[]): void {
    if (this.turns.length === 0) append(this.instructions, parts);
    else this.add('system', parts);
  }

  add(role: Turn['role'], parts: readonly Part[]): void {
    this.turns.push({ role, parts: [...parts] });
  }

  say(parts: readonly Part[]): void {
    const last = this.turns.at(-1);
    if (last?.role === 'assistant') append(last.parts, parts);
    else this.add('assistant', parts);
  }

  answer(result: ToolResultPart): void {
    const last = this.turns.at(-1);
    if (last?.parts[0]?.kind === 'tool_result') last.parts.push(result);
    else this.add('user', [result]);
  }
}

/** Types of items that only repeat parts of an earlier answer. */
const ECHOES: ReadonlySet<string> = new Set(['reasoning', 'function_call', 'custom_tool_call', 'tool_search_call']);

function readItem(given: unknown, path: string, turns: Turns, tools: ToolReader): void {
  const type = RESPONSES_RULES.carriedType(given, 'input', path, 'message');
  const isEcho = ECHOES.has(type) || asObject(given)?.['role'] === 'assistant';
  const item = RESPONSES_RULES.carriedMembers(given, `input[${type}]`, path, isEcho);
  switch (type) {
    case 'message':
      readMessage(item, path, turns);
      break;
    case 'function_call':
    case 'custom_tool_call':
      turns.say([readCall(item, path, type === 'custom_tool_call')]);
      break;
    case 'function_call_output':
    case 'custom_tool_call_output':
      turns.answer(readResult(item, path, type === 'custom_tool_call_output'));
      break;
    case 'reasoning':
      turns.say([readReasoning(item)]);
      break;
    case 'tool_search_call':
      turns.say([readSearch(item, path)]);
      break;
    case 'tool_search_output':
      turns.answer(readFound(item, path, tools));
      break;
    default:
      tools.readList(item, path);
  }
}

const ROLES = ['user', 'assistant', 'system', 'developer'] as const;

function readMessage(item: JsonObject, path: string, turns: Turns): void {
  const role = wordAt(item, 'role', ROLES, path);
  const parts = readContent(item, 'content', path);
  if (role === 'assistant') turns.say(parts);
  else if (role === 'user') turns.add('user', parts);
  else turns.instruct(parts.map((part) => onlyText(part, path)));
}

function readCall(item: JsonObject, path: string, isText: boolean): ToolCallPart {
  const name = flatName(textAt(item, 'name', path), optionalText(item, 'namespace', path));
  const input = textAt(item, isText ? 'input' : 'arguments', path);
  return { kind: 'tool_call', id: textAt(item, 'call_id', path), name, input, ...(isText && { isText }) };
}

function readResult(item: JsonObject, path: string, isText: boolean): ToolResultPart {
  const parts = resultParts(readContent(item, 'output', path), `${path}.output`);
  return { kind: 'tool_result', id: textAt(item, 'call_id', path), parts, ...(isText && { isText }) };
}

function readReasoning(item: JsonObject): ReasoningPart {
  const texts = asArray(item['summary']).map((part) => asText(asObject(part)?.['text']));
  const signature = unseal(item['encrypted_content']);
  return { kind: 'reasoning', text: texts.join('\n\n'), ...(signature !== undefined && { signature }) };
}

function readSearch(item: JsonObject, path: string): ToolCallPart {
  atClient(item, path);
  const id = textAt(item, 'call_id', path);
  return { kind: 'tool_call', id, name: SEARCH, input: jsonOf(optionalObject(item, 'arguments', path) ?? {}) };
}

/** Reads the tools that a tool search found, and adds them to the tools of the request. */
function readFound(item: JsonObject, path: string, tools: ToolReader): ToolResultPart {
  atClient(item, path);
  const names = tools.readList(item, path);
  const text = names.length === 0 ? 'No tools were found.' : `These tools can be called now: ${names.join(', ')}`;
  return { kind: 'tool_result', id: textAt(item, 'call_id', path), parts: [{ kind: 'text', text }] };
}
