import type { AnswerEvent, OpenPart } from '../../catalog/answer';

interface Part {
  readonly at: number;
  readonly is: OpenPart['is'];
  text: string;
  isOpen: boolean;
}

/**
 * The parts of an answer that is being read, each by its place there. Each place holds one part of one kind, which never opens again: what
 * contradicts that throws.
 */
export class AnswerParts {
  readonly #parts = new Map<string, Part>();

  /** Whether a part has ever stood in a place. */
  has(place: string): boolean {
    return this.#parts.has(place);
  }

  get isEmpty(): boolean {
    return this.#parts.size === 0;
  }

  hasKind(is: OpenPart['is']): boolean {
    return [...this.#parts.values()].some((part) => part.is === is);
  }

  /** Opens the part of a place that has none yet. @throws for a place that holds another kind */
  open(place: string, part: OpenPart): readonly AnswerEvent[] {
    const known = this.#parts.get(place);
    if (known !== undefined && known.is !== part.is)
      throw new Error(`the ${known.is} at ${place} cannot become a ${part.is}`);
    if (known !== undefined) return [];
    const at = this.#parts.size;
    this.#parts.set(place, { at, is: part.is, text: '', isOpen: true });
    return [{ is: 'open', at, choice: 0, part }];
  }

  /** @throws where no part of this kind is open */
  add(place: string, is: OpenPart['is'], text: string): readonly AnswerEvent[] {
    const part = this.#open(place, is);
    if (text === '') return [];
    part.text += text;
    return [{ is: 'add', at: part.at, text }];
  }

  /** All that the part says. What has been given of it stands, and what is missing is added. */
  complete(place: string, is: OpenPart['is'], whole: string): readonly AnswerEvent[] {
    const part = this.#parts.get(place);
    if (part?.isOpen !== true || !whole.startsWith(part.text)) return [];
    return this.add(place, is, whole.slice(part.text.length));
  }

  /** The number of the part that is open in a place. */
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

  #open(place: string, is: OpenPart['is']): Part {
    const part = this.#parts.get(place);
    if (part === undefined) throw new Error(`a ${is} goes on at ${place} that has not begun`);
    if (part.is !== is) throw new Error(`the ${part.is} at ${place} cannot go on as a ${is}`);
    if (!part.isOpen) throw new Error(`the ${is} at ${place} goes on after its end`);
    return part;
  }
}
