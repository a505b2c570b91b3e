/** The content of one answer, before a dialect writes it. */
export interface Turn {
  readonly parts: readonly Part[];
  /** Cuts the stream off after this share of its events (0 to 1). */
  readonly cutAt?: number;
}

export type Part =
  | { readonly kind: 'reasoning'; readonly text: string }
  | { readonly kind: 'text'; readonly text: string }
  | ToolCall
  /** A search that runs at the vendor. */
  | { readonly kind: 'webSearch'; readonly query: string; readonly url: string }
  /** A search for tools that the client deferred: the vendor finds these, or leaves the search to the client. */
  | { readonly kind: 'toolSearch'; readonly query: string; readonly found: readonly string[] | 'by client' };

/** A call of a tool that runs at the client. */
export interface ToolCall {
  readonly kind: 'call';
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
}

/** An error answer in the words of the dialect. */
export interface Refusal {
  readonly refuse: RefusalKind;
}

export type RefusalKind = 'invalid' | 'tooLong' | 'rateLimited' | 'broken';

export type Step = Turn | Refusal;

/** The usage of one call, by the meters that the vendor has prices for. */
export interface Counts {
  readonly input: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly cacheWrite1h: number;
  readonly output: number;
  /** The reasoning tokens, which are part of `output`. */
  readonly reasoning: number;
  readonly webSearches: number;
}

/** Converts a dialect's answer to bodies and events. */
export interface Written {
  readonly body: Readonly<Record<string, unknown>>;
  readonly events: readonly string[];
}

export interface RefusalBody {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
}

export const say = (text: string): Part => ({ kind: 'text', text });
export const think = (text: string): Part => ({ kind: 'reasoning', text });
export const turn = (...parts: readonly Part[]): Turn => ({ parts });
export const refuse = (kind: RefusalKind): Refusal => ({ refuse: kind });

/** Splits a text, or a value as JSON, into the pieces of a stream. */
export function piecesOf(value: unknown): readonly string[] {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.match(/.{1,16}/gs) ?? [];
}
