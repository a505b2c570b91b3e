import { asText, type JsonObject } from '../../base/json-values';
import { parseJson } from '../../base/parse-json';
import { findMembers, sliceChunks } from '../../http/json-members';
import { type JsonObserver, type JsonToken, scanWhole } from '../../http/json-scanner';
import { knownWord } from '../../http/json-words';
import { MalformedEvent } from '../event-json';

/** The members that are read from a response too large to parse. Such a response repeats the whole request and answer. */
const READ = ['status', 'model', 'service_tier', 'usage', 'error'];

/** Returns the members that the gateway needs from an event that is too large to parse. @throws MalformedEvent */
export function readLargeEvent(
  data: string,
  name: string | undefined,
): { readonly type: string; readonly event: JsonObject } {
  const event = membersOf(Buffer.from(data));
  if (event === undefined) throw new MalformedEvent('an event of the answer is not a JSON object');
  const { type, response, delta } = event;
  return {
    type: asText(type === undefined ? undefined : parseJson(type.toString())) || (name ?? ''),
    event: {
      // Only the length of the event's text is needed, and in so much text the few bytes of JSON escapes do not matter.
      ...(delta !== undefined && { delta: delta.toString() }),
      ...(response !== undefined && { response: readLargeResponse(response) }),
    },
  };
}

function readLargeResponse(bytes: Buffer): JsonObject {
  const { output, ...members } = membersOf(bytes) ?? {};
  const read = READ.flatMap((name) => {
    const member = members[name];
    return member === undefined ? [] : [[name, parseJson(member.toString())] as const];
  });
  return { ...Object.fromEntries(read), ...(output !== undefined && { output: itemHeads(output) }) };
}

/** Returns the members of an object, each as its JSON text; undefined if it is no valid object. */
function membersOf(bytes: Buffer): Readonly<Record<string, Buffer | undefined>> | undefined {
  const places = findMembers([bytes]);
  if (places === undefined) return undefined;
  const members = [...places].map(
    ([name, { valueStart, end }]) => [name, sliceChunks([bytes], valueStart, end)] as const,
  );
  return Object.fromEntries(members);
}

/** The members that are read from an item of the answer's `output`, and from the object in the item's `action`. */
const KEPT = new Set(['type', 'id', 'container_id'].map(knownWord));
const ACTION = knownWord('action');

/** The JSON depth of an item in the answer's `output`. The next constant is the depth of an object inside an item. */
const ITEM = 2;
const INNER = 3;

type Head = Record<string, unknown>;

/** Returns the kinds of a list's items without their content, because the list may be too large to parse; undefined if it is no list. */
function itemHeads(list: Buffer): readonly Head[] | undefined {
  const heads = new ItemHeads();
  return scanWhole([list], heads) && heads.isList ? heads.found : undefined;
}

/** Collects the kinds and ids of a list's items, without their content. */
export class ItemHeads implements JsonObserver {
  readonly found: Head[] = [];
  isList = false;
  #item: Head = {};
  #action: Head | undefined;
  #isAction = false;
  #name: string | undefined;

  open(depth: number, isObject: boolean): void {
    if (depth === 1) this.isList = !isObject;
    else if (depth === ITEM) {
      this.#item = {};
      this.found.push(this.#item);
    } else if (depth === INNER && this.#isAction && isObject) {
      this.#action = {};
      this.#item['action'] = this.#action;
    }
  }

  close(depth: number): void {
    if (depth === INNER) this.#action = undefined;
  }

  key(depth: number, token: JsonToken): void {
    if (depth === ITEM) this.#isAction = token.is(ACTION);
    const word = token.word();
    this.#name = word !== undefined && KEPT.has(word) ? word.text : undefined;
  }

  scalar(depth: number, _firstByte: number, token: JsonToken): void {
    if (this.#name === undefined) return;
    if (depth === ITEM) this.#item[this.#name] = token.text();
    else if (depth === INNER && this.#action !== undefined) this.#action[this.#name] = token.text();
  }
}
