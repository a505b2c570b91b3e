import { asObject, type JsonObject } from '../../base/json-values';
import {
  type Conversation,
  NotTranslatable,
  type OutputFormat,
  type Part,
  type Reasoning,
  type TextPart,
  type Tool,
  type ToolChoice,
  type Turn,
} from '../../catalog/conversation';
import { booleanAt, listAt, numberAt, optionalText, optionalWord, schemaAt, textAt, textsAt, wordAt } from '../checked';
import { readParts, readTexts } from './read-parts';
import { MESSAGES_RULES } from './request';

/** Converts the body of a Messages request to a conversation. @throws NotTranslatable */
export function readMessagesRequest(body: JsonObject): Conversation {
  const request = MESSAGES_RULES.carriedMembers(body);
  const messages = listAt(request, 'messages').map((message, at) => readMessage(message, `messages[${at}]`));
  const output = MESSAGES_RULES.carriedMembers(request['output_config'] ?? {}, 'output_config', 'output_config');
  const metadata = MESSAGES_RULES.carriedMembers(request['metadata'] ?? {}, 'metadata', 'metadata');
  return {
    ...readConversation(readTexts(request, 'system'), messages),
    tools: listAt(request, 'tools').map((tool, at) => readTool(tool, `tools[${at}]`)),
    ...readToolChoice(request['tool_choice']),
    outputFormat: readFormat(output['format'] ?? request['output_format']),
    maxTokens: numberAt(request, 'max_tokens'),
    choices: 1,
    stream: booleanAt(request, 'stream') ?? false,
    stop: textsAt(request, 'stop_sequences'),
    temperature: numberAt(request, 'temperature'),
    topP: numberAt(request, 'top_p'),
    topK: numberAt(request, 'top_k'),
    reasoning: readReasoning(request['thinking'], effortOf(messages) ?? readEffort(output, 'output_config')),
    user: optionalText(metadata, 'user_id', 'metadata'),
  };
}

interface Message extends Turn {
  /** The effort of reasoning from this message on; undefined if the message does not change it. */
  readonly effort: Reasoning['effort'];
  /** Whether the vendor hides this message from the model after the user's next message. */
  readonly isForOneTurn: boolean;
}

function readMessage(value: unknown, place: string): Message {
  const message = MESSAGES_RULES.carriedMembers(value, 'messages[]', place);
  const role = wordAt(message, 'role', ['user', 'assistant', 'system'], place);
  const config = `${place}.output_config`;
  return {
    role,
    parts: readParts(message, 'content', role, place),
    effort: readEffort(MESSAGES_RULES.carriedMembers(message['output_config'] ?? {}, 'output_config', config), config),
    isForOneTurn: optionalWord(message, 'clear_at', ['never', 'next_user_message'], place) === 'next_user_message',
  };
}

/**
 * Returns the reasoning effort that applies to the answer. It is the last one that a message sets, up to the user's last input or in system
 * messages right after that input. Results of tools are no input (platform.claude.com/docs/en/build-with-claude/effort-per-message,
 * 2026-11).
 */
function effortOf(messages: readonly Message[]): Reasoning['effort'] {
  const input = messages.findLastIndex(({ role, parts }) => role === 'user' && parts.some(isNotResult));
  const next = messages.findIndex(({ role }, at) => at > input && role !== 'system');
  return messages.slice(0, next < 0 ? undefined : next).findLast(({ effort }) => effort !== undefined)?.effort;
}

function isNotResult({ kind }: Part): boolean {
  return kind !== 'tool_result';
}

/** Returns the instructions and turns. System messages at the start of the conversation become instructions. */
function readConversation(
  system: readonly TextPart[],
  messages: readonly Message[],
): Pick<Conversation, 'instructions' | 'turns' | 'isBegun'> {
  const lastOfUser = messages.findLastIndex(({ role }) => role === 'user');
  const shown = messages.filter(
    ({ isForOneTurn, parts }, at) => !(isForOneTurn && at < lastOfUser) && parts.length > 0,
  );
  const first = shown.findIndex(({ role }) => role !== 'system');
  const before = first < 0 ? shown : shown.slice(0, first);
  return {
    instructions: [...system, ...before.flatMap(({ parts }) => parts as readonly TextPart[])].filter(
      ({ text }) => text !== '',
    ),
    turns: shown.slice(before.length).map(({ role, parts }) => ({ role, parts })),
    ...(shown.at(-1)?.role === 'assistant' && { isBegun: true }),
  };
}

function readTool(value: unknown, place: string): Tool {
  const type = asObject(value)?.['type'] ?? 'custom';
  if (type !== 'custom') throw new NotTranslatable(`${place}.type`, `is \`${String(type)}\`, a tool of its vendor`);
  const tool = MESSAGES_RULES.carriedMembers(value, 'tools[]', place);
  return {
    name: textAt(tool, 'name', place),
    description: optionalText(tool, 'description', place),
    schema: schemaAt(tool, 'input_schema', place),
    strict: booleanAt(tool, 'strict', place),
    input: 'json',
  };
}

function readToolChoice(value: unknown): Pick<Conversation, 'toolChoice' | 'parallelTools'> {
  if (value === undefined) return {};
  const choice = MESSAGES_RULES.carriedMembers(value, 'tool_choice', 'tool_choice');
  const single = booleanAt(choice, 'disable_parallel_tool_use', 'tool_choice');
  return { toolChoice: readChoice(choice), parallelTools: single === undefined ? undefined : !single };
}

function readChoice(choice: JsonObject): ToolChoice {
  const word = wordAt(choice, 'type', ['auto', 'any', 'none', 'tool'], 'tool_choice');
  if (word === 'tool') return { tool: textAt(choice, 'name', 'tool_choice') };
  return word === 'any' ? 'required' : word;
}

function readFormat(value: unknown): OutputFormat | undefined {
  if (value === undefined) return undefined;
  const place = 'output_config.format';
  const format = MESSAGES_RULES.carriedMembers(value, place, place);
  wordAt(format, 'type', ['json_schema'], place);
  return { kind: 'schema', schema: schemaAt(format, 'schema', place), strict: true };
}

function readEffort(config: JsonObject, place: string): Reasoning['effort'] {
  return optionalWord(config, 'effort', ['low', 'medium', 'high', 'xhigh', 'max'], place);
}

function readReasoning(value: unknown, effort: Reasoning['effort']): Reasoning | undefined {
  if (value === undefined) return effort && { effort };
  const thinking = MESSAGES_RULES.carriedMembers(value, 'thinking', 'thinking');
  const type = wordAt(thinking, 'type', ['adaptive', 'enabled', 'between_tools', 'disabled'], 'thinking');
  // The thinking type `between_tools` means no thinking except short notes between tool calls (platform.claude.com, What's new in Claude Sonnet 5.5,
  // 2026-11).
  if (type === 'disabled' || type === 'between_tools') return { effort: 'none' };
  const display = optionalWord(thinking, 'display', ['summarized', 'omitted'], 'thinking');
  return {
    effort,
    budgetTokens: numberAt(thinking, 'budget_tokens', 'thinking'),
    isShown: display && display === 'summarized',
  };
}
