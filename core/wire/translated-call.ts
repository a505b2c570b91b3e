import type { Candidate } from '../catalog/catalog';
import { type Feature, NotTranslatable } from '../catalog/conversation';
import type { Protocol } from '../catalog/protocols';
import type { BodyEdit, TranslatedCall, UpstreamRequest } from '../catalog/upstream';
import { clientDialect } from '../dialects/client-dialects';
import { asObject, type JsonObject } from '../json-values';
import type { UpstreamCall } from './ask-upstream';
import type { RequestBody } from './body-edits';
import type { MemberPlace } from './json-members';
import { parseSlowly } from './parse-slowly';

/** A call in the dialect of an upstream that does not speak the client's. */
export interface CallInOtherWords {
  readonly call: UpstreamCall;
  /** What its answer is read with. */
  readonly asked: TranslatedCall;
  /** The client's request, parsed. */
  readonly request: JsonObject;
}

/** One call may be translated for several candidates: it is parsed once. */
const PARSED = new WeakMap<RequestBody, Promise<unknown>>();

/** @throws NotTranslatable */
export async function inOtherWords(candidate: Candidate, given: UpstreamCall): Promise<CallInOtherWords> {
  const { adapter, dialect, model, upstream } = candidate;
  const parsed = PARSED.get(given.body) ?? parseSlowly(given.body);
  PARSED.set(given.body, parsed);
  const request = edited(asObject(await parsed) ?? {}, given.edits ?? []);
  const from = clientDialect(given.protocol);
  try {
    const conversation = from.readRequest(request);
    const { name, maxOutput, reasoning } = model;
    const asked = { conversation, model: name, maxOutput, reasoning, upstream: upstream.name };
    const common = { stream: given.stream, query: '', headers: {}, operation: undefined };
    if (adapter.own !== undefined) {
      const { path, headers = {}, body } = adapter.own.request(asked, upstream.adapterSettings);
      const prepared: UpstreamRequest = { path, headers, edits: [] };
      return { call: { ...common, protocol: given.protocol, ...written(body), prepared }, asked, request };
    }
    const protocol = dialect as Protocol;
    const body = clientDialect(protocol).writeRequest(asked);
    return { call: { ...common, protocol, ...written(body) }, asked, request };
  } catch (error) {
    throw error instanceof NotTranslatable ? inClientsWords(error, from.names) : error;
  }
}

/** A writer knows what it cannot carry by its name in the model; the client has its own name for it. */
function inClientsWords(
  { what, why }: NotTranslatable,
  names: Readonly<Partial<Record<Feature, string>>>,
): NotTranslatable {
  return new NotTranslatable(names[what as Feature] ?? what, why);
}

/** The request with the changes that hold at every upstream. */
function edited(request: JsonObject, edits: readonly BodyEdit[]): JsonObject {
  const changed: Record<string, unknown> = { ...request };
  for (const edit of edits) {
    if ('drop' in edit) delete changed[edit.member];
    else if ('set' in edit) changed[edit.member] = JSON.parse(edit.set) as unknown;
  }
  return changed;
}

/** Members whose text adapters are shown. */
const SHORT_CHARACTERS = 4_096;

/** A body as bytes, with the places of its members. */
function written(body: JsonObject): Pick<UpstreamCall, 'body' | 'members'> {
  const chunks: Buffer[] = [];
  const places = new Map<string, MemberPlace>();
  const members = new Map<string, string>();
  let byteLength = 0;
  const push = (text: string) => {
    const bytes = Buffer.from(text);
    chunks.push(bytes);
    byteLength += bytes.length;
  };
  for (const [name, value] of Object.entries(body)) {
    if (value === undefined) continue;
    push(places.size === 0 ? '{' : ',');
    const start = byteLength;
    push(`${JSON.stringify(name)}:`);
    const valueStart = byteLength;
    const text = JSON.stringify(value);
    push(text);
    places.set(name, { start, valueStart, end: byteLength });
    if (text.length <= SHORT_CHARACTERS) members.set(name, text);
  }
  push(places.size === 0 ? '{}' : '}');
  return { body: { chunks, byteLength, members: places }, members };
}
