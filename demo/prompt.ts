/** The parts of a request body that the demo model uses, in any protocol. */
export interface Prompt {
  readonly model: string;
  readonly stream: boolean;
  /** Chat only: whether the last chunk of a stream has the token counts. */
  readonly includeUsage: boolean;
  readonly maxTokens: number | undefined;
  /** The last text of the last user message. */
  readonly lastUserText: string;
  /** The text of the tool result if the last message is one; otherwise undefined. */
  readonly toolResult: string | undefined;
  readonly tools: readonly Tool[];
  /** Which tool the model must call: `none`, `any`, or a tool's name; undefined: the model decides by `lastUserText`. */
  readonly toolChoice: string | undefined;
  readonly textLength: number;
  readonly images: number;
}

export interface Tool {
  readonly name: string;
  readonly schema: Json;
}

export type Json = Readonly<Record<string, unknown>>;
export type Protocol = 'messages' | 'chat' | 'responses';

/** The members of a request body that limit the answer's length, by protocol. The demo model uses the first one that is present. */
const LIMITS: Readonly<Record<Protocol, readonly string[]>> = {
  messages: ['max_tokens'],
  chat: ['max_completion_tokens', 'max_tokens'],
  responses: ['max_output_tokens'],
};

/** Returns the first problem of a body as a text for the client; undefined if there is none. */
export function problemOf(body: Json, protocol: Protocol): string | undefined {
  if (typeof body['model'] !== 'string') return 'model: a string is required';
  const list = protocol === 'responses' ? 'input' : 'messages';
  if (messagesOf(body, protocol).length === 0) return `${list}: a non-empty array is required`;
  const limit = limitOf(body, protocol);
  if (protocol === 'messages' && limit === undefined) return 'max_tokens: an integer is required';
  const least = protocol === 'messages' ? 0 : 1;
  const isLimit = limit === undefined || limit === null || (Number.isInteger(limit) && Number(limit) >= least);
  return isLimit ? undefined : `${LIMITS[protocol].at(-1)}: an integer of at least ${least} is required`;
}

function limitOf(body: Json, protocol: Protocol): unknown {
  return LIMITS[protocol].map((name) => body[name]).find((limit) => limit !== undefined && limit !== null);
}

/** Returns the messages of the conversation. The input of the Responses protocol may be a single text. */
function messagesOf(body: Json, protocol: Protocol): Json[] {
  if (protocol !== 'responses') return objects(body['messages']);
  const { input } = body;
  return typeof input === 'string' ? [{ role: 'user', content: input }] : objects(input);
}

/** Reads a body in which `problemOf` found no problem. */
export function readPrompt(body: Json, protocol: Protocol): Prompt {
  const messages = messagesOf(body, protocol);
  const parts = messages.flatMap(contentOf);
  // Skip system messages, because agents put them after the message that the model should answer.
  const last = messages.findLast((message) => message['role'] !== 'system') ?? {};
  const limit = limitOf(body, protocol);
  return {
    model: String(body['model']),
    stream: body['stream'] === true,
    includeUsage: object(body['stream_options'])['include_usage'] === true,
    maxTokens: typeof limit === 'number' ? limit : undefined,
    lastUserText: lastTextOf(messages.findLast((message) => message['role'] === 'user' && !isToolResult(message))),
    toolResult: isToolResult(last) ? textOf(last) : undefined,
    tools: objects(body['tools']).map((tool) => toolOf(tool, protocol)),
    toolChoice: toolChoice(body['tool_choice']),
    textLength:
      parts.map(partText).join('').length +
      partsOf(body['system'] ?? body['instructions'])
        .map(partText)
        .join('').length +
      (body['tools'] === undefined ? 0 : JSON.stringify(body['tools']).length),
    images: parts.filter((part) => IMAGES.includes(String(part['type']))).length,
  };
}

const IMAGES = ['image', 'image_url', 'input_image'];

function toolOf(tool: Json, protocol: Protocol): Tool {
  const described = protocol === 'chat' ? object(tool['function']) : tool;
  return { name: String(described['name']), schema: object(described['parameters'] ?? described['input_schema']) };
}

function toolChoice(choice: unknown): string | undefined {
  if (choice === 'none' || object(choice)['type'] === 'none') return 'none';
  if (choice === 'required' || object(choice)['type'] === 'any') return 'any';
  const name = object(choice)['name'] ?? object(object(choice)['function'])['name'];
  return typeof name === 'string' ? name : undefined;
}

function isToolResult(message: Json): boolean {
  if (message['role'] === 'tool' || message['type'] === 'function_call_output') return true;
  return partsOf(message['content']).some((part) => part['type'] === 'tool_result');
}

function textOf(message: Json | undefined): string {
  return contentOf(message).map(partText).join(' ');
}

function contentOf(message: Json | undefined): Json[] {
  return partsOf(message?.['content'] ?? message?.['output']);
}

/** Returns the last text of a message, because agents put reminders before the user's own text. */
function lastTextOf(message: Json | undefined): string {
  return (
    partsOf(message?.['content'])
      .map(partText)
      .findLast((text) => text !== '') ?? ''
  );
}

function partText(part: Json): string {
  if (part['type'] === 'tool_result') return partsOf(part['content']).map(partText).join(' ');
  return typeof part['text'] === 'string' ? part['text'] : '';
}

/** Returns the parts of a content, which is a text or a list of parts. */
function partsOf(content: unknown): Json[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : objects(content);
}

function objects(value: unknown): Json[] {
  return Array.isArray(value) ? value.map(object) : [];
}

function object(value: unknown): Json {
  return typeof value === 'object' && value !== null ? (value as Json) : {};
}
