import type { IncomingMessage } from 'node:http';
import { Counter } from 'prom-client';
import type { CallKey } from '../../core/accounts/identify';
import { fail, invalidParam } from '../../core/base/errors';
import type { MaybeLater } from '../../core/base/maybe-later';
import { metrics } from '../../core/base/metrics';
import { formatUsd } from '../../core/base/money';
import type { ModelRequest } from '../../core/calls/call';
import { readOnce } from '../../core/calls/read-once';
import { namedInMetadata } from '../../core/calls/session-ids';
import { type CallIds, type CallTags, tagsText, tagValue } from '../../core/calls/tags';
import type { Demands } from '../../core/catalog/demands';
import { operationOf, type Protocol } from '../../core/catalog/protocols';
import type { Gateway } from '../../core/gateway/gateway';
import type { CallWith } from '../../core/gateway/policy';
import { BODY_ENCODINGS } from '../../core/http/body-decoder';
import { BUFFERED } from '../../core/http/buffered-bytes';
import { JsonScanner } from '../../core/http/json-scanner';
import { announcedBytes, type BodyLimits, checkBodyHeaders, readBody, saysJson } from '../../core/http/read-body';
import { accountFrozen, askLedger } from '../../core/ledger/unavailable';
import { CACHE_NAMES } from '../../core/protocols/cache-names';
import { type CostFactors, reachesOutside } from '../../core/protocols/cost-factors';
import { type CheckedFields, checkFields } from './check-fields';
import { nfkcGrowth } from './nfkc-growth';
import { CallObserver, type CallRules } from './observe-call';
import { findPinned, namedItems, type PinnedForCall } from './pinned';
import type { ClassifiedMembers, MemberSettings } from './weigh-members';

/** How many tokens an image is estimated to have. The number serves to compare candidates and to estimate usage; the hold has its own bounds. */
const IMAGE_TOKENS = 1_600;
const BYTES_PER_TOKEN = 3;

/** The parts of the policy's settings and of the configuration that reading a request needs. */
export interface RequestSettings {
  readonly prefixes: readonly string[];
  readonly limits: BodyLimits;
  readonly members: MemberSettings;
  readonly refusesUnpriced: boolean;
  readonly rules: Readonly<Record<Protocol, CallRules>>;
  readonly isolatesCaches: boolean;
}

/** What the request line and headers mean for the call. */
interface HeadMeaning {
  /** The headers that an upstream receives. */
  readonly headers: Readonly<Record<string, string>>;
  /** The session as the headers name it. */
  readonly session: string | undefined;
  /** The session and the agent that the headers name, in the form of records. */
  readonly ids: CallIds;
  /** The tags that the caller gives. */
  readonly own: CallTags | undefined;
  /** All tags that the head alone gives, as of `tagsText`. */
  readonly text: string | undefined;
  /** What the client demands of the upstreams that may serve the call. */
  readonly demands: Demands | undefined;
}

/** Reads one request. It does not wait if the whole body has already arrived. */
export class RequestReader {
  readonly #observer: CallObserver;

  constructor(
    private readonly gateway: Gateway,
    private readonly call: CallWith<'key'>,
    private readonly request: IncomingMessage,
    private readonly head: HeadMeaning,
    private readonly settings: RequestSettings,
  ) {
    this.#observer = new CallObserver(settings.rules[call.protocol]);
  }

  read(): MaybeLater<ModelRequest> {
    const { gateway, call, request, settings } = this;
    if (!saysJson(request)) throw fail('UNSUPPORTED_MEDIA_TYPE');
    const { limits } = settings;
    const encoding = checkBodyHeaders(request, limits.maxBytes, BODY_ENCODINGS);
    const { accountId } = call.key;
    const room = BUFFERED.open({ accountId, onEnd: (work) => call.onEnd(work) }, announcedBytes(request));
    const look = new JsonScanner(this.#observer);
    const encoded = encoding && { encoding, accountId };
    const beforeLarge = () => requireMoney(gateway, call.key);
    const chunks = readBody(request, { limits, room, encoded, look, beforeLarge, call });
    return chunks instanceof Promise ? this.#later(chunks) : this.#whole(chunks);
  }

  async #later(chunks: Promise<readonly Buffer[]>): Promise<ModelRequest> {
    const beganMs = performance.now();
    const read = await chunks;
    this.call.facts.waitedMs += performance.now() - beganMs;
    return this.#whole(read);
  }

