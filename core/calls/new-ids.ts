import { parseJson } from '../base/parse-json';
import type { Candidate } from '../catalog/catalog';
import type { Protocol, SseEvent } from '../catalog/upstream';
import { findPlace } from '../http/json-members';
import type { EventPaths, KeptRule, RequestTable, SharedObject } from '../protocols/request-table';
import { REQUEST_TABLES } from '../protocols/request-tables';

/** A vendor object that an answer has created. */
interface FoundId {
  readonly kind: SharedObject;
  readonly id: string;
  readonly candidate: Candidate;
  readonly days: number;
  /** The ids of the object's items. */
  readonly items: readonly string[];
  /** Whether the object's items contain only text that the model wrote. */
  readonly areItemsWritten: boolean;
}

/** The most characters of an id. Longer ids are ignored, because vendors use no such ids and they would fill the memory. */
const MAX_ID_LENGTH = 1_000;
/** The most items of one answer. Further items are ignored, because their ids would fill the memory; clients cannot name them in calls. */
const MAX_ITEMS = 500;
/**
 * The most characters of an event that the gateway parses as a whole. From a larger event, which may repeat the whole request, it reads
 * only the ids. It ignores a larger event without a name.
 */
const MAX_PARSED_EVENT = 256 * 1024;

/** Collects the ids of vendor objects that the answers to one call create. Only calls that can create objects have such a collector. */
export class NewIds {
  readonly #rules: readonly (readonly [SharedObject, KeptRule])[];
  readonly #items: RequestTable['items'];
  #found = new Map<string, CollectedIds>();
  /** The newest vendor object of each kind that the answers have created. */
  readonly #newest = new Map<SharedObject, CollectedIds>();

  constructor(protocol: Protocol, makes: readonly SharedObject[]) {
    const { kept, items } = REQUEST_TABLES[protocol];
    this.#items = items;
    this.#rules = makes.flatMap((kind) => {
      const rule = kept[kind];
      return rule === undefined ? [] : [[kind, rule] as const];
    });
  }

  /** Collects the ids of new vendor objects from the parsed body of an unstreamed answer. */
  noteBody(candidate: Candidate, body: unknown): void {
    for (const [kind, rule] of this.#rules) {
      this.#note(candidate, kind, rule, valueAt(body, rule.answer));
      const items = rule.items && valueAt(body, rule.items.answer);
      if (Array.isArray(items)) for (const item of items) this.#noteItem(candidate, kind, item);
    }
  }

  /** Collects ids from an event of a stream. Some upstreams send the event's name only in its data. */
  noteEvent(candidate: Candidate, { name, data = '' }: SseEvent): void {
    const isNamed = name !== undefined && name !== '';
    const isLarge = data.length > MAX_PARSED_EVENT;
    if (isNamed ? !this.#rules.some(([, rule]) => isReadFor(rule, name)) : isLarge) return;
    const event = isLarge ? Buffer.from(data) : parseJson(data);
    const type = isNamed ? name : String(memberOf(event, 'type'));
    for (const [kind, rule] of this.#rules) {
      const path = pathIn(rule.events, type);
      if (path !== undefined) this.#note(candidate, kind, rule, valueAt(event, path));
      const item = pathIn(rule.items?.events, type);
      if (item !== undefined) this.#noteItem(candidate, kind, valueAt(event, item));
    }
  }

  /** Returns the vendor objects found since the previous `take`, and forgets them. */
  take(): readonly FoundId[] {
    const found = [...this.#found.values()];
    this.#found = new Map();
    this.#newest.clear();
    return found.map(({ items, ...each }) => ({ ...each, items: [...items] }));
  }

  #note(candidate: Candidate, kind: SharedObject, { days }: KeptRule, id: unknown): void {
    if (!isId(id)) return;
    const key = `${candidate.upstream.name}\n${kind}\n${id}`;
    if (this.#found.has(key)) return;
    const found = { kind, id, candidate, days, items: new Set<string>(), areItemsWritten: true };
    this.#found.set(key, found);
    this.#newest.set(kind, found);
  }

  /** Adds an item to the newest vendor object of the given kind, if the same candidate created that object. */
  #noteItem(candidate: Candidate, kind: SharedObject, item: unknown): void {
    const id = memberOf(item, 'id');
    const owner = this.#newest.get(kind);
    if (owner?.candidate !== candidate || !isId(id) || owner.items.size === MAX_ITEMS) return;
    owner.items.add(id);
    const row = memberOf(this.#items, String(memberOf(item, 'type')));
    owner.areItemsWritten &&= memberOf(row, 'isWritten') === true;
  }
}

interface CollectedIds extends Omit<FoundId, 'items'> {
  readonly items: Set<string>;
  areItemsWritten: boolean;
}

function isId(id: unknown): id is string {
  return typeof id === 'string' && id !== '' && id.length <= MAX_ID_LENGTH;
}

function isReadFor({ events, items }: KeptRule, name: string): boolean {
  return pathIn(events, name) !== undefined || pathIn(items?.events, name) !== undefined;
}

function pathIn(events: EventPaths | undefined, name: string): readonly string[] | undefined {
  return events !== undefined && Object.hasOwn(events, name) ? events[name] : undefined;
}

/** Returns the value at a path of a value that is already parsed, or of JSON text in a Buffer. */
function valueAt(value: unknown, path: readonly string[]): unknown {
  if (!(value instanceof Buffer)) return path.reduce(memberOf, value);
  const place = findPlace([value], path);
  return place && parseJson(value.toString('utf8', place.valueStart, place.end));
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined;
}
