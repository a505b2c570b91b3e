import {
  type Conversation,
  NotTranslatable,
  type OutputFormat,
  type Reasoning,
  type TextPart,
  type Tool,
  type ToolChoice,
  type Turn,
} from '../../catalog/conversation';
import type { JsonObject } from '../../json-values';
import type { ClientDialect } from '../client-dialect';
import { readParts, readTexts } from './read-parts';
import { carriedOf } from './rules';
import { flagAt, itemsAt, numberAt, objectAt, oneOf, optionalTextAt, textAt } from './values';

export const names: ClientDialect['names'] = {
  tools: 'tools',
  toolChoice: 'tool_choice',
  parallelTools: 'tool_choice.disable_parallel_tool_use',
  outputFormat: 'output_config.format',
  maxTokens: 'max_tokens',
  stop: 'stop_sequences',
  temperature: 'temperature',
  topP: 'top_p',
  topK: 'top_k',
  reasoning: 'thinking',
  user: 'metadata.user_id',
  system: 'messages',
  text: 'text',
  image: 'image',
  document: 'document',
  tool_call: 'tool_use',
  tool_result: 'tool_result',
};

/** Reads a whole request. @throws NotTranslatable */
export function readRequest(body: JsonObject): Conversation {
  const request = carriedOf(body, '', '');
  const messages = itemsAt(request['messages'], 'messages').map(({ item, place }) => readMessage(item, place));
  const output = carriedOf(objectAt(request['output_config'] ?? {}, 'output_config'), 'output_config', 'output_config');
  const metadata = carriedOf(objectAt(request['metadata'] ?? {}, 'metadata'), 'metadata', 'metadata');
  return {
    ...readConversation(readTexts(request['system'], 'system'), messages),
    tools: itemsAt(request['tools'], 'tools').map(({ item, place }) => readTool(item, place)),
    ...readToolChoice(request['tool_choice']),
    outputFormat: readFormat(output['format'] ?? request['output_format']),
    maxTokens: numberAt(request['max_tokens'], 'max_tokens'),
    choices: 1,
    stream: flagAt(request['stream'], 'stream') ?? false,
    stop: itemsAt(request['stop_sequences'], 'stop_sequences').map(({ item, place }) => textAt(item, place)),
    temperature: numberAt(request['temperature'], 'temperature'),
    topP: numberAt(request['top_p'], 'top_p'),
    topK: numberAt(request['top_k'], 'top_k'),
    reasoning: readReasoning(request['thinking'], effortOf(messages) ?? output['effort']),
    user: optionalTextAt(metadata['user_id'], 'metadata.user_id'),
  };
}

interface Message extends Turn {
  /** The effort of reasoning from this message on. */
  readonly effort: unknown;
  /** The vendor stops showing it after the next message of the user. */
  readonly isForOneTurn: boolean;
}

function readMessage(value: unknown, place: string): Message {
  const message = carriedOf(objectAt(value, place), 'messages', place);
  const role = oneOf(message['role'], ['user', 'assistant', 'system'], `${place}.role`);
  const config = objectAt(message['output_config'] ?? {}, `${place}.output_config`);
  const clearAt = oneOf(message['clear_at'] ?? 'never', ['never', 'next_user_message'], `${place}.clear_at`);
  return {
    role,
    parts: readParts(message['content'], role, `${place}.content`),
    effort: carriedOf(config, 'output_config', `${place}.output_config`)['effort'],
    isForOneTurn: clearAt === 'next_user_message',
  };
}

function effortOf(messages: readonly Message[]): unknown {
  return messages.findLast(({ effort }) => effort !== undefined)?.effort;
}

/** Moves system messages at the start of the conversation to the instructions. */
function readConversation(
  system: readonly TextPart[],
  messages: readonly Message[],
): Pick<Conversation, 'instructions' | 'turns'> {
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
  };
}

function readTool(value: unknown, place: string): Tool {
  const object = objectAt(value, place);
  const type = object['type'] ?? 'custom';
  if (type !== 'custom') throw new NotTranslatable(`${place}.type`, `is \`${String(type)}\`, a tool of its vendor`);
  const tool = carriedOf(object, 'tools', place);
  return {
    name: textAt(tool['name'], `${place}.name`),
    description: optionalTextAt(tool['description'], `${place}.description`),
    schema: objectAt(tool['input_schema'], `${place}.input_schema`),
    strict: flagAt(tool['strict'], `${place}.strict`),
    input: 'json',
  };
}

function readToolChoice(value: unknown): Pick<Conversation, 'toolChoice' | 'parallelTools'> {
  if (value === undefined) return {};
  const choice = carriedOf(objectAt(value, 'tool_choice'), 'tool_choice', 'tool_choice');
  const single = flagAt(choice['disable_parallel_tool_use'], 'tool_choice.disable_parallel_tool_use');
  return { toolChoice: readChoice(choice), parallelTools: single === undefined ? undefined : !single };
}

function readChoice({ type, name }: JsonObject): ToolChoice {
  const word = oneOf(type, ['auto', 'any', 'none', 'tool'], 'tool_choice.type');
  if (word === 'tool') return { tool: textAt(name, 'tool_choice.name') };
  return word === 'any' ? 'required' : word;
}

function readFormat(value: unknown): OutputFormat | undefined {
  if (value === undefined) return undefined;
  const { type, schema, ...others } = objectAt(value, names.outputFormat as string);
  const [unknown] = Object.keys(others);
  if (unknown !== undefined)
    throw new NotTranslatable(`output_config.format.${unknown}`, 'is not known to the gateway');
  oneOf(type, ['json_schema'], 'output_config.format.type');
  return { is: 'schema', schema: objectAt(schema, 'output_config.format.schema') };
}

const EFFORTS = ['low', 'medium', 'high', 'xhigh', 'max'] as const;

function readReasoning(value: unknown, effort: unknown): Reasoning | undefined {
  if (value === undefined && effort === undefined) return undefined;
  const told = effort === undefined ? undefined : oneOf(effort, EFFORTS, 'output_config.effort');
  if (value === undefined) return { effort: told };
  const thinking = carriedOf(objectAt(value, 'thinking'), 'thinking', 'thinking');
  const type = oneOf(thinking['type'], ['adaptive', 'enabled', 'between_tools', 'disabled'], 'thinking.type');
  if (type === 'disabled') return { effort: 'none' };
  const { display } = thinking;
  return {
    effort: told,
    budgetTokens: numberAt(thinking['budget_tokens'], 'thinking.budget_tokens'),
    isShown:
      display === undefined
        ? undefined
        : oneOf(display, ['summarized', 'omitted'], 'thinking.display') === 'summarized',
  };
}
