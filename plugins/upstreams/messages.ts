import { defineAdapter, type EventNote, USUAL_VERSION, withDeltas } from '../../core/catalog/upstream';
import { UNKNOWN_USAGE, withOutput } from '../../core/catalog/usage';
import { asArray, asObject, asText, type JsonObject } from '../../core/json-values';
import { bytesOf, parseData } from '../../core/protocols/event-json';
import { readUsage } from '../../core/protocols/messages/usage';
import { ADDRESS_SCHEMA, addressOf, credentialHeader } from './address';
import { judgeFailure } from './judge-failure';
import { forwardedHeaders, standardEdits } from './standard-request';

const DELTAS = { texts: ['text', 'thinking', 'data', 'partial_json'] };

/** The Messages protocol, as its vendor publishes it. */
export default defineAdapter({
  contract: 'upstream/1',
  name: 'messages',
  protocols: ['messages'],
  opens: [{ host: 'api.anthropic.com' }],
  schema: ADDRESS_SCHEMA,

  request(call, settings) {
    const headers: Record<string, string> = Object.assign(forwardedHeaders(call), settings.headers);
    // The service's own interface spells the vendor's header prefix `protoa-`.
    if (headers['anthropic-version'] === undefined && headers['protoa-version'] === undefined) {
      headers['anthropic-version'] = USUAL_VERSION;
    }
    return { path: addressOf(call, settings, '/v1/messages'), headers, edits: standardEdits(call) };
  },

  authorize: (credential, settings) => credentialHeader(credential, settings, 'x-api-key'),

  judge: judgeFailure,

  readEvent: withDeltas(DELTAS, ({ name, data }) => {
    if (data === undefined || data === '') return NOTHING;
    const event = parseData(data);
    if (event === 'malformed') return { malformed: true };
    if (event === 'unread') return name === 'content_block_stop' ? NOTHING : content(bytesOf(data));
    return readTyped(asText(event['type']) || (name ?? ''), event);
  }),

  readBody(body) {
    const message = asObject(body) ?? {};
    if (message['type'] === 'error') return { usage: UNKNOWN_USAGE, contentBytes: 0, error: { body } };
    let contentBytes = 0;
    for (const block of asArray(message['content'])) contentBytes += bytesOfBlock(asObject(block) ?? {});
    return { usage: readUsage(message, true), contentBytes };
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
      // `ping`, `content_block_stop`, and events that the protocol may add.
      return NOTHING;
  }
}

/** Reads the first event. Its output count is a placeholder: if it counted, a broken stream would be almost free. */
function readStart(message: JsonObject | undefined): EventNote {
  if (asObject(message?.['usage']) === undefined) return NOTHING;
  return { usage: withOutput(readUsage(message ?? {}, false), undefined) };
}

/** Reads the beginning of a block. An empty text or thinking block promises no content; a tool call, or any block that is whole, is content. */
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

/** Tells whether a tool's input is `{}`. In a stream a tool call begins with `"input": {}`, and its arguments follow. */
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
      // Signatures and citations belong to content that is counted, and unknown kinds must not be delayed.
      return content(0);
  }
}

function readEnd(event: JsonObject): EventNote {
  const finish = asText(asObject(event['delta'])?.['stop_reason']) !== '';
  const usage = asObject(event['usage']);
  return {
    ...(finish && { finish }),
    ...(usage !== undefined && { usage: readUsage(event, true) }),
    ...(finish && usage !== undefined && { finalUsage: true }),
  };
}
