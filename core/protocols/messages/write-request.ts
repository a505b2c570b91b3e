import type { JsonObject } from '../../base/json-values';
import { type Conversation, NotTranslatable, type Tool, type ToolChoice, type Turn } from '../../catalog/conversation';
import type { TranslatedCall } from '../../catalog/upstream';
import { fitted } from '../fitted';
import { fittedToModel } from '../models';
import { schemaOf } from '../text-tools';
import { MAX_USER_LENGTH, MESSAGES_FORMS, MESSAGES_UNSUPPORTED } from './limits';
import { writePart } from './write-parts';
import { writeReasoningSettings } from './write-reasoning';

/** Writes the body of a Messages request. @throws NotTranslatable that names a `Feature` */
export function writeMessagesRequest(given: TranslatedCall): JsonObject {
  const { model, maxOutput } = given;
  const conversation = fittedToModel(fitted(given, MESSAGES_UNSUPPORTED, MESSAGES_FORMS), given);
  const call = { ...given, conversation };
  const asksForCache = conversation.cacheKey !== undefined;
  const instructions = conversation.instructions.flatMap((part) => writePart(part, call));
  const system = asksForCache ? cachedToEnd(instructions) : instructions;
  const messages = writeMessages(call).map(({ role, content }, at, { length }) => {
    const isLast = at === length - 1;
    return { role, content: asksForCache && isLast ? cachedToEnd(content) : content };
  });
  const { tools, stop, temperature, topP, topK, maxTokens, stream } = conversation;
  const { thinking, effort } = writeReasoningSettings(call, messages);
  const format = writeFormat(conversation);
  return {
    model,
    max_tokens: maxTokens ?? maxOutput,
    ...(system.length > 0 && { system }),
    messages,
    ...(tools.length > 0 && { tools: tools.map(writeTool) }),
    ...writeToolChoice(conversation),
    ...(stop.length > 0 && { stop_sequences: stop }),
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { top_p: topP }),
    ...(topK !== undefined && { top_k: topK }),
    ...(thinking !== undefined && { thinking }),
    ...((format ?? effort) !== undefined && { output_config: { ...effort, ...format } }),
    ...writeUser(conversation),
    stream,
  };
}

/** Block types on which the Messages API rejects `cache_control`. */
const UNMARKED: ReadonlySet<string> = new Set(['thinking', 'redacted_thinking']);

/**
 * Puts `cache_control` on the last block that accepts it. A client that names a cache wants the repeated start of its prompt cached, and
 * Messages needs a mark where that start ends.
 */
function cachedToEnd(blocks: readonly JsonObject[]): readonly JsonObject[] {
  const at = blocks.findLastIndex(({ type, text }) => !UNMARKED.has(String(type)) && text !== '');
  return at === -1 ? blocks : blocks.with(at, { ...blocks[at], cache_control: { type: 'ephemeral' } });
}

interface Message {
  readonly role: Turn['role'];
  readonly content: readonly JsonObject[];
}

function writeMessages(call: TranslatedCall): readonly Message[] {
  const { turns, isBegun } = call.conversation;
  const messages = turns.map(({ role, parts }) => ({ role, content: parts.flatMap((part) => writePart(part, call)) }));
  if (messages.at(-1)?.role === 'assistant' && isBegun !== true)
    throw new NotTranslatable('isBegun', 'ends with an answer, and Messages would continue it');
  return messages;
}

function writeTool(tool: Tool): JsonObject {
  const { name, description, strict } = tool;
  return {
    name,
    ...(description !== undefined && { description }),
    input_schema: schemaOf(tool),
    ...(strict === true && { strict: true }),
  };
}

function writeToolChoice({ tools, toolChoice, parallelTools }: Conversation): JsonObject {
  if (tools.length === 0) return {};
  if (toolChoice === 'none') return { tool_choice: { type: 'none' } };
  const isSingle = parallelTools === false;
  if (toolChoice === undefined && !isSingle) return {};
  return { tool_choice: { ...choiceOf(toolChoice), ...(isSingle && { disable_parallel_tool_use: true }) } };
}

function choiceOf(choice: Exclude<ToolChoice, 'none'> = 'auto'): JsonObject {
  if (typeof choice === 'object') return { type: 'tool', name: choice.tool };
  return { type: choice === 'required' ? 'any' : 'auto' };
}

function writeFormat({ outputFormat }: Conversation): JsonObject | undefined {
  if (outputFormat?.kind !== 'schema') return undefined;
  return { format: { type: 'json_schema', schema: outputFormat.schema } };
}

function writeUser({ user }: Conversation): JsonObject {
  return user !== undefined && user.length <= MAX_USER_LENGTH ? { metadata: { user_id: user } } : {};
}