  #whole(chunks: readonly Buffer[]): MaybeLater<ModelRequest> {
    const { gateway, call, settings } = this;
    const fields = checkFields(call.protocol, this.#observer, chunks, settings.members);
    const items = namedItems(call.protocol, this.#observer, chunks);
    const { named } = fields.weighed;
    if (named === undefined && items.length === 0) return this.#requestOf(chunks, fields, undefined);
    return findPinned(gateway, call.key, named ?? [], items, call.upstreamSocket).then((kept) =>
      this.#requestOf(chunks, fields, kept),
    );
  }

  #requestOf(chunks: readonly Buffer[], fields: CheckedFields, kept: PinnedForCall | undefined): ModelRequest {
    const { gateway, call, request, settings } = this;
    const { prefixes, refusesUnpriced, isolatesCaches } = settings;
    const { headers, demands } = this.head;
    const { protocol } = call;
    const operation = operationOf(call.path);
    const { weighed } = fields;
    let byteLength = 0;
    for (const chunk of chunks) byteLength += chunk.length;
    const observer = this.#observer;
    const { inputs, parts } = observer;
    const textBytes = byteLength - parts.base64Bytes - (inputs?.tokenBytes ?? 0);
    const tokens = inputs?.tokens ?? 0;
    const reading = readingOf(observer, weighed, textBytes + tokens, chunks, kept);
    let images = parts.imagesByUrl;
    for (const count of parts.images.values()) images += count;
    countUnknown(protocol, reading);
    const named = namedIn(protocol, fields.members, observer.members.places);
    const session = this.head.session ?? named.session;
    const endUser = named.endUser === undefined ? undefined : tagValue(named.endUser);
    const edits = ownCacheNames(gateway, call.key, observer.members.places, fields.members);
    return {
      protocol,
      operation,
      query: queryOf(request),
      headers,
      forwardHeaderPrefixes: prefixes,
      inputTokensEstimate: Math.ceil(textBytes / BYTES_PER_TOKEN) + images * IMAGE_TOKENS + reading.keptTokens + tokens,
      reading,
      refusesUnpriced,
      inputs: inputs?.count,
      kept: kept?.place,
      demands,
      leaves: weighed.leaves ?? observer.leaves,
      session,
      endUser,
      tags: this.#tags(session, endUser),
      makes: operation === undefined ? without(joined(observer.makes, weighed.makes), weighed.common) : undefined,
      sealed: parts.sealed,
      body: { chunks, byteLength, members: observer.members.places },
      edits,
      ownCache: isolatesCaches ? gateway.sessionIds.cacheName(call.key.accountId) : undefined,
      entries: observer.entries + parts.entries,
      read: readOnce(chunks, byteLength),
      modelRequested: fields.modelRequested,
      stream: fields.stream,
      // A compaction at the vendor (shortening the conversation) ignores output limits, so a limit in the request's body does not bound the output.
      maxOutputTokens: operation === undefined ? fields.maxOutputTokens : undefined,
      choices: fields.choices,
      members: withEdits(fields.members, edits),
    };
  }

  /** Returns all tags of the call, as of `tagsText`. A body that names nothing more than the head costs nothing. */
  #tags(session: string | undefined, endUser: string | undefined): string | undefined {
    const { own, ids, text, session: inHead } = this.head;
    if (endUser === undefined && session === inHead) return text;
    const { sessionIds } = this.gateway;
    const recorded = ids.session ?? (session === undefined ? undefined : sessionIds.recorded(session));
    return tagsText(own, { ...ids, session: recorded, end_user: endUser });
  }
}

/** The members that name the end user of a call, in the order in which they count. `metadata` also names the session. */
const END_USER: Readonly<Record<Protocol, readonly string[]>> = {
  messages: ['metadata'],
  chat: ['safety_identifier', 'user'],
  responses: ['safety_identifier', 'user'],
  embeddings: ['user'],
};

/**
 * Returns the session and the end user that a body names.
 * @throws INVALID_FIELD if a member that names the end user is too long, because limits of end users count by it
 */
function namedIn(
  protocol: Protocol,
  texts: ReadonlyMap<string, string>,
  places: ReadonlyMap<string, unknown>,
): ReturnType<typeof namedInMetadata> {
  const inMetadata = namedInMetadata(texts.get('metadata'));
  let endUser: string | undefined;
  for (const name of END_USER[protocol]) {
    if (!places.has(name)) continue;
    const text = texts.get(name);
    if (text === undefined) throw invalidParam(name, 'is too long');
    const value: unknown = name === 'metadata' ? inMetadata.endUser : JSON.parse(text);
    if (typeof value === 'string' && value !== '') endUser ??= value;
  }
  return { session: inMetadata.session, endUser };
}

function withEdits(members: ReadonlyMap<string, string>, edits: readonly OwnName[]): ReadonlyMap<string, string> {
  if (edits.length === 0) return members;
  const changed = new Map(members);
  for (const { member, set } of edits) changed.set(member, set);
  return changed;
}

interface OwnName {
  readonly member: string;
  readonly set: string;
}

/**
 * Returns the changes to the body that replace the client's names of entries in the vendor's prompt cache. The new names belong to the
 * client's account.
 * @throws INVALID_FIELD
 */
function ownCacheNames(
  { sessionIds }: Gateway,
  { accountId }: CallKey,
  places: ReadonlyMap<string, unknown>,
  texts: ReadonlyMap<string, string>,
): readonly OwnName[] {
  let edits: OwnName[] | undefined;
  for (const member of CACHE_NAMES) {
    if (!places.has(member)) continue;
    const text = texts.get(member);
    if (text === undefined) throw invalidParam(member, 'is too long');
    const value: unknown = JSON.parse(text);
    if (value === null) continue;
    const name = typeof value === 'string' ? value : text;
    edits ??= [];
    edits.push({ member, set: JSON.stringify(sessionIds.cacheName(accountId, name)) });
  }
  return edits ?? NO_EDITS;
}

