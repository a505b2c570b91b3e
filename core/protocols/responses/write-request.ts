import type { JsonObject } from '../../base/json-values';
import type { Conversation, OutputFormat, Tool, ToolChoice } from '../../catalog/conversation';
import type { TranslatedCall } from '../../catalog/upstream';
import { present } from '../checked';
import { effortOf } from '../effort';
import { fitted } from '../fitted';
import { schemaOf } from '../text-tools';
import { MAX_TOOL_NAME_LENGTH, RESPONSES_FORMS, RESPONSES_UNSUPPORTED } from './limits';
import { writeItems } from './write-items';

/** Returns the body of a Responses call. @throws NotTranslatable */
export function writeResponsesRequest(call: TranslatedCall): JsonObject {
  const conversation = fitted(call, RESPONSES_UNSUPPORTED, RESPONSES_FORMS);
  const { instructions, tools, toolChoice, parallelTools, maxTokens, temperature, topP } = conversation;
  return present({
    model: call.model,
    instructions: instructions.map(({ text }) => text).join('\n\n') || undefined,
    input: writeItems({ ...call, conversation }),
    tools: tools.length > 0 ? tools.map(writeTool) : undefined,
    tool_choice: toolChoice && choiceOf(toolChoice, tools),
    parallel_tool_calls: parallelTools,
    text: textOf(conversation),
    max_output_tokens: maxTokens,
    temperature,
    top_p: topP,
    ...reasoningOf(call),
    prompt_cache_key: shortName(conversation.cacheKey),
    safety_identifier: shortName(conversation.user),
    store: false,
    stream: conversation.stream,
  });
}

function shortName(name: string | undefined): string | undefined {
  return name !== undefined && name.length <= MAX_TOOL_NAME_LENGTH ? name : undefined;
}

/** Writes a tool. A function always gets an explicit `strict`, because without one the vendor would try to enforce the function's schema. */
function writeTool(tool: Tool): JsonObject {
  const { name, description, strict = false, input, format } = tool;
  if (input === 'text') return present({ type: 'custom', name, description, format });
  return present({ type: 'function', name, description, parameters: schemaOf(tool), strict });
}

function choiceOf(choice: ToolChoice, tools: readonly Tool[]): unknown {
  if (typeof choice === 'string') return choice;
  const input = choice.input ?? tools.find(({ name }) => name === choice.tool)?.input;
  return { type: input === 'text' ? 'custom' : 'function', name: choice.tool };
}

function textOf({ outputFormat, verbosity }: Conversation): JsonObject | undefined {
  if (outputFormat === undefined && verbosity === undefined) return undefined;
  return present({ format: outputFormat && formatOf(outputFormat), verbosity });
}

/** The name that the gateway gives to a schema without a name, because Responses requires one. */
const USUAL_NAME = 'answer';

function formatOf(format: OutputFormat): JsonObject {
  if (format.kind === 'json') return { type: 'json_object' };
  const { name = USUAL_NAME, description, schema, strict = false } = format;
  return present({ type: 'json_schema', name, description, schema, strict });
}

/** Returns the reasoning settings. They request encrypted reasoning, because the vendor stores none and the client's next call must send it back. */
function reasoningOf({ conversation: { reasoning }, reasoning: setting }: TranslatedCall): JsonObject {
  if (setting !== 'effort') return {};
  const include = ['reasoning.encrypted_content'];
  if (reasoning === undefined) return { include };
  const summary = reasoning.isShown === false ? undefined : 'auto';
  return { reasoning: present({ effort: effortOf(reasoning), summary }), include };
}
