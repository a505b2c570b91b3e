/** The content of an answer, before it is written in the form of a protocol. */
export interface ModelAnswer {
  readonly id: string;
  readonly model: string;
  /** When the answer was created, as Unix time in seconds. */
  readonly createdAt: number;
  /** The answer's text, split into the pieces that a stream sends. */
  readonly texts: readonly string[];
  readonly toolCalls: readonly ToolCall[];
  readonly stop: Stop;
  readonly usage: TokenCounts;
}

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
}

export type Stop = 'end' | 'length' | 'tool' | 'refusal';

export interface TokenCounts {
  /** Input tokens, without those read from or written to a cache. */
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
}

/** Formats one server-sent event for the wire. */
export function sseEvent(data: unknown, name?: string): string {
  const lines = name === undefined ? '' : `event: ${name}\n`;
  return `${lines}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;
}

/** Returns a tool's input in pieces of JSON text, as a stream sends it. */
export function inputPieces(input: Readonly<Record<string, unknown>>): string[] {
  return jsonPiecesOf(JSON.stringify(input));
}

export function jsonPiecesOf(text: string): string[] {
  return text.match(/.{1,12}/gs) ?? [];
}