const NO_EDITS: readonly OwnName[] = [];

/** Adds up how the body, its members, its content parts and its tools affect the hold (the money reserved for the call). */
function readingOf(
  observer: CallObserver,
  weighed: ClassifiedMembers,
  textTokens: number,
  chunks: readonly Buffer[],
  kept: PinnedForCall | undefined,
): CostFactors {
  const { parts, members, protocol } = observer;
  const { adding } = weighed;
  const prediction = adding.prediction === undefined ? undefined : members.places.get(adding.prediction);
  const toolOverheads = observer.toolOverheads + parts.toolOverheads + (adding.tools === undefined ? 0 : 1);
  const further = Math.max(observer.furtherPasses, parts.furtherPasses);
  // All tools that run at the vendor share one loop of model runs, so the runs count once and not once for each tool.
  const toolUses = observer.toolUses?.map((tool) =>
    tool.furtherPasses === undefined ? tool : { ...tool, furtherPasses: Math.max(tool.furtherPasses - further, 0) },
  );
  let longerBy: number | undefined;
  const reading: { -readonly [Name in keyof CostFactors]: CostFactors[Name] } = {
    textTokens,
    normalizing: () => (longerBy ??= nfkcGrowth(chunks)),
    images: parts.images,
    imagesByUrl: parts.imagesByUrl,
    documents: parts.documents,
    keptTokens: kept?.tokens ?? 0,
    isUnbounded: parts.isUnbounded || weighed.isUnbounded || kept?.tokens === null,
    heldMembers: weighed.heldMembers,
    smallMembers: weighed.smallMembers,
    unknownMembers:
      parts.unknownTypes === undefined ? weighed.unknownMembers : weighed.unknownMembers.concat(parts.unknownTypes),
    toolOverheads,
    hasTools: toolOverheads > 0 || parts.hasTools,
    furtherPasses: further + weighed.furtherPasses,
    furtherAnswers: weighed.furtherAnswers + parts.furtherAnswers,
    predictedTokens: prediction === undefined ? 0 : prediction.end - prediction.valueStart,
    asked: weighed.asked,
    toolUses: joined(toolUses, weighed.toolUses),
    extras: joined(observer.extras && [...observer.extras.values()], weighed.extras),
    cacheWrites: 'none',
  };
  // Vendors of Messages write their prompt cache only if the body requests it; other vendors always write it. For content outside of the body, the
  // hold assumes caching for an hour.
  if (observer.namesHour || adding.hour !== undefined || reachesOutside(reading)) reading.cacheWrites = 'hour';
  else if (observer.namesCache || protocol !== 'messages') reading.cacheWrites = 'minutes';
  return reading;
}

/** Returns one list with the entries of both lists; undefined if both lists are undefined, as in most calls. */
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

/** Counts members, content parts and tools that the gateway does not know. A rise is an alarm: a vendor or a client uses something new. */
const unknownMembers = new Counter({
  name: 'tollgate_unknown_members_total',
  help: 'Unknown request members, content parts and tools, by protocol and by how they were treated.',
  labelNames: ['protocol', 'treatment'],
  registers: [metrics],
});

/** Counts the members, content parts and tools of one request that the gateway does not know. */
function countUnknown(protocol: Protocol, { unknownMembers: names, heldMembers, smallMembers }: CostFactors): void {
  for (const name of names) {
    const isFree = !name.startsWith('content.') && !heldMembers.includes(name) && !smallMembers.includes(name);
    const treatment = isFree ? 'free' : 'outside';
    unknownMembers.inc({ protocol, treatment });
  }
}

/**
 * Refuses a call before the gateway reads its large body if the customer cannot pay for any call. The hold decides later whether the money
 * covers this call.
 * @throws INSUFFICIENT_BALANCE, KEY_LIMIT_EXCEEDED, FORBIDDEN, INVALID_API_KEY, LEDGER_UNAVAILABLE
 */
async function requireMoney({ calls }: Pick<Gateway, 'calls'>, payer: CallKey): Promise<void> {
  const [account, key] = await askLedger(() => Promise.all([calls.readAccount(payer.accountId), calls.readKey(payer)]));
  if (account === undefined || key?.status !== 'active') throw fail('INVALID_API_KEY');
  if (account.status === 'frozen') throw accountFrozen();
  if (account.availableE8 <= 0n) throw fail('INSUFFICIENT_BALANCE', { details: available(account.availableE8) });
  if (key.limitE8 === undefined) return;
  const leftE8 = key.limitE8 - key.spentE8 - key.heldE8;
  if (leftE8 <= 0n) throw fail('KEY_LIMIT_EXCEEDED', { details: available(leftE8) });
}

function available(amountE8: bigint) {
  return { availableUsd: formatUsd(amountE8 > 0n ? amountE8 : 0n) };
}
