import { type BodyEdit, defineAdapter, type EventNote, type ModelCall, withDeltas } from '../../core/catalog/upstream';
import { UNKNOWN_USAGE } from '../../core/catalog/usage';
import { asArray, asCount, asObject, asText, type JsonObject } from '../../core/json-values';
import { readUsage } from '../../core/protocols/chat/usage';
import { bytesOf, parseData } from '../../core/protocols/event-json';
import { ADDRESS_SCHEMA, addressOf, credentialHeader } from './address';
import { CLOUD_STORAGE, VERTEX_HOST } from './google-token';
import { judgeFailure } from './judge-failure';
import { forwardedHeaders, standardEdits } from './standard-request';

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
