import type { JsonObject } from '../../base/json-values';
import type { Conversation, OutputFormat, Reasoning } from '../../catalog/conversation';
import { booleanAt, integerAt, numberAt, optionalText, optionalWord, outputFormatOf } from '../checked';
import { EFFORTS } from '../effort';
import { readInput } from './read-items';
import { ToolReader } from './read-tools';
import { RESPONSES_RULES } from './request';

/** Converts the body of a Responses request to a conversation. @throws NotTranslatable */
export function readResponsesRequest(body: JsonObject): Conversation {
  const request = RESPONSES_RULES.carriedMembers(body);
  const reader = new ToolReader();
  reader.readList(request);
  const { instructions, turns } = readInput(request, reader);
  const text = RESPONSES_RULES.carriedMembers(request['text'] ?? {}, 'text', 'text');
  return {
    instructions,
    turns,
    tools: reader.tools,
    toolChoice: reader.readChoice(request),
    parallelTools: booleanAt(request, 'parallel_tool_calls'),
    outputFormat: readFormat(text),
    maxTokens: integerAt(request, 'max_output_tokens', 1),
    choices: 1,
    stream: booleanAt(request, 'stream') ?? false,
    stop: [],
    temperature: numberAt(request, 'temperature'),
    topP: numberAt(request, 'top_p'),
    reasoning: readReasoning(request),
    verbosity: optionalWord(text, 'verbosity', ['low', 'medium', 'high'], 'text'),
    cacheKey: optionalText(request, 'prompt_cache_key'),
    user: optionalText(request, 'safety_identifier') ?? optionalText(request, 'user'),
  };
}

/** Reads the reasoning setting. The reasoning is shown if the client requests a summary. */
function readReasoning(request: JsonObject): Reasoning | undefined {
  if (request['reasoning'] === undefined) return undefined;
  const given = RESPONSES_RULES.carriedMembers(request['reasoning'], 'reasoning', 'reasoning');
  const effort = optionalWord(given, 'effort', EFFORTS, 'reasoning');
  const summary = given['summary'] ?? given['generate_summary'];
  if (effort === undefined && summary === undefined) return undefined;
  return { ...(effort !== undefined && { effort }), isShown: summary !== undefined };
}

function readFormat(text: JsonObject): OutputFormat | undefined {
  const path = 'text.format';
  return outputFormatOf(RESPONSES_RULES.carriedMembers(text['format'] ?? {}, path, path), path);
}
