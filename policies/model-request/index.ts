import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Counter } from 'prom-client';
import type { CallKey } from '../../core/accounts/identify';
import type { ModelRequest } from '../../core/calls/call';
import { readOnce } from '../../core/calls/read-once';
import { agentOf, sessionInMetadata, sessionOf } from '../../core/calls/session-ids';
import { UNPRICED_TOOLS } from '../../core/catalog/catalog';
import { operationOf, type Protocol } from '../../core/catalog/protocols';
import { fail } from '../../core/errors';
import type { Gateway } from '../../core/gateway/gateway';
import { type CallWith, definePolicy } from '../../core/gateway/policy';
import { BODY_ENCODINGS } from '../../core/http/body-decoder';
import { BUFFERED } from '../../core/http/buffered-bytes';
import { JsonScanner } from '../../core/http/json-scanner';
import { announcedBytes, type BodyLimits, checkBodyHeaders, readBody, saysJson } from '../../core/http/read-body';
import { askLedger } from '../../core/ledger/unavailable';
import { metrics } from '../../core/metrics';
import { formatUsd } from '../../core/money';
import { CACHE_NAMES } from '../../core/protocols/cache-names';
import { type Reading, reachesOutside } from '../../core/protocols/reading';
import { SHARED_OBJECTS, type SharedObject } from '../../core/protocols/request-table';
import { REQUEST_TABLES } from '../../core/protocols/request-tables';
import { DURATION, parseDuration } from '../../core/settings';
import { type AddressGate, openAddressGate } from './address-gate';
import { checkFields } from './check-fields';
import { findKept, type KeptForCall, namedItems } from './kept';
import { nfkcGrowth } from './nfkc-growth';
import { CallObserver } from './observe-call';
import { type AcceptedRoles, acceptedRoles } from './roles';
import type { ClassifiedMembers, MemberSettings } from './weigh-members';

/** The tokens that an image is expected to have. The number serves to compare candidates and to estimate usage; the hold has bounds of its own. */
const IMAGE_TOKENS = 1_600;
const BYTES_PER_TOKEN = 3;

/** The limits of a body (docs/contract.md, section 10); the times are settings. */
export const REQUEST_BODY_LIMITS: Omit<BodyLimits, 'totalMs' | 'slowMs'> = {
  maxBytes: 20_971_520,
  minBytesPerSecond: 1_024,
};

export default definePolicy({
  contract: 'policy/1',
  name: 'model-request',
  summary: 'What does the call request?',
  schema: {
    type: 'object',
    properties: {
      forwardHeaderPrefixes: {
        description: 'Headers whose names begin with one of these are forwarded in both directions.',
        type: 'array',
        items: { type: 'string', pattern: '^[a-z0-9][a-z0-9-]*-$' },
        default: ['anthropic-', 'protoa-'],
      },
      roles: {
        description: 'Roles accepted in the `messages` of a Messages call.',
        type: 'array',
        items: { type: 'string', enum: REQUEST_TABLES.messages.roles },
        minItems: 1,
        uniqueItems: true,
        default: REQUEST_TABLES.messages.roles,
      },
      sharedObjects: {
        description:
          'Kinds of objects at the vendor that every customer may name by id. Otherwise a thread, container, response or item must belong to the same account, and other kinds are rejected with 400.',
        type: 'array',
        items: { type: 'string', enum: SHARED_OBJECTS },
        uniqueItems: true,
        default: [],
      },
      unknownMembers: {
        description:
          'How to treat unknown top-level members. `byValue` forwards them and holds the context window for each, but at an upstream of the tier `official` not for switches, numbers up to 1 and short words; `hold` holds it for each, `forward` for none, `refuse` answers 400.',
        enum: ['forward', 'byValue', 'hold', 'refuse'],
        default: 'byValue',
      },
      unpricedTools: {
        description:
          'How to treat tools and members that a vendor charges apart and for which no candidate has a price. `forward` sends them on, holds nothing for them and flags what is used; `refuse` answers 400. An upstream may refuse them alone.',
        enum: UNPRICED_TOOLS,
        default: 'forward',
      },
      recordSessions: {
        description: 'Writes the session and the agent that a client names into the usage record.',
        type: 'boolean',
        default: true,
      },
      bodyTimeout: { ...DURATION, description: 'Deadline for the whole body.', default: '120s' },
      slowBodyTimeout: { ...DURATION, description: 'How long a body may arrive slower than 1 KB/s.', default: '30s' },
    },
  },
  needs: ['key'],
  provides: ['request'],
  boundsItself: true,
  prepare: (own, gateway) => {
    const accepted = acceptedRoles(own.roles);
    const { upstreams } = gateway.catalog;
    const settings: RequestSettings = {
      prefixes: own.forwardHeaderPrefixes,
      limits: {
        ...REQUEST_BODY_LIMITS,
        totalMs: parseDuration(own.bodyTimeout),
        slowMs: parseDuration(own.slowBodyTimeout),
      },
      members: {
        shared: new Set<SharedObject>(own.sharedObjects),
        unknownMembers: own.unknownMembers,
        freeMembers: new Set(upstreams.flatMap(({ freeMembers }) => [...(freeMembers ?? [])])),
      },
      refusesUnpriced: own.unpricedTools === 'refuse',
      gate: openAddressGate(upstreams),
      isolatesCaches: upstreams.some(({ isolateCaches }) => isolateCaches === true),
    };
    const recorded = (id: string | undefined) =>
      id === undefined || !own.recordSessions ? undefined : gateway.sessionIds.recorded(id);
    return async (call, incoming) => {
      const { facts } = call;
      // The ids are set before the body is read, because a call whose body is refused belongs to its session too.
      facts.sessionId = recorded(sessionOf(incoming.headers));
      facts.agentId = recorded(agentOf(incoming.headers));
      const request = await readRequest(gateway, call, incoming, accepted[call.protocol], settings);
      facts.sessionId ??= recorded(request.session);
      return { request };
    };
  },
});

