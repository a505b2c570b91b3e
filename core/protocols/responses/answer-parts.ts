import type { AnswerEvent, OpenPart } from '../../catalog/answer';

interface Part {
  readonly at: number;
  readonly is: OpenPart['is'];
  text: string;
  isOpen: boolean;
}

/**
 * The parts of an answer under way, each at a place of its own. A place has one part of one kind, which never opens again; a
 * contradiction throws.
 */
export class AnswerParts {
  readonly #parts = new Map<string, Part>();

  /** `isLoose`: nothing is a contradiction, as in a native answer, and behind the end of any. */
  constructor(public isLoose: boolean) {}

  /** Whether a place has, or has had, a part. */
  has(place: string): boolean {
    return this.#parts.has(place);
  }

  get isEmpty(): boolean {
    return this.#parts.size === 0;
  }

  hasKind(is: OpenPart['is']): boolean {
    return [...this.#parts.values()].some((part) => part.is === is);
  }

  /** Opens the part of a place if it has none. @throws for a place with another kind */
  open(place: string, part: OpenPart): readonly AnswerEvent[] {
    const known = this.#parts.get(place);
    if (known !== undefined && known.is !== part.is && !this.isLoose)
      throw new Error(`the ${known.is} at ${place} cannot become a ${part.is}`);
    if (known !== undefined) return NOTHING;
    const at = this.#parts.size;
    this.#parts.set(place, { at, is: part.is, text: '', isOpen: true });
    return [{ is: 'open', at, choice: 0, part }];
  }

  /** Adds text to an open part, behind what separates it from the text before. @throws where no part of this kind is open */
  add(place: string, is: OpenPart['is'], text: string, between = ''): readonly AnswerEvent[] {
    const part = this.#parts.get(place);
    if (part === undefined && this.isLoose) {
      const opened = this.open(place, { is: is === 'tool_call' ? 'other' : is });
      return [...opened, ...this.add(place, is, text)];
    }
    if (part === undefined || (!this.isLoose && (part.is !== is || !part.isOpen)))
      throw new Error(`a ${is} goes on at ${place}, where none is open`);
    if (text === '') return NOTHING;
    // Of a native answer the text is not kept: most of it never comes here.
    part.text = this.isLoose ? part.text || text : part.text + between + text;
    const added: AnswerEvent = { is: 'add', at: part.at, text: between + text };
    return [between === '' ? added : { ...added, bytes: Buffer.byteLength(text) }];
  }

  /** Completes a part with its whole text, in which `added` bytes are no content. Adds only what earlier events did not contain. */
  complete(place: string, is: OpenPart['is'], whole: string, added = 0): readonly AnswerEvent[] {
    const part = this.#parts.get(place);
    if (part?.isOpen !== true || (this.isLoose ? part.text !== '' : !whole.startsWith(part.text))) return [];
    const isNew = part.text === '';
    const [events] = this.add(place, is, whole.slice(part.text.length));
    if (events === undefined) return [];
    return isNew && added > 0 ? [{ ...events, bytes: Buffer.byteLength(whole) - added } as AnswerEvent] : [events];
  }

  /** Returns the number of the open part in a place. */
  at(place: string): number | undefined {
    const part = this.#parts.get(place);
    return part?.isOpen === true ? part.at : undefined;
  }

  close(place: string): readonly AnswerEvent[] {
    const part = this.#parts.get(place);
    if (part?.isOpen !== true) return [];
    part.isOpen = false;
    return [{ is: 'close', at: part.at }];
  }

  closeAll(): readonly AnswerEvent[] {
    return [...this.#parts.keys()].flatMap((place) => this.close(place));
  }
}

const NOTHING: readonly AnswerEvent[] = [];
