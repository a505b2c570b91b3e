import type { JsonObject } from '../../base/json-values';
import { type Conversation, NotTranslatable, type OutputFormat, type Reasoning } from '../../catalog/conversation';
import { booleanAt, integerAt, numberAt, optionalText, optionalWord, schemaAt, textAt } from '../checked';
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

const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const;

/** Reads the reasoning setting. The reasoning is shown if the client requests a summary. */
function readReasoning(request: JsonObject): Reasoning | undefined {
  if (request['reasoning'] === undefined) return undefined;
  const given = RESPONSES_RULES.carriedMembers(request['reasoning'], 'reasoning', 'reasoning');
  const effort = optionalWord(given, 'effort', EFFORTS, 'reasoning');
  const summary = given['summary'] ?? given['generate_summary'];
  if (effort === undefined && summary === undefined) return undefined;
  return { ...(effort !== undefined && { effort }), isShown: summary !== undefined };
}

const FORMATS = ['text', 'json_object', 'json_schema'] as const;

function readFormat(text: JsonObject): OutputFormat | undefined {
  const path = 'text.format';
  const format = RESPONSES_RULES.carriedMembers(text['format'] ?? {}, path, path);
  const type = optionalWord(format, 'type', FORMATS, path) ?? 'text';
  if (type === 'text') return undefined;
  if (type === 'json_object') return { kind: 'json' };
  if (format['schema'] === undefined) throw new NotTranslatable(`${path}.schema`, 'is missing');
  return {
    kind: 'schema',
    name: textAt(format, 'name', path),
    description: optionalText(format, 'description', path),
    schema: schemaAt(format, 'schema', path),
    strict: booleanAt(format, 'strict', path),
  };
}
