import { setImmediate as nextTurn } from 'node:timers/promises';
import { asObject, type JsonObject } from '../base/json-values';
import type { Candidate } from '../catalog/catalog';
import { type Feature, NotTranslatable } from '../catalog/conversation';
import type { Protocol } from '../catalog/protocols';
import type { BodyEdit, TranslatedCall, UpstreamRequest } from '../catalog/upstream';
import type { BodyRoom } from '../http/buffered-bytes';
import type { MemberPlace } from '../http/json-members';
import { jsonOf } from '../http/raw-json';
import { refuseLong, refuseMany } from '../protocols/bounds';
import { clientDialect } from '../protocols/client-dialects';
import { memberRow, REQUEST_TABLES, STORE } from '../protocols/request-tables';
import type { UpstreamCall } from './ask-upstream';
import type { RequestBody } from './body-edits';
import { AT_ONCE_BYTES, parseInSteps, stringifyInSteps } from './json-in-steps';

/** A call that is translated for an upstream that does not speak the client's dialect. */
export interface PreparedTranslation {
  readonly call: UpstreamCall;
  /** The translated call. Its values are needed again to read the upstream's answer. */
  readonly asked: TranslatedCall;
  /** Features that the translated request guarantees less strictly than the client asked, by their names in the client's protocol. */
  readonly weakened: readonly string[];
  readonly request: JsonObject;
}

/** The parsed bodies, because a call that is translated for several candidates is parsed once. */
const PARSED = new WeakMap<RequestBody, Promise<unknown>>();

/**
 * Translates a call. Large calls are translated in several turns of the event loop.
 * @param room counts the bytes of the translated body
 * @throws NotTranslatable, OVERLOADED
 */
export async function translateRequest(
  candidate: Candidate,
  given: UpstreamCall,
  room?: BodyRoom,
): Promise<PreparedTranslation> {
  const { adapter, dialect, model, upstream } = candidate;
  refuseMany(given.protocol, given.entries);
  const parsed = PARSED.get(given.body) ?? parseInSteps(given.body);
  PARSED.set(given.body, parsed);
  const request = edited(asObject(await parsed) ?? {}, given.edits ?? []);
  const from = clientDialect(given.protocol);
  try {
    const conversation = from.readRequest(request);
    refuseLong(conversation);
    const { name, maxOutput, reasoning } = model;
    const features = new Set<Feature>();
    const weaken = (feature: Feature) => void features.add(feature);
    const asked = { conversation, model: name, maxOutput, reasoning, upstream: upstream.name, weaken };
    const isLarge = given.body.byteLength > AT_ONCE_BYTES;
    if (isLarge) await nextTurn();
    const { stream, ownCache } = given;
    const common = { stream, ownCache, query: '', headers: {}, operation: undefined };
    const own = adapter.own?.request(asked, upstream.adapterSettings);
    const protocol = own === undefined ? (dialect as Protocol) : given.protocol;
    const told = own?.body ?? clientDialect(protocol).writeRequest(asked);
    const body = given.keepsNothing && own === undefined ? keptNowhere(protocol, told) : told;
    const prepared: UpstreamRequest | undefined = own && { path: own.path, headers: own.headers ?? {}, edits: [] };
    const call = { ...common, protocol, ...(await written(body, isLarge, room)), ...(prepared && { prepared }) };
    const weakened = Array.from(features, (feature) => from.names[feature] ?? feature);
    return { call, asked, weakened, request };
  } catch (error) {
    throw error instanceof NotTranslatable ? inClientsWords(error, from.names) : error;
  }
}

/** Returns the error with the feature's name in the client's protocol, because the translation names the feature by an internal name. */
function inClientsWords(
  { what, why }: NotTranslatable,
  names: Readonly<Partial<Record<Feature, string>>>,
): NotTranslatable {
  return new NotTranslatable(names[what as Feature] ?? what, why);
}

/** Returns a body that asks the vendor to keep no answer, if its protocol has a member for that. */
function keptNowhere(protocol: Protocol, body: JsonObject): JsonObject {
  return memberRow(REQUEST_TABLES[protocol], STORE) === undefined ? body : { ...body, [STORE]: false };
}

function edited(request: JsonObject, edits: readonly BodyEdit[]): JsonObject {
  const changed: Record<string, unknown> = { ...request };
  for (const edit of edits) {
    if ('drop' in edit) delete changed[edit.member];
    else if ('set' in edit) changed[edit.member] = JSON.parse(edit.set) as unknown;
  }
  return changed;
}

/** The maximum size, in bytes, of a body's member that adapters receive as text. Adapters do not receive larger members as text. */
const SHORT_BYTES = 4_096;

/** Returns a body as bytes, with the positions of its members. */
async function written(
  body: JsonObject,
  isLarge: boolean,
  room: BodyRoom | undefined,
): Promise<Pick<UpstreamCall, 'body' | 'members'>> {
  const chunks: Buffer[] = [];
  const places = new Map<string, MemberPlace>();
  const members = new Map<string, string>();
  let byteLength = 0;
  const push = (...pieces: readonly Buffer[]) => {
    for (const bytes of pieces) {
      room?.add(bytes.length);
      chunks.push(bytes);
      byteLength += bytes.length;
    }
  };
  for (const [name, value] of Object.entries(body)) {
    if (value === undefined) continue;
    push(places.size === 0 ? OPEN : COMMA);
    const start = byteLength;
    push(Buffer.from(`${JSON.stringify(name)}:`));
    const valueStart = byteLength;
    const pieces = isLarge ? await stringifyInSteps(value) : [Buffer.from(jsonOf(value))];
    push(...pieces);
    places.set(name, { start, valueStart, end: byteLength });
    if (byteLength - valueStart <= SHORT_BYTES) members.set(name, Buffer.concat(pieces).toString());
  }
  if (places.size === 0) push(OPEN);
  push(CLOSE);
  return { body: { chunks, byteLength, members: places }, members };
}

const OPEN = Buffer.from('{');
const COMMA = Buffer.from(',');
const CLOSE = Buffer.from('}');
