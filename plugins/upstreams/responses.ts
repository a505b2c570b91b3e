import { defineAdapter, type EventNote, withDeltas } from '../../core/catalog/upstream';
import { asArray, asObject, asText, type JsonObject } from '../../core/json-values';
import { bytesOf, parseData } from '../../core/protocols/event-json';
import { readLargeEvent } from '../../core/protocols/responses/large-event';
import { readUsage } from '../../core/protocols/responses/usage';
import { ADDRESS_SCHEMA, addressOf, credentialHeader } from './address';
import { judgeFailure } from './judge-failure';
import { forwardedHeaders, standardEdits } from './standard-request';

const DELTAS = {
  texts: ['delta', 'text', 'refusal', 'arguments', 'input', 'code'],
  ignored: ['sequence_number', 'obfuscation'],
};

/** The Responses protocol, as its vendor publishes it. */
export default defineAdapter({
  contract: 'upstream/1',
  name: 'responses',
  protocols: ['responses'],
  opens: [{ host: 'api.openai.com' }],
  schema: ADDRESS_SCHEMA,

  request: (call, settings) => ({
    path: addressOf(call, settings, '/v1/responses'),
    headers: Object.assign(forwardedHeaders(call), settings.headers),
    edits: standardEdits(call),
  }),

  authorize: (credential, settings) => credentialHeader(credential, settings, 'bearer'),

  judge: judgeFailure,

  readEvent: withDeltas(DELTAS, ({ name, data }) => {
    // Some upstreams end every stream with Chat's `[DONE]`; this protocol ends with `response.completed`.
    if (data === undefined || data === '' || data.trim() === '[DONE]') return NOTHING;
    const event = parseData(data);
    if (event === 'malformed') return { malformed: true };
    if (event !== 'unread') return readTyped(asText(event['type']) || (name ?? ''), event);
    const large = readLargeEvent(data, name);
    return large === undefined ? { malformed: true } : readTyped(large.type, large.event);
  }),

  readBody(body) {
    const response = asObject(body) ?? {};
    if (response['status'] === 'failed') return { usage: readUsage(response), contentBytes: 0, error: { body } };
    let contentBytes = 0;
    for (const item of asArray(response['output'])) contentBytes += bytesOfItem(asObject(item) ?? {});
    return { usage: readUsage(response), contentBytes };
  },
});

const NOTHING: EventNote = {};

const USAGE_AT = ['response', 'usage'] as const;

/** The end of the names of all events with text. `…done` and `response.completed` repeat that text. */
const DELTA = '.delta';

function readTyped(type: string, event: JsonObject): EventNote {
  switch (type) {
    case 'response.completed':
    case 'response.incomplete':
      return readEnd(asObject(event['response']) ?? {});
    case 'response.failed': {
      const response = asObject(event['response']) ?? {};
      return { error: { body: response }, ...usageOf(response) };
    }
    case 'error':
      return { error: { body: event } };
    case 'response.output_item.added':
      return readItemStart(asObject(event['item']) ?? {});
    case 'response.audio.delta':
    case 'response.image_generation_call.partial_image':
      return content(0);
    default:
      return type.endsWith(DELTA) ? readDelta(event['delta']) : NOTHING;
  }
}

function content(contentBytes: number): EventNote {
  return { content: true, contentBytes };
}

function readDelta(delta: unknown): EventNote {
  return delta === '' ? NOTHING : content(bytesOf(asText(delta)));
}

/** Reads the beginning of an item. A message or reasoning promises no content yet; a tool call, or any item that is whole, is content. */
function readItemStart(item: JsonObject): EventNote {
  const type = asText(item['type']);
  return type === 'message' || type === 'reasoning' ? NOTHING : content(bytesOfItem(item));
}

function readEnd(response: JsonObject): EventNote {
  const reported = usageOf(response);
  const isFinal = reported.usage !== undefined;
  return { finish: true, done: true, ...reported, ...(isFinal && { finalUsage: true, usageAt: USAGE_AT }) };
}

function usageOf(response: JsonObject): Pick<EventNote, 'usage'> {
  return asObject(response['usage']) === undefined ? {} : { usage: readUsage(response) };
}

/** Counts the bytes of an item: text, refusals, reasoning and its summary, arguments of tools, code, patches. */
function bytesOfItem(item: JsonObject): number {
  let bytes = 0;
  for (const name of ['content', 'summary'])
    for (const each of asArray(item[name])) {
      const part = asObject(each);
      bytes += bytesOf(asText(part?.['text'])) + bytesOf(asText(part?.['refusal']));
    }
  for (const name of ['arguments', 'input', 'code']) bytes += bytesOf(asText(item[name]));
  for (const name of ['action', 'operation']) {
    const said = asObject(item[name]);
    if (said !== undefined && !VENDORS_OWN.has(asText(item['type']))) bytes += bytesOf(said);
  }
  return bytes;
}

/** The calls of tools that run at the vendor. The text in them is not output of the model. */
const VENDORS_OWN: ReadonlySet<string> = new Set(['web_search_call']);
