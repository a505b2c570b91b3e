import { defineAdapter, type EventNote, USUAL_VERSION, withDeltas } from '../../core/catalog/upstream';
import { type Counts, countsOf, type Pass, UNKNOWN_USAGE, type Usage, withOutput } from '../../core/catalog/usage';
import { ADDRESS_SCHEMA, addressOf, credentialHeader } from './address';
import { asArray, asCount, asObject, asText, bytesOf, type JsonObject, parseData } from './json';
import { judgeFailure } from './judge-failure';
import { forwardedHeaders, standardEdits } from './standard-request';
import { unknownNumbers } from './unknown-numbers';

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
    return { usage: readReport(message, true), contentBytes };
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
  return { usage: withOutput(readReport(message ?? {}, false), undefined) };
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
    ...(usage !== undefined && { usage: readReport(event, true) }),
    ...(finish && usage !== undefined && { finalUsage: true }),
  };
}

/** Known numbers of a usage report: charged, parts of charged numbers, or free. Each entry of `iterations` has the first ones too. */
const COUNTED = [
  'input_tokens',
  'output_tokens',
  'cache_read_input_tokens',
  'cache_creation_input_tokens',
  'cache_creation.ephemeral_5m_input_tokens',
  'cache_creation.ephemeral_1h_input_tokens',
  'output_tokens_details.thinking_tokens',
];
const KNOWN: ReadonlySet<string> = new Set([
  ...COUNTED,
  ...COUNTED.map((path) => `iterations.${path}`),
  'server_tool_use.web_search_requests',
  'server_tool_use.web_fetch_requests',
]);

/** The tier, speed and geography that the plain price covers. */
const PLAIN = { tier: ['standard'], speed: ['standard'], geo: ['global', 'not_available'] } as const;

/**
 * Reads the usage that a message, or the last event of a stream, reports. Each entry of `iterations` is a pass. Only `iterations`
 * counts compaction and the advisor.
 */
function readReport(message: JsonObject, isFinal: boolean): Usage {
  const usage = asObject(message['usage']);
  if (usage === undefined) return UNKNOWN_USAGE;
  const isCredited = isRedeemed(usage);
  const pieces = piecesOf(usage, isFinal && hasContainer(message));
  const passOf = (run: JsonObject, model: unknown, isFirst: boolean): Pass => {
    const counts = isFirst ? withPieces(readCounts(run), pieces) : readCounts(run);
    return {
      model: asText(model) || undefined,
      tier: unlessPlain(usage['service_tier'], PLAIN.tier),
      speed: unlessPlain(usage['speed'], PLAIN.speed),
      geo: unlessPlain(usage['inference_geo'], PLAIN.geo),
      counts: isCredited ? asCacheReads(counts) : counts,
    };
  };
  const runs = isFinal ? asArray(usage['iterations']) : [];
  const passes =
    runs.length === 0
      ? [passOf(usage, message['model'], true)]
      : runs.map((each, at) => {
          const run = asObject(each) ?? {};
          return passOf(run, run['model'], at === 0);
        });
  const unknown = isFinal ? unknownNumbers(usage, KNOWN) : undefined;
  return unknown === undefined ? { passes } : { passes, unknown };
}

function unlessPlain(value: unknown, plain: readonly string[]): string | undefined {
  const text = asText(value);
  return text === '' || plain.includes(text) ? undefined : text;
}

function readCounts(usage: JsonObject): Counts {
  const split = asObject(usage['cache_creation']);
  const allWrites = asCount(usage['cache_creation_input_tokens']);
  const shortWrites = asCount(split?.['ephemeral_5m_input_tokens']);
  const hourWrites = asCount(split?.['ephemeral_1h_input_tokens']);
  return countsOf({
    input: asCount(usage['input_tokens']),
    output: asCount(usage['output_tokens']),
    cacheRead: asCount(usage['cache_read_input_tokens']),
    cacheWrite: shortCacheWrites(allWrites, shortWrites, hourWrites),
    cacheWrite1h: hourWrites,
  });
}

/**
 * Counts the uses of the vendor's tools. The report does not count code executions: a call with a container had one, which is free
 * beside web tools.
 */
function piecesOf(usage: JsonObject, hasContainer: boolean): Counts {
  const used = asObject(usage['server_tool_use']);
  const webSearch = asCount(used?.['web_search_requests']) || undefined;
  const webFetch = asCount(used?.['web_fetch_requests']) || undefined;
  const ranCode = hasContainer && webSearch === undefined && webFetch === undefined;
  return countsOf({ webSearch, webFetch, codeExecution: ranCode ? 1 : undefined });
}

/** Tells whether an answer, or the last event of a stream, names a container. */
function hasContainer({ container, delta }: JsonObject): boolean {
  return asObject(container) !== undefined || asObject(asObject(delta)?.['container']) !== undefined;
}

function withPieces(counts: Counts, pieces: Counts): Counts {
  return pieces.size === 0 ? counts : new Map([...counts, ...pieces]);
}

/**
 * Tells whether a fallback credit was redeemed. The vendor then bills as if the conversation had always been at this model, so
 * cache writes cost like reads.
 */
function isRedeemed(usage: JsonObject): boolean {
  return asText(asObject(asObject(usage['fallback_credit'])?.['status'])?.['type']) === 'redeemed';
}

function asCacheReads(counts: Counts): Counts {
  const written = (counts.get('cacheWrite') ?? 0) + (counts.get('cacheWrite1h') ?? 0);
  const moved = new Map(counts).set('cacheRead', (counts.get('cacheRead') ?? 0) + written);
  moved.delete('cacheWrite');
  moved.delete('cacheWrite1h');
  return moved;
}

/**
 * Returns the tokens written to the short cache. The sum is the older field and always right; its part outside the one-hour cache
 * is in the short one.
 */
function shortCacheWrites(all: number | undefined, short: number | undefined, hour: number | undefined) {
  if (all === undefined || hour === undefined) return short ?? all;
  return Math.max(all - hour, 0);
}
