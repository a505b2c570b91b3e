/** What a model said, before it is written in a protocol's own shape. */
export interface ModelAnswer {
  readonly id: string;
  readonly model: string;
  /** Unix time in seconds. */
  readonly createdAt: number;
  /** The text, in the pieces a stream sends it in. */
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
  /** Without those read from or written to a cache. */
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
}

/** One server-sent event as it stands on the wire. */
export function sseEvent(data: unknown, name?: string): string {
  const lines = name === undefined ? '' : `event: ${name}\n`;
  return `${lines}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;
}

/** A tool's input as the pieces of JSON text a stream sends it in. */
export function inputPieces(input: Readonly<Record<string, unknown>>): string[] {
  return JSON.stringify(input).match(/.{1,12}/gs) ?? [];
}
