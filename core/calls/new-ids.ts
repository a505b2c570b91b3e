import type { Candidate } from '../catalog/catalog';
import type { Protocol, SseEvent } from '../catalog/upstream';
import type { KeptRule, SharedObject } from '../dialects/dialect';
import { DIALECTS } from '../dialects/dialects';
import { findPlace } from '../wire/json-members';
import { parseJson } from '../wire/read-answer';

/** An object that an answer has made. */
export interface FoundId {
  readonly kind: SharedObject;
  readonly id: string;
  readonly candidate: Candidate;
  readonly days: number;
}

/** A longer id is not one, and would fill the memory. */
const LONGEST_ID = 1_000;
/** Larger events are not parsed: they may say again all that was asked. */
const LARGEST_PARSED_EVENT = 256 * 1024;

/** Finds the ids that the answers to one call make. Only a call that can make any has one. */
export class NewIds {
  readonly #rules: readonly (readonly [SharedObject, KeptRule])[];
  #found = new Map<string, FoundId>();

  constructor(protocol: Protocol, makes: readonly SharedObject[]) {
    const { kept } = DIALECTS[protocol];
    this.#rules = makes.flatMap((kind) => {
      const rule = kept[kind];
      return rule === undefined ? [] : [[kind, rule] as const];
    });
  }

  /** Reads an unstreamed answer. */
  noteBody(candidate: Candidate, body: unknown): void {
    for (const [kind, rule] of this.#rules) this.#note(candidate, kind, rule, body, rule.answer);
  }

  /** Reads an event of a stream. Some upstreams name an event only in its data. */
  noteEvent(candidate: Candidate, { name, data = '' }: SseEvent): void {
    const isNamed = name !== undefined && name !== '';
    const isLarge = data.length > LARGEST_PARSED_EVENT;
    if (isNamed ? !this.#rules.some(([, { events }]) => Object.hasOwn(events, name)) : isLarge) return;
    const event = isLarge ? Buffer.from(data) : parseJson(data);
    const type = isNamed ? name : String(memberOf(event, 'type'));
    for (const [kind, rule] of this.#rules) {
      const path = Object.hasOwn(rule.events, type) ? rule.events[type] : undefined;
      if (path !== undefined) this.#note(candidate, kind, rule, event, path);
    }
  }

  /** Returns what was found since it was last asked. */
  take(): readonly FoundId[] {
    const found = [...this.#found.values()];
    this.#found = new Map();
    return found;
  }

  #note(candidate: Candidate, kind: SharedObject, { days }: KeptRule, value: unknown, path: readonly string[]): void {
    const id = value instanceof Buffer ? memberAt(value, path) : path.reduce(memberOf, value);
    if (typeof id === 'string' && id !== '' && id.length <= LONGEST_ID)
      this.#found.set(`${candidate.upstream.name}\n${kind}\n${id}`, { kind, id, candidate, days });
  }
}

function memberAt(text: Buffer, path: readonly string[]): unknown {
  const place = findPlace([text], path);
  return place && parseJson(text.toString('utf8', place.valueStart, place.end));
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined;
}
