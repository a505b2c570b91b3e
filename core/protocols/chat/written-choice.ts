import type { JsonObject } from '../../base/json-values';
import type { Citation, FinishReason, OpenPart } from '../../catalog/answer';

interface WrittenCallPart {
  readonly kind: 'tool_call';
  /** The position of the tool call among the calls of its choice. */
  readonly index: number;
  readonly id: string;
  readonly name: string;
  readonly isText: boolean;
  input: string;
}

/** An open text or refusal of the message. */
interface WrittenText {
  readonly kind: 'text' | 'refusal';
  /** How many characters of the message precede this text. */
  readonly from: number;
  readonly citations: Citation[];
  text: string;
}

type WrittenPart = WrittenCallPart | WrittenText;

/** One choice as a Chat client receives it: at most one text, one refusal, and calls. */
export class WrittenChoice {
  readonly index: number;
  reason: FinishReason | undefined;
  readonly #parts = new Map<number, WrittenPart>();
  readonly #open = new Set<number>();
  /** The kinds of text that are open in the message: `text`, `refusal`, both or neither. */
  readonly #openTexts = new Set<WrittenText['kind']>();
  #textLength = 0;
  #callCount = 0;

  constructor(index: number) {
    this.index = index;
  }

  /** Returns the deltas that begin a part. */
  open(at: number, part: OpenPart): readonly JsonObject[] {
    this.#open.add(at);
    if (part.kind === 'tool_call') return [this.#openCall(at, part)];
    if (part.kind === 'reasoning' || part.kind === 'other') return [];
    if (this.#openTexts.has(part.kind)) throw new Error("the upstream's answer has two open texts in one choice");
    this.#openTexts.add(part.kind);
    this.#parts.set(at, { kind: part.kind, from: this.#textLength, citations: [], text: '' });
    return [];
  }

  add(at: number, text: string): readonly JsonObject[] {
    const part = this.#openPart(at);
    if (text === '') return [];
    if (part.kind !== 'tool_call') {
      part.text += text;
      if (part.kind === 'text') this.#textLength += text.length;
      return [part.kind === 'text' ? { content: text } : { refusal: text }];
    }
    part.input += text;
    return [inputDelta(part, text)];
  }

  /** Closes a part. An empty tool input becomes an empty object, because client programs parse the input of every call. */
  close(at: number): readonly JsonObject[] {
    const part = this.#openPart(at);
    const isEmpty = part.kind === 'tool_call' && !part.isText && part.input === '';
    const deltas = isEmpty ? this.add(at, '{}') : [];
    this.#open.delete(at);
    if (part.kind !== 'tool_call') this.#openTexts.delete(part.kind);
    return deltas;
  }

  /** Keeps a citation. `last` writes all citations at once, because client programs keep only the last list that they receive. */
  cite(at: number, citation: Citation): readonly JsonObject[] {
    const part = this.#openPart(at);
    if (part.kind === 'text') part.citations.push(citation);
    return [];
  }

  /** Returns the deltas that must precede the stop reason. */
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

  #openCall(at: number, { id, name, isText = false }: Extract<OpenPart, { kind: 'tool_call' }>): JsonObject {
    const call: WrittenCallPart = { kind: 'tool_call', index: this.#callCount, id, name, isText, input: '' };
    this.#callCount += 1;
    this.#parts.set(at, call);
    return { tool_calls: [{ index: call.index, ...wholeCall(call) }] };
  }

  #openPart(at: number): WrittenPart {
    const part = this.#open.has(at) ? this.#parts.get(at) : undefined;
    if (part === undefined) throw new Error("the upstream's answer continues a part that has ended");
    return part;
  }

  #calls(): readonly WrittenCallPart[] {
    return [...this.#parts.values()].filter((part) => part.kind === 'tool_call');
  }

  #texts(kind: WrittenText['kind']): readonly WrittenText[] {
    return [...this.#parts.values()].filter((part) => part.kind === kind) as readonly WrittenText[];
  }

  #said(kind: WrittenText['kind']): string {
    return this.#texts(kind)
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

/** Returns a citation as a Chat annotation. Chat can cite only URLs. A citation without a range covers its whole part. */
function annotation(
  part: WrittenText,
  { url, title, from = 0, to = part.text.length }: Citation,
): readonly JsonObject[] {
  if (url === undefined) return [];
  const place = { start_index: part.from + from, end_index: part.from + to };
  return [{ type: 'url_citation', url_citation: { ...place, title: title ?? url, url } }];
}
