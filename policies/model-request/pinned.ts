import type { CallKey } from '../../core/accounts/identify';
import { fail, invalidParam } from '../../core/base/errors';
import type { PinnedPlace } from '../../core/calls/call';
import type { Protocol } from '../../core/catalog/protocols';
import type { Gateway } from '../../core/gateway/gateway';
import { sliceChunks } from '../../core/http/json-members';
import { itemsRule, REQUEST_TABLES } from '../../core/protocols/request-tables';
import type { UpstreamSocket } from '../../core/wire/upstream-socket';
import type { CallObserver, ItemPosition } from './observe-call';
import { notSupported } from './refusals';
import { hasDoubtfulKeys } from './short-texts';
import type { NamedObject } from './weigh-members';

/** The objects kept by a vendor that a call names. */
export interface PinnedForCall {
  readonly place: PinnedPlace;
  /** The sum of the tokens reported for all vendor resources that the call names; null if the tokens of one of the objects are unknown. */
  readonly tokens: number | null;
}

/** One object kept by a vendor that a call names, and the tokens that were reported for this object. */
interface NamedResource extends PinnedPlace {
  readonly tokens: number | null;
}

/**
 * Finds the vendor's objects that a call names, among the objects of its account and the answers on its own WebSocket.
 * @throws KEPT_OBJECT_NOT_FOUND, INVALID_FIELD if two of them are at different upstreams or credentials, DATABASE_UNAVAILABLE
 */
export async function findPinned(
  { vendorResources }: Pick<Gateway, 'vendorResources'>,
  { accountId }: CallKey,
  objects: readonly NamedObject[],
  items: readonly NamedObject[],
  upstreamSocket: UpstreamSocket | undefined,
): Promise<PinnedForCall | undefined> {
  const found: NamedResource[] = [];
  for (const { kind, id, param } of objects) {
    const onSocket = kind === 'previous_response_id' ? upstreamSocket?.find(id) : undefined;
    const object = onSocket ?? (await vendorResources.find(accountId, kind, id)) ?? missing(param);
    const { upstream, credential, inputTokens, outputTokens } = object;
    found.push({ upstream, credential, param, tokens: sum(inputTokens, outputTokens) });
  }
  return joined([...found, ...(await findItems(vendorResources, accountId, items))]);
}

/** Finds the items of earlier answers that a call references. The size of an answer bounds all its items together, so it counts once per answer. */
async function findItems(
  vendorResources: Gateway['vendorResources'],
  accountId: string,
  named: readonly NamedObject[],
): Promise<readonly NamedResource[]> {
  if (named.length === 0) return [];
  const items = await vendorResources.findItems(
    accountId,
    named.map(({ id }) => id),
  );
  const counted = new Set<string>();
  return named.map(({ id, param }) => {
    const { owner, upstream, credential, outputTokens } = items.get(id) ?? missing(param);
    const isFirst = !counted.has(owner);
    counted.add(owner);
    return { upstream, credential, param, tokens: isFirst ? (outputTokens ?? null) : 0 };
  });
}

function missing(param: string): never {
  throw fail('KEPT_OBJECT_NOT_FOUND', { param, message: NOT_FOUND });
}

const NOT_FOUND = 'No object with this id was created by this account through this gateway, or it has expired.';

function joined([first, ...others]: readonly NamedResource[]): PinnedForCall | undefined {
  if (first === undefined) return undefined;
  const { upstream, credential, param } = first;
  let { tokens } = first;
  for (const other of others) {
    if (other.upstream !== upstream || other.credential !== credential)
      throw invalidParam(other.param, `names an object at another upstream than ${param}`);
    tokens = sum(tokens, other.tokens);
  }
  return { place: { upstream, credential, param }, tokens };
}

function sum(one: number | null | undefined, other: number | null | undefined): number | null {
  return typeof one === 'number' && typeof other === 'number' ? one + other : null;
}

/** The maximum size of a reference to an object at the vendor (an id and a type), in bytes. */
const MAX_REFERENCE_LENGTH = 2_048;

/**
 * Returns the items of earlier answers that a conversation references.
 * @throws NOT_SUPPORTED if JSON parsers could read a reference in two ways, INVALID_FIELD if two references name the same item
 */
export function namedItems(
  protocol: Protocol,
  { references }: Pick<CallObserver, 'references'>,
  chunks: readonly Buffer[],
): readonly NamedObject[] {
  const kind = itemsRule(REQUEST_TABLES[protocol])?.kind;
  if (kind === undefined || references.length === 0) return [];
  const params = new Map<string, string>();
  for (const place of references) {
    const param = `input[${place.index}]`;
    const id = idIn(place, chunks);
    if (id === undefined)
      throw notSupported(param, `"${param}" names an item in a form that the gateway does not know.`);
    const before = params.get(id);
    // Vendors refuse a second reference to the same item. If the gateway accepted it, the hold would have to count the item for each reference.
    if (before !== undefined) throw invalidParam(param, `names the same item as ${before}`);
    params.set(id, param);
  }
  return [...params].map(([id, param]) => ({ kind, id, param }));
}

function idIn({ from, to }: ItemPosition, chunks: readonly Buffer[]): string | undefined {
  if (to - from > MAX_REFERENCE_LENGTH) return undefined;
  const text = sliceChunks(chunks, from, to).toString();
  if (hasDoubtfulKeys(text)) return undefined;
  const { id, type: _, ...others } = JSON.parse(text) as Readonly<Record<string, unknown>>;
  return typeof id === 'string' && Object.keys(others).length === 0 ? id : undefined;
}
