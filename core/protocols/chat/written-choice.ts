import type { JsonObject } from '../../base/json-values';
import type { Citation, FinishReason, OpenPart } from '../../catalog/answer';

interface WrittenCallPart {
  readonly is: 'tool_call';
  /** The call's position among the calls of the choice. */
  readonly index: number;
  readonly id: string;
  readonly name: string;
  readonly isText: boolean;
  input: string;
}

/** A text or a refusal. */
interface WrittenText {
  readonly is: 'text' | 'refusal';
  /** How many characters of the message come before it. */
  readonly from: number;
  readonly citations: Citation[];
  text: string;
}

type WrittenPart = WrittenCallPart | WrittenText;

/** One choice as a Chat client receives it: one text, one refusal, and calls. */
export class WrittenChoice {
  readonly index: number;
  reason: FinishReason | undefined;
  readonly #parts = new Map<number, WrittenPart>();
  readonly #open = new Set<number>();
  /** Whether a text and a refusal are open. */
  readonly #openTexts = new Set<WrittenText['is']>();
  #textLength = 0;
  #callCount = 0;

  constructor(index: number) {
    this.index = index;
  }

  /** Returns the deltas that begin a part. */
  open(at: number, part: OpenPart): readonly JsonObject[] {
    this.#open.add(at);
    if (part.is === 'tool_call') return [this.#openCall(at, part)];
    if (part.is === 'reasoning' || part.is === 'other') return [];
    if (this.#openTexts.has(part.is)) throw new Error('two texts of one choice come at the same time');
    this.#openTexts.add(part.is);
    this.#parts.set(at, { is: part.is, from: this.#textLength, citations: [], text: '' });
    return [];
  }

  add(at: number, text: string): readonly JsonObject[] {
    const part = this.#openPart(at);
    if (text === '') return [];
    if (part.is !== 'tool_call') {
      part.text += text;
      if (part.is === 'text') this.#textLength += text.length;
      return [part.is === 'text' ? { content: text } : { refusal: text }];
    }
    part.input += text;
    return [inputDelta(part, text)];
  }

  /** Closes a part. An empty input becomes an empty object, because programs parse the input of every call. */
  close(at: number): readonly JsonObject[] {
    const part = this.#openPart(at);
    const isEmpty = part.is === 'tool_call' && !part.isText && part.input === '';
    const deltas = isEmpty ? this.add(at, '{}') : [];
    this.#open.delete(at);
    if (part.is !== 'tool_call') this.#openTexts.delete(part.is);
    return deltas;
  }

  /** Keeps a citation. `last` writes all citations at once, because programs keep only the last list that they get. */
  cite(at: number, citation: Citation): readonly JsonObject[] {
    const part = this.#openPart(at);
    if (part.is === 'text') part.citations.push(citation);
    return [];
  }

  /** Returns the deltas that must come before the stop reason. */
  last(): readonly JsonObject[] {
    const closed = [...this.#open].flatMap((at) => this.close(at));
    const annotations = this.#annotations();
    return annotations.length === 0 ? closed : [...closed, { annotations }];
  }

  message(): JsonObject {
    const calls = this.#calls().map(wholeCall);
    const refusal = this.#said('refusal');
    const text = this.#said('text');
    const annotations = this.#annotations();
    const isSilent = text === '' && (calls.length > 0 || refusal !== '');
    return {
      role: 'assistant',
      content: isSilent ? null : text,
      refusal: refusal === '' ? null : refusal,
      ...(annotations.length > 0 && { annotations }),
      ...(calls.length > 0 && { tool_calls: calls }),
    };
  }

  #openCall(at: number, { id, name, isText = false }: Extract<OpenPart, { is: 'tool_call' }>): JsonObject {
    const call: WrittenCallPart = { is: 'tool_call', index: this.#callCount, id, name, isText, input: '' };
    this.#callCount += 1;
    this.#parts.set(at, call);
    return { tool_calls: [{ index: call.index, ...wholeCall(call) }] };
  }

  #openPart(at: number): WrittenPart {
    const part = this.#open.has(at) ? this.#parts.get(at) : undefined;
    if (part === undefined) throw new Error('a part of the answer goes on behind its end');
    return part;
  }

  #calls(): readonly WrittenCallPart[] {
    return [...this.#parts.values()].filter((part) => part.is === 'tool_call');
  }

  #texts(is: WrittenText['is']): readonly WrittenText[] {
    return [...this.#parts.values()].filter((part) => part.is === is) as readonly WrittenText[];
  }

  #said(is: WrittenText['is']): string {
    return this.#texts(is)
      .map(({ text }) => text)
      .join('');
  }

  #annotations(): readonly JsonObject[] {
    return this.#texts('text').flatMap((part) => part.citations.flatMap((citation) => annotation(part, citation)));
  }
}

function wholeCall({ id, name, isText, input }: WrittenCallPart): JsonObject {
  return isText
    ? { id, type: 'custom', custom: { name, input } }
    : { id, type: 'function', function: { name, arguments: input } };
}

function inputDelta({ index, isText }: WrittenCallPart, text: string): JsonObject {
  return { tool_calls: [isText ? { index, custom: { input: text } } : { index, function: { arguments: text } }] };
}

/** Returns a citation as an annotation. Chat knows only citations of addresses. A citation without a range covers its whole part. */
function annotation(
  part: WrittenText,
  { url, title, from = 0, to = part.text.length }: Citation,
): readonly JsonObject[] {
  if (url === undefined) return [];
  const place = { start_index: part.from + from, end_index: part.from + to };
  return [{ type: 'url_citation', url_citation: { ...place, title: title ?? url, url } }];
}