interface RequestSettings {
  readonly prefixes: readonly string[];
  readonly limits: BodyLimits;
  readonly members: MemberSettings;
  readonly refusesUnpriced: boolean;
  readonly gate: AddressGate;
  readonly isolatesCaches: boolean;
}

async function readRequest(
  gateway: Gateway,
  call: CallWith<'key'>,
  request: IncomingMessage,
  roles: AcceptedRoles,
  { prefixes, limits, members, refusesUnpriced, gate, isolatesCaches }: RequestSettings,
): Promise<ModelRequest> {
  if (!saysJson(request)) throw fail('UNSUPPORTED_MEDIA_TYPE');
  const encoding = checkBodyHeaders(request, limits.maxBytes, BODY_ENCODINGS);
  const { protocol } = call;
  const operation = operationOf(call.path);
  const observer = new CallObserver(protocol, roles, members.shared, gate);
  const owner = { accountId: call.key.accountId, onEnd: (work: () => void) => call.onEnd(work) };
  const room = BUFFERED.open(owner, announcedBytes(request));
  const beforeLarge = () => requireMoney(gateway, call.key);
  const look = new JsonScanner(observer);
  const beganMs = performance.now();
  const encoded = encoding && { encoding, accountId: call.key.accountId };
  const chunks = await readBody(request, { limits, room, encoded, look, beforeLarge, call });
  call.facts.waitedMs += performance.now() - beganMs;
  const fields = checkFields(protocol, observer, chunks, members);
  const { weighed } = fields;
  const items = namedItems(protocol, observer, chunks);
  const kept = await findKept(gateway, call.key, weighed.named ?? [], items, call.upstreamSocket);
  const byteLength = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  const { inputs, parts } = observer;
  const textBytes = byteLength - parts.base64Bytes - (inputs?.tokenBytes ?? 0);
  const tokens = inputs?.tokens ?? 0;
  let longerBy: number | undefined;
  const normalizing = () => (longerBy ??= nfkcGrowth(chunks));
  const reading = readingOf(observer, weighed, textBytes + tokens, normalizing, kept);
  const images = [...parts.images.values()].reduce((sum, count) => sum + count, parts.imagesByUrl);
  countUnknown(protocol, reading);
  const edits = ownCacheNames(gateway, call.key, observer.members.places, fields.members);
  return {
    protocol,
    operation,
    query: queryOf(request),
    headers: selectHeaders(request.headers, prefixes),
    forwardHeaderPrefixes: prefixes,
    inputTokensEstimate: Math.ceil(textBytes / BYTES_PER_TOKEN) + images * IMAGE_TOKENS + reading.keptTokens + tokens,
    reading,
    refusesUnpriced,
    inputs: inputs?.count,
    kept: kept?.place,
    session: sessionOf(request.headers) ?? sessionInMetadata(fields.members.get('metadata')),
    makes: operation === undefined ? without(joined(observer.makes, weighed.makes), weighed.common) : undefined,
    sealed: observer.parts.sealed,
    body: { chunks, byteLength, members: observer.members.places },
    edits,
    ownCache: isolatesCaches ? gateway.sessionIds.cacheName(call.key.accountId) : undefined,
    entries: observer.entries + observer.parts.entries,
    read: readOnce(chunks, byteLength),
    modelRequested: fields.modelRequested,
    stream: fields.stream,
    // A compaction at the vendor ignores limits, so a limit in its body bounds nothing.
    maxOutputTokens: operation === undefined ? fields.maxOutputTokens : undefined,
    choices: fields.choices,
    members:
      edits.length === 0
        ? fields.members
        : new Map([...fields.members, ...edits.map(({ member, set }) => [member, set] as const)]),
  };
}

