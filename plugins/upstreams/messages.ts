import { defineAdapter, type EventNote } from '../../core/upstream';
import { UNKNOWN_USAGE, type Usage } from '../../core/usage';
import { asArray, asCount, asObject, asText, bytesOf, type JsonObject, parseData } from './json';
import { judgeFailure } from './judge-failure';
import { messagesContinuation } from './messages-continuation';
import { forwardedHeaders, standardEdits } from './standard-request';

/** The version of the protocol asked for when the client names none. */
const DEFAULT_VERSION = '2023-06-01';

/** The Messages protocol, as its vendor publishes it. */
export default defineAdapter({
  contract: 'upstream/1',
  name: 'messages',
  protocols: ['messages'],
  schema: { type: 'object', properties: {} },

  request(call) {
    const headers = forwardedHeaders(call);
    // `protoa-` is how the service's own interface spells the vendor's prefix.
    if (headers['anthropic-version'] === undefined && headers['protoa-version'] === undefined) {
      headers['anthropic-version'] = DEFAULT_VERSION;
    }
    return { path: `/v1/messages${call.query}`, headers, edits: standardEdits(call) };
  },

  authorize: (credential) => ({ 'x-api-key': credential }),

  judge: judgeFailure,

  continuation: messagesContinuation,

  readEvent({ name, data }) {
    if (data === undefined || data === '') return NOTHING;
    const event = parseData(data);
    if (event === 'malformed') return { malformed: true };
    if (event === 'unread') return name === 'content_block_stop' ? NOTHING : content(bytesOf(data));
    return readTyped(asText(event['type']) || (name ?? ''), event);
  },

  readBody(body) {
    const message = asObject(body) ?? {};
    let contentBytes = 0;
    for (const block of asArray(message['content'])) contentBytes += bytesOfBlock(asObject(block) ?? {});
    return { usage: readUsage(asObject(message['usage'])), contentBytes };
  },
});

const NOTHING: EventNote = {};

function content(contentBytes: number): EventNote {
  return { content: true, contentBytes };
}

function readTyped(type: string, event: JsonObject): EventNote {
  switch (type) {
    case 'message_start':
      return readStart(asObject(event['message']));
    case 'content_block_start':
      return readBlockStart(asObject(event['content_block']) ?? {});
    case 'content_block_delta':
      return readDelta(asObject(event['delta']) ?? {});
    case 'message_delta':
      return readEnd(event);
    case 'message_stop':
      return { done: true };
    case 'error':
      return { error: { body: event } };
    default:
      // ping, content_block_stop, and what the protocol may add.
      return NOTHING;
  }
}

/** The output count of the first event is a placeholder: taken for the real one it would make a broken stream free. */
function readStart(message: JsonObject | undefined): EventNote {
  const usage = asObject(message?.['usage']);
  return usage === undefined ? NOTHING : { usage: { ...readUsage(usage), outputTokens: undefined } };
}

/** An empty text or thinking block promises nothing yet; a tool call or anything else that stands whole is content. */
function readBlockStart(block: JsonObject): EventNote {
  const type = asText(block['type']);
  const bytes = bytesOfBlock(block);
  return bytes === 0 && (type === 'text' || type === 'thinking') ? NOTHING : content(bytes);
}

function bytesOfBlock(block: JsonObject): number {
  switch (asText(block['type'])) {
    case 'text':
      return bytesOf(asText(block['text']));
    case 'thinking':
      return bytesOf(asText(block['thinking']));
    case 'redacted_thinking':
      return bytesOf(asText(block['data']));
    case 'tool_use':
      return isEmptyObject(block['input']) ? 0 : bytesOf(block['input']);
    default:
      return 0;
  }
}

/** In a stream a tool call begins with `"input": {}` and its arguments follow. */
function isEmptyObject(value: unknown): boolean {
  const object = asObject(value);
  return object !== undefined && Object.keys(object).length === 0;
}

function readDelta(delta: JsonObject): EventNote {
  switch (asText(delta['type'])) {
    case 'text_delta':
      return delta['text'] === '' ? NOTHING : content(bytesOf(asText(delta['text'])));
    case 'thinking_delta':
      return delta['thinking'] === '' ? NOTHING : content(bytesOf(asText(delta['thinking'])));
    case 'input_json_delta':
      return content(bytesOf(asText(delta['partial_json'])));
    default:
      // Signatures and citations go with content that is counted, and unknown kinds must not be held back.
      return content(0);
  }
}

function readEnd(event: JsonObject): EventNote {
  const finish = asText(asObject(event['delta'])?.['stop_reason']) !== '';
  const usage = asObject(event['usage']);
  return {
    ...(finish && { finish }),
    ...(usage !== undefined && { usage: readUsage(usage) }),
    ...(finish && usage !== undefined && { finalUsage: true }),
  };
}

function readUsage(usage: JsonObject | undefined): Usage {
  if (usage === undefined) return UNKNOWN_USAGE;
  const split = asObject(usage['cache_creation']);
  const allWrites = asCount(usage['cache_creation_input_tokens']);
  const shortWrites = asCount(split?.['ephemeral_5m_input_tokens']);
  const hourWrites = asCount(split?.['ephemeral_1h_input_tokens']);
  return {
    inputTokens: asCount(usage['input_tokens']),
    outputTokens: asCount(usage['output_tokens']),
    cacheReadTokens: asCount(usage['cache_read_input_tokens']),
    cacheWriteTokens: shortCacheWrites(allWrites, shortWrites, hourWrites),
    cacheWrite1hTokens: hourWrites,
  };
}

/** The sum is the older field and always right; what of it did not go to the one-hour cache went to the short one. */
function shortCacheWrites(all: number | undefined, short: number | undefined, hour: number | undefined) {
  if (all === undefined || hour === undefined) return short ?? all;
  return Math.max(all - hour, 0);
}
