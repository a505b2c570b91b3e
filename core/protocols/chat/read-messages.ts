import { append } from '../../base/collections';
import { asObject, type JsonObject } from '../../base/json-values';
import {
  type Conversation,
  NotTranslatable,
  type Part,
  type TextPart,
  type ToolResultPart,
  type Turn,
} from '../../catalog/conversation';
import { listAt, onlyText, optionalText, resultParts, textAt, wordAt } from '../checked';
import { readAudio, readDocument, readImage } from './read-media';
import { readToolCall } from './read-tools';
import { CHAT_RULES } from './request';

const ROLES = ['system', 'developer', 'user', 'assistant', 'tool'] as const;
type Role = (typeof ROLES)[number];

/** Reads the messages. Messages before the first turn of the user or the assistant become instructions. @throws NotTranslatable */
export function readMessages(request: JsonObject): Pick<Conversation, 'instructions' | 'turns'> {
  const reading = new MessagesReader();
  listAt(request, 'messages').forEach((message, at) => {
    reading.read(message, `messages[${at}]`);
  });
  const { instructions, turns } = reading;
  return { instructions, turns };
}

class MessagesReader {
  readonly instructions: TextPart[] = [];
  readonly turns: Turn[] = [];
  readonly #textCalls = new Set<string>();
  /** The tool results of the open turn of tool results; undefined in any other turn. Chat sends each result as a separate message. */
  #results: ToolResultPart[] | undefined;

  read(given: unknown, path: string): void {
    const { role, message } = readMessage(given, path);
    if (role !== 'tool') this.#results = undefined;
    if (role === 'tool') this.#addResult(message, path);
    else if (role === 'user') this.turns.push({ role, parts: readContent(message, path) });
    else if (role === 'assistant') this.#addAnswer(message, path);
    else this.#instruct(message, path);
  }

  #addAnswer(message: JsonObject, path: string): void {
    const parts = readAnswer(message, path);
    for (const part of parts) if (part.kind === 'tool_call' && part.isText === true) this.#textCalls.add(part.id);
    this.turns.push({ role: 'assistant', parts });
  }

  #addResult(message: JsonObject, path: string): void {
    const result = readResult(message, path, this.#textCalls);
    if (this.#results === undefined) {
      this.#results = [];
      this.turns.push({ role: 'user', parts: this.#results });
    }
    this.#results.push(result);
  }

  #instruct(message: JsonObject, path: string): void {
    const parts = readContent(message, path).map((part) => onlyText(part, path));
    if (this.turns.length === 0) append(this.instructions, parts);
    else this.turns.push({ role: 'system', parts });
  }
}

/** Reads one message. The rule for `name` depends on the role: in a tool result it repeats the tool's name, in other messages it distinguishes speakers. */
function readMessage(given: unknown, path: string): { readonly role: Role; readonly message: JsonObject } {
  const role = wordAt(asObject(given) ?? {}, 'role', ROLES, path);
  return { role, message: CHAT_RULES.carriedMembers(given, role === 'tool' ? 'messages[tool]' : 'messages[]', path) };
}

function readAnswer(message: JsonObject, path: string): readonly Part[] {
  const refusal = optionalText(message, 'refusal', path);
  return [
    ...readContent(message, path),
    ...(refusal === undefined ? [] : [{ kind: 'refusal', text: refusal } as const]),
    ...listAt(message, 'tool_calls', path).map((call, at) => readToolCall(call, `${path}.tool_calls[${at}]`)),
  ];
}

function readResult(message: JsonObject, path: string, textCalls: ReadonlySet<string>): ToolResultPart {
  const id = textAt(message, 'tool_call_id', path);
  const parts = resultParts(readContent(message, path), `${path}.content`);
  return { kind: 'tool_result', id, parts, ...(textCalls.has(id) && { isText: true }) };
}

function readContent(message: JsonObject, path: string): readonly Part[] {
  const content = message['content'];
  if (content === undefined) return [];
  if (typeof content === 'string') return [{ kind: 'text', text: content }];
  return listAt(message, 'content', path).map((part, at) => readPart(part, `${path}.content[${at}]`));
}

const PARTS = ['text', 'refusal', 'image_url', 'file', 'input_audio'] as const;

function readPart(given: unknown, path: string): Part {
  const type = asObject(given)?.['type'];
  const known = PARTS.find((each) => each === type);
  if (known === undefined)
    throw new NotTranslatable(`${path}.type`, `is ${JSON.stringify(type)}, which other dialects do not have`);
  const part = CHAT_RULES.carriedMembers(given, 'content[]', path);
  switch (known) {
    case 'text':
      return { kind: 'text', text: textAt(part, 'text', path) };
    case 'refusal':
      return { kind: 'refusal', text: textAt(part, 'refusal', path) };
    case 'image_url':
      return readImage(part['image_url'], `${path}.image_url`);
    case 'file':
      return readDocument(part['file'], `${path}.file`);
    case 'input_audio':
      return readAudio(part['input_audio'], `${path}.input_audio`);
  }
}
