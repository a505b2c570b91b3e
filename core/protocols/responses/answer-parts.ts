import type { AnswerEvent, OpenPart } from '../../catalog/answer';

interface Part {
  readonly at: number;
  readonly kind: OpenPart['kind'];
  text: string;
  isOpen: boolean;
}

/**
 * The parts of an arriving answer, each at its own position. A position has one part of one kind, which never reopens. An event that
 * contradicts this throws.
 */
export class AnswerParts {
  readonly #parts = new Map<string, Part>();

  /** `isLoose` accepts contradictory parts. It is set for native answers, which the client gets unchanged, and for every answer after its end. */
  constructor(public isLoose: boolean) {}

  /** Returns whether the answer has, or has had, a part at a position. */
  has(place: string): boolean {
    return this.#parts.has(place);
  }

  get isEmpty(): boolean {
    return this.#parts.size === 0;
  }

  hasKind(kind: OpenPart['kind']): boolean {
    return [...this.#parts.values()].some((part) => part.kind === kind);
  }

  /** Opens the part at a position if there is none. @throws if the position has a part of another kind */
  open(place: string, part: OpenPart): readonly AnswerEvent[] {
    const known = this.#parts.get(place);
    if (known !== undefined && known.kind !== part.kind && !this.isLoose)
      throw new Error(`the upstream's answer continues the ${known.kind} at ${place} as a ${part.kind}`);
    if (known !== undefined) return NOTHING;
    const at = this.#parts.size;
    this.#parts.set(place, { at, kind: part.kind, text: '', isOpen: true });
    return [{ kind: 'open', at, choice: 0, part }];
  }

  /** Adds text to an open part, after the separator `between`. @throws if no part of this kind is open at the position */
  add(place: string, kind: OpenPart['kind'], text: string, between = ''): readonly AnswerEvent[] {
    const part = this.#parts.get(place);
    if (part === undefined && this.isLoose) {
      const opened = this.open(place, { kind: kind === 'tool_call' ? 'other' : kind });
      return [...opened, ...this.add(place, kind, text)];
    }
    if (part === undefined || (!this.isLoose && (part.kind !== kind || !part.isOpen)))
      throw new Error(`the upstream's answer continues a ${kind} at ${place}, where none is open`);
    if (text === '') return NOTHING;
    // The text of a native answer is not accumulated, because most events of that answer are never parsed.
    part.text = this.isLoose ? part.text || text : part.text + between + text;
    const added: AnswerEvent = { kind: 'add', at: part.at, text: between + text };
    return [between === '' ? added : { ...added, bytes: Buffer.byteLength(text) }];
  }

  /** Completes a part with its whole text, of which `added` bytes separate paragraphs. Adds only the text that earlier events did not contain. */
  complete(place: string, kind: OpenPart['kind'], whole: string, added = 0): readonly AnswerEvent[] {
    const part = this.#parts.get(place);
    if (part?.isOpen !== true || (this.isLoose ? part.text !== '' : !whole.startsWith(part.text))) return [];
    const isNew = part.text === '';
    const [events] = this.add(place, kind, whole.slice(part.text.length));
    if (events === undefined) return [];
    return isNew && added > 0 ? [{ ...events, bytes: Buffer.byteLength(whole) - added } as AnswerEvent] : [events];
  }

  /** Returns the number of the open part at a position; undefined if none is open. */
  at(place: string): number | undefined {
    const part = this.#parts.get(place);
    return part?.isOpen === true ? part.at : undefined;
  }

  close(place: string): readonly AnswerEvent[] {
    const part = this.#parts.get(place);
    if (part?.isOpen !== true) return [];
    part.isOpen = false;
    return [{ kind: 'close', at: part.at }];
  }

  closeAll(): readonly AnswerEvent[] {
    return [...this.#parts.keys()].flatMap((place) => this.close(place));
  }
}

const NOTHING: readonly AnswerEvent[] = [];
