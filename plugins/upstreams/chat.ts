import { type BodyEdit, defineAdapter, type EventNote, type ModelCall, withDeltas } from '../../core/catalog/upstream';
import { countsOf, type TokenMeter, UNKNOWN_USAGE, type Usage } from '../../core/catalog/usage';
import { ADDRESS_SCHEMA, addressOf, credentialHeader } from './address';
import { CLOUD_STORAGE, VERTEX_HOST } from './google-token';
import { asArray, asCount, asObject, asText, bytesOf, type JsonObject, parseData } from './json';
import { judgeFailure } from './judge-failure';
import { forwardedHeaders, standardEdits } from './standard-request';
import { unknownNumbers } from './unknown-numbers';

const LIMITS = ['max_tokens', 'max_completion_tokens'] as const;

const DELTAS = {
  texts: ['content', 'refusal', 'reasoning', 'reasoning_content', 'text', 'arguments', 'input'],
  ignored: ['created', 'obfuscation'],
};

/** The Chat protocol (chat completions), with the reasoning fields several vendors have added to it. */
export default defineAdapter({
  contract: 'upstream/1',
  name: 'chat',
  protocols: ['chat'],
  opens: [{ host: 'api.openai.com' }, ...CLOUD_STORAGE.map((each) => ({ ...each, at: VERTEX_HOST }))],
  schema: {
    ...ADDRESS_SCHEMA,
    properties: {
      ...ADDRESS_SCHEMA.properties,
      limit: {
        description: 'The member in which calls of Chat say how long the answer may be. Default: as the call says it.',
        enum: LIMITS,
      },
    },
  },

  request(call, settings) {
    const edits = [...standardEdits(call), ...limitEdits(call, settings.limit)];
    if (call.stream && call.streamUsage) edits.push(askForUsage(call));
    return {
      path: addressOf(call, settings, '/v1/chat/completions'),
      headers: Object.assign(forwardedHeaders(call), settings.headers),
      edits,
    };
  },

  authorize: (credential, settings) => credentialHeader(credential, settings, 'bearer'),

  judge: judgeFailure,

  readEvent: withDeltas(DELTAS, ({ data }) => {
    if (data === undefined || data === '') return {};
    if (data.trim() === '[DONE]') return { done: true };
    const chunk = parseData(data);
    if (chunk === 'malformed') return { malformed: true };
    if (chunk === 'unread') return { content: true, contentBytes: bytesOf(data) };
    if (isError(chunk['error'])) return { error: { body: chunk } };
    return readChunk(chunk);
  }),

  readBody(body) {
    const answer = asObject(body) ?? {};
    if (isError(answer['error'])) return { ...NO_ANSWER, error: { body } };
    let contentBytes = 0;
    for (const choice of asArray(answer['choices'])) contentBytes += readSaid(asObject(choice)?.['message']).bytes;
    return { usage: readUsage(answer), contentBytes };
  },
});

/** Writes the limit into the one member that the upstream accepts: newer models reject `max_tokens`, and older servers know no other. */
function limitEdits({ members }: ModelCall, wanted: (typeof LIMITS)[number] | undefined): BodyEdit[] {
  const others = LIMITS.filter((member) => member !== wanted && members.has(member));
  if (wanted === undefined || others.length === 0) return [];
  const said = LIMITS.map((member) => members.get(member) ?? 'null').filter((limit) => limit !== 'null');
  const limit = said.length === 0 ? [] : [{ member: wanted, set: String(Math.min(...said.map(Number))) }];
  return [...others.map((member) => ({ member, drop: true as const })), ...limit];
}

/** Sets `include_usage`, because without it a stream ends without token counts and the call cannot be priced. */
function askForUsage(call: ModelCall): BodyEdit {
  const raw = call.members.get('stream_options');
  const options = raw === undefined ? undefined : asObject(JSON.parse(raw));
  return { member: 'stream_options', set: JSON.stringify({ ...options, include_usage: true }) };
}

const NO_ANSWER = { usage: UNKNOWN_USAGE, contentBytes: 0 };

/** Tells whether an `error` member is an error. Some upstreams put `"error": null` into every chunk. */
function isError(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '';
}

function readChunk(chunk: JsonObject): EventNote {
  const choices = asArray(chunk['choices']).map((choice) => asObject(choice) ?? {});
  const said = choices.map((choice) => readSaid(choice['delta']));
  const finishedChoices = choices
    .filter((choice) => asText(choice['finish_reason']) !== '')
    .map((choice, at) => asCount(choice['index']) ?? at);
  const finish = finishedChoices.length > 0;
  const usage = asObject(chunk['usage']);
  return {
    ...(said.some((each) => each.isContent) && {
      content: true,
      contentBytes: said.reduce((sum, each) => sum + each.bytes, 0),
    }),
    ...(finish && { finish, finishedChoices }),
    ...(usage !== undefined && { usage: readUsage(chunk) }),
    // Some upstreams report running counts in every chunk. The final counts are in a chunk without choices, or in the chunk that ends the choices.
    ...(usage !== undefined && (choices.length === 0 || finish) && { finalUsage: true }),
  };
}

