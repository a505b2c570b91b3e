import { asObject, type JsonObject } from '../../base/json-values';
import type { Conversation, OutputFormat, Tool } from '../../catalog/conversation';
import type { TranslatedCall } from '../../catalog/upstream';
import { present } from '../checked';
import { effortOf } from '../effort';
import { fitted } from '../fitted';
import { schemaOf } from '../text-tools';
import { CHAT_FORMS, CHAT_UNSUPPORTED } from './limits';
import { writeMessages } from './write-messages';

/** Writes a request. @throws NotTranslatable */
export function writeChatRequest(call: TranslatedCall): JsonObject {
  const { model } = call;
  const conversation = fitted(call, CHAT_UNSUPPORTED, CHAT_FORMS);
  const { maxTokens, choices, stop, stream } = conversation;
  return present({
    model,
    messages: writeMessages({ ...call, conversation }),
    max_tokens: maxTokens,
    n: choices > 1 ? choices : undefined,
    stream: stream || undefined,
    stop: stop.length > 0 ? stop : undefined,
    temperature: conversation.temperature,
    top_p: conversation.topP,
    frequency_penalty: conversation.frequencyPenalty || undefined,
    presence_penalty: conversation.presencePenalty || undefined,
    seed: conversation.seed,
    ...writeTools(conversation),
    response_format: conversation.outputFormat && writeFormat(conversation.outputFormat),
    reasoning_effort: effortFor(call),
  });
}

function effortFor({ conversation, reasoning }: TranslatedCall): string | undefined {
  return reasoning === 'effort' && conversation.reasoning !== undefined ? effortOf(conversation.reasoning) : undefined;
}

/** Writes the tools and their settings. For a request without tools it writes no tool settings, because vendors refuse settings without tools. */
function writeTools({ tools, toolChoice, parallelTools }: Conversation): JsonObject {
  if (tools.length === 0) return {};
  return {
    tools: tools.map(writeTool),
    tool_choice: typeof toolChoice === 'object' ? chosenTool(toolChoice.tool, tools) : toolChoice,
    parallel_tool_calls: parallelTools,
  };
}

function chosenTool(name: string, tools: readonly Tool[]): JsonObject {
  const isText = tools.some((tool) => tool.name === name && tool.input === 'text');
  return isText ? { type: 'custom', custom: { name } } : { type: 'function', function: { name } };
}

function writeTool(tool: Tool): JsonObject {
  const { name, description, strict, input, format } = tool;
  if (input === 'text') return { type: 'custom', custom: present({ name, description, format: nestedFormat(format) }) };
  return { type: 'function', function: present({ name, description, parameters: schemaOf(tool), strict }) };
}

/** Returns a grammar in the form of Chat, which nests it one level deeper than `Tool`. */
function nestedFormat(format: unknown): unknown {
  const { type, ...grammar } = asObject(format) ?? {};
  return type === 'grammar' ? { type, grammar } : format;
}

function writeFormat(format: OutputFormat): JsonObject {
  if (format.kind === 'json') return { type: 'json_object' };
  const { name = 'answer', description, schema, strict } = format;
  return { type: 'json_schema', json_schema: present({ name, description, schema, strict }) };
}