/**
 * Returns the edits that replace the names of parts of the vendor's cache by those of this account.
 * @throws INVALID_FIELD
 */
function ownCacheNames(
  { sessionIds }: Gateway,
  { accountId }: CallKey,
  places: ReadonlyMap<string, unknown>,
  texts: ReadonlyMap<string, string>,
): { readonly member: string; readonly set: string }[] {
  return CACHE_NAMES.flatMap((member) => {
    if (!places.has(member)) return [];
    const text = texts.get(member);
    if (text === undefined) throw fail('INVALID_FIELD', { param: member, message: `${member}: is too long` });
    const value: unknown = JSON.parse(text);
    if (value === null) return [];
    const name = typeof value === 'string' ? value : text;
    return [{ member, set: JSON.stringify(sessionIds.cacheName(accountId, name)) }];
  });
}

/** Adds up what the body, its members, its parts and its tools mean for the hold. */
function readingOf(
  observer: CallObserver,
  weighed: ClassifiedMembers,
  textTokens: number,
  normalizing: Reading['normalizing'],
  kept: KeptForCall | undefined,
): Reading {
  const { parts, members, protocol } = observer;
  const { adding } = weighed;
  const prediction = adding.prediction === undefined ? undefined : members.places.get(adding.prediction);
  const toolOverheads = observer.toolOverheads + parts.toolOverheads + (adding.tools === undefined ? 0 : 1);
  const further = Math.max(observer.furtherPasses, parts.furtherPasses);
  // The vendor's tools share one loop.
  const toolUses = observer.toolUses?.map((tool) =>
    tool.furtherPasses === undefined ? tool : { ...tool, furtherPasses: Math.max(tool.furtherPasses - further, 0) },
  );
  const reading: { -readonly [Name in keyof Reading]: Reading[Name] } = {
    textTokens,
    normalizing,
    images: parts.images,
    imagesByUrl: parts.imagesByUrl,
    documents: parts.documents,
    keptTokens: kept?.tokens ?? 0,
    isUnbounded: parts.isUnbounded || weighed.isUnbounded || kept?.tokens === null,
    heldMembers: weighed.heldMembers,
    smallMembers: weighed.smallMembers,
    unknownMembers: weighed.unknownMembers.concat(parts.unknownTypes),
    toolOverheads,
    hasTools: toolOverheads > 0 || parts.hasTools,
    furtherPasses: further + weighed.furtherPasses,
    furtherAnswers: weighed.furtherAnswers + parts.furtherAnswers,
    predictedTokens: prediction === undefined ? 0 : prediction.end - prediction.valueStart,
    asked: weighed.asked,
    toolUses: joined(toolUses, weighed.toolUses),
    extras: joined(observer.extras.size === 0 ? undefined : [...observer.extras.values()], weighed.extras),
    cacheWrites: 'none',
  };
  // Messages vendors write their cache only if the body says so, the others always. Content outside the body may be cached in any way.
  if (observer.namesHour || adding.hour !== undefined || reachesOutside(reading)) reading.cacheWrites = 'hour';
  else if (observer.namesCache || protocol !== 'messages') reading.cacheWrites = 'minutes';
  return reading;
}