interface Said {
  readonly isContent: boolean;
  readonly bytes: number;
}

/** Reads the content of a `delta` or `message`: text, refusal, reasoning and the arguments of tool calls. */
function readSaid(value: unknown): Said {
  const message = asObject(value) ?? {};
  const calls = [...asArray(message['tool_calls']), { function: message['function_call'] }].map(readToolCall);
  // An upstream that sends both spellings of reasoning sends the same text in both.
  const reasoning = Math.max(bytesOf(asText(message['reasoning'])), bytesOf(asText(message['reasoning_content'])));
  const bytes = bytesOfContent(message['content']) + bytesOf(asText(message['refusal'])) + reasoning;
  return {
    isContent: bytes > 0 || calls.some((call) => call.isContent) || asObject(message['audio']) !== undefined,
    bytes: calls.reduce((sum, call) => sum + call.bytes, bytes),
  };
}

/** Counts the bytes of a content: a string, or in some dialects a list of parts with `text`. */
function bytesOfContent(content: unknown): number {
  let bytes = bytesOf(asText(content));
  for (const part of asArray(content)) bytes += bytesOf(asText(asObject(part)?.['text']));
  return bytes;
}

function readToolCall(value: unknown): Said {
  const call = asObject(value) ?? {};
  const called = asObject(call['function']) ?? asObject(call['custom']) ?? {};
  const bytes = bytesOf(asText(called['arguments'])) + bytesOf(asText(called['input']));
  return { isContent: bytes > 0 || asText(called['name']) !== '', bytes };
}

/** Known numbers of a usage report: charged, parts of charged numbers, or free. */
const KNOWN: ReadonlySet<string> = new Set([
  'prompt_tokens',
  'completion_tokens',
  'total_tokens',
  'prompt_cache_hit_tokens',
  'prompt_cache_miss_tokens',
  ...['cached', 'cache_write', 'audio', 'text', 'image'].map((kind) => `prompt_tokens_details.${kind}_tokens`),
  ...['reasoning', 'audio', 'text', 'image', 'accepted_prediction', 'rejected_prediction'].map(
    (kind) => `completion_tokens_details.${kind}_tokens`,
  ),
]);

/** The service tiers that the plain price covers. */
const PLAIN_TIERS = ['default', 'auto', 'standard'];

type Meters<M extends TokenMeter> = { readonly [meter in M]?: number | undefined };

/** Reads the usage that an answer or a chunk reports; it has one pass. */
function readUsage(answer: JsonObject): Usage {
  const usage = asObject(answer['usage']);
  if (usage === undefined) return UNKNOWN_USAGE;
  const tier = asText(answer['service_tier']);
  const { input, cacheRead, cacheWrite, audioInput } = readPrompt(usage);
  const { output, audioOutput } = readCompletion(usage);
  const pass = {
    model: asText(answer['model']) || undefined,
    tier: tier === '' || PLAIN_TIERS.includes(tier) ? undefined : tier,
    counts: countsOf({ input, cacheRead, cacheWrite, audioInput, output, audioOutput }),
  };
  const unknown = unknownNumbers(usage, KNOWN);
  return unknown === undefined ? { passes: [pass] } : { passes: [pass], unknown };
}

/**
 * Reads the input counts. `prompt_tokens` includes cached, written and audio tokens. If those exceed it, the report makes no sense
 * and the input is unknown.
 */
function readPrompt(usage: JsonObject): Meters<'input' | 'cacheRead' | 'cacheWrite' | 'audioInput'> {
  const details = asObject(usage['prompt_tokens_details']);
  const prompt = asCount(usage['prompt_tokens']);
  const cacheRead = asCount(details?.['cached_tokens']) ?? asCount(usage['prompt_cache_hit_tokens']);
  const cacheWrite = asCount(details?.['cache_write_tokens']) || undefined;
  const audioInput = asCount(details?.['audio_tokens']) || undefined;
  const input = rest(prompt, cacheRead, cacheWrite, audioInput);
  return input === undefined ? {} : { input, cacheRead, cacheWrite, audioInput };
}

function readCompletion(usage: JsonObject): Meters<'output' | 'audioOutput'> {
  const audioOutput = asCount(asObject(usage['completion_tokens_details'])?.['audio_tokens']) || undefined;
  const output = rest(asCount(usage['completion_tokens']), audioOutput);
  return output === undefined ? {} : { output, audioOutput };
}

/** Returns the total less its parts; undefined if the parts exceed the total. */
function rest(all: number | undefined, ...parts: readonly (number | undefined)[]): number | undefined {
  if (all === undefined) return undefined;
  let left = all;
  for (const part of parts) left -= part ?? 0;
  return left < 0 ? undefined : left;
}
