import type { JsonObject } from '../../base/json-values';
import { type Conversation, NotTranslatable, type OutputFormat, type Reasoning } from '../../catalog/conversation';
import { booleanAt, integerAt, numberAt, optionalText, optionalWord, outputFormatOf } from '../checked';
import { EFFORTS } from '../effort';
import { readMessages } from './read-messages';
import { readToolChoice, readTools } from './read-tools';
import { CHAT_RULES } from './request';

/** Converts the body of a Chat request to a conversation. @throws NotTranslatable */
export function readChatRequest(body: JsonObject): Conversation {
  const request = CHAT_RULES.carriedMembers(body);
  return {
    ...readMessages(request),
    tools: readTools(request),
    toolChoice: readToolChoice(request),
    parallelTools: booleanAt(request, 'parallel_tool_calls'),
    outputFormat: readFormat(request),
    maxTokens: readLimit(request),
    choices: integerAt(request, 'n', 1) ?? 1,
    stream: booleanAt(request, 'stream') ?? false,
    stop: readStop(request['stop'] ?? []),
    ...readSampling(request),
    reasoning: readReasoning(request),
    verbosity: optionalWord(request, 'verbosity', ['low', 'medium', 'high']),
    cacheKey: optionalText(request, 'prompt_cache_key'),
    user: optionalText(request, 'safety_identifier') ?? optionalText(request, 'user'),
  };
}

type Sampling = 'temperature' | 'topP' | 'topK' | 'frequencyPenalty' | 'presencePenalty' | 'seed';

/** Reads the sampling settings. A penalty of 0 counts as absent. */
function readSampling(request: JsonObject): Pick<Conversation, Sampling> {
  return {
    temperature: numberAt(request, 'temperature'),
    topP: numberAt(request, 'top_p'),
    topK: numberAt(request, 'top_k'),
    frequencyPenalty: numberAt(request, 'frequency_penalty') || undefined,
    presencePenalty: numberAt(request, 'presence_penalty') || undefined,
    seed: numberAt(request, 'seed'),
  };
}

function readLimit(request: JsonObject): number | undefined {
  const older = integerAt(request, 'max_tokens', 1);
  const newer = integerAt(request, 'max_completion_tokens', 1);
  return older === undefined || newer === undefined ? (older ?? newer) : Math.min(older, newer);
}

function readStop(given: unknown): readonly string[] {
  const stop: readonly unknown[] = Array.isArray(given) ? given : [given];
  return stop.map((each) => {
    if (typeof each === 'string') return each;
    throw new NotTranslatable('stop', 'must be text, or a list of texts');
  });
}

function readReasoning(request: JsonObject): Reasoning | undefined {
  const effort = optionalWord(request, 'reasoning_effort', EFFORTS);
  return effort === undefined ? undefined : { effort };
}

function readFormat(request: JsonObject): OutputFormat | undefined {
  const path = 'response_format';
  const format = CHAT_RULES.carriedMembers(request[path] ?? {}, path, path);
  const inner = `${path}.json_schema`;
  return outputFormatOf(format, path, inner, () => CHAT_RULES.carriedMembers(format['json_schema'], inner, inner));
}