/** Returns both lists as one; undefined if there is neither, as in most calls. */
function joined<T>(one: readonly T[] | undefined, other: readonly T[] | undefined): readonly T[] | undefined {
  return one === undefined || other === undefined ? (one ?? other) : [...one, ...other];
}

function without<T>(all: readonly T[] | undefined, some: readonly T[] | undefined): readonly T[] | undefined {
  return some === undefined ? all : all?.filter((each) => !some.includes(each));
}

function queryOf({ url = '' }: IncomingMessage): string {
  const start = url.indexOf('?');
  return start === -1 ? '' : url.slice(start);
}

/** Members, content parts and tools that are in no table. A rise is an alarm: a vendor or a client has something new. */
const unknownMembers = new Counter({
  name: 'tollgate_unknown_members_total',
  help: 'Unknown request members, content parts and tools, by protocol and by how they were treated.',
  labelNames: ['protocol', 'treatment'],
  registers: [metrics],
});

/** Counts what no table has in one request. */
function countUnknown(protocol: Protocol, { unknownMembers: names, heldMembers, smallMembers }: Reading): void {
  for (const name of names) {
    const isFree = !name.startsWith('content.') && !heldMembers.includes(name) && !smallMembers.includes(name);
    const treatment = isFree ? 'free' : 'outside';
    unknownMembers.inc({ protocol, treatment });
  }
}

/**
 * Refuses a call before its large body is read if the customer cannot pay for any call. The hold decides later whether the money
 * covers this call.
 * @throws INSUFFICIENT_BALANCE, KEY_LIMIT_EXCEEDED, FORBIDDEN, INVALID_API_KEY, LEDGER_UNAVAILABLE
 */
async function requireMoney({ calls }: Pick<Gateway, 'calls'>, payer: CallKey): Promise<void> {
  const [account, key] = await askLedger(() => Promise.all([calls.readAccount(payer.accountId), calls.readKey(payer)]));
  if (account === undefined || key?.status !== 'active') throw fail('INVALID_API_KEY');
  if (account.status === 'frozen')
    throw fail('FORBIDDEN', { message: 'This account is frozen. Ask the operator of the gateway.' });
  if (account.availableE8 <= 0n) throw fail('INSUFFICIENT_BALANCE', { details: available(account.availableE8) });
  if (key.limitE8 === undefined) return;
  const leftE8 = key.limitE8 - key.spentE8 - key.heldE8;
  if (leftE8 <= 0n) throw fail('KEY_LIMIT_EXCEEDED', { details: available(leftE8) });
}

function available(amountE8: bigint) {
  return { availableUsd: formatUsd(amountE8 > 0n ? amountE8 : 0n) };
}

/** Headers that are never forwarded, whatever prefixes are configured: the client's credentials and the headers of this hop. */
const KEPT_HERE =
  /^(?:x-api-key|svc-key|authorization|cookie|proxy-.*|x-forwarded-.*|forwarded|host|connection|keep-alive|te|trailer|transfer-encoding|upgrade|content-length|content-encoding|accept-encoding|idempotency-key)$/;

/** Returns the headers that an upstream gets: content-type, accept and those with a configured prefix. */
function selectHeaders(headers: IncomingHttpHeaders, prefixes: readonly string[]): Record<string, string> {
  const selected: Record<string, string> = {};
  const hopOnly = hopOnlyNames(headers.connection);
  for (const name in headers) {
    if (name !== 'content-type' && name !== 'accept' && !prefixes.some((prefix) => name.startsWith(prefix))) continue;
    if (KEPT_HERE.test(name) || hopOnly?.includes(name)) continue;
    const value = headers[name];
    if (value !== undefined) selected[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return selected;
}

function hopOnlyNames(connection: string | undefined): readonly string[] | undefined {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined;
  return connection
    .toLowerCase()
    .split(',')
    .map((name) => name.trim());
}
