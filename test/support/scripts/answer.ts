import type { ModelAnswer, Stop, TokenCounts } from '../../../demo/dialects/answer';

/** The content of a scripted answer. Every member has a default. */
export interface Said {
  readonly model?: string;
  readonly id?: string;
  /** One piece of text. */
  readonly text?: string;
  /** The pieces in which a stream sends the text. */
  readonly texts?: readonly string[];
  readonly toolCalls?: readonly {
    readonly name: string;
    readonly input: Record<string, unknown>;
    readonly id?: string;
  }[];
  readonly stop?: Stop;
  readonly usage?: Partial<TokenCounts>;
  /** Replaces the whole `usage` member, however wrong; null omits it. */
  readonly rawUsage?: unknown;
}

export const DEFAULT_USAGE: TokenCounts = { input: 10, output: 5, cacheRead: 0, cacheWrite: 0 };

export function answerOf(said: Said, idPrefix: string): ModelAnswer {
  const toolCalls = (said.toolCalls ?? []).map((call, index) => ({ id: `call_${index + 1}`, ...call }));
  return {
    id: said.id ?? `${idPrefix}_1`,
    model: said.model ?? 'test-model',
    createdAt: 1_700_000_000,
    texts: said.texts ?? (said.text === undefined && toolCalls.length > 0 ? [] : [said.text ?? 'Hello.']),
    toolCalls,
    stop: said.stop ?? (toolCalls.length > 0 ? 'tool' : 'end'),
    usage: { ...DEFAULT_USAGE, ...said.usage },
  };
}

/** Returns the same JSON with another `usage` wherever there was one. */
export function withRawUsage(body: Record<string, unknown>, rawUsage: unknown): Record<string, unknown> {
  if (rawUsage === undefined || body['usage'] === undefined || body['usage'] === null) return body;
  const { usage: _, ...rest } = body;
  return rawUsage === null ? rest : { ...rest, usage: rawUsage };
}

/** Returns an event with another `usage` in the body at its top level. */
export function eventWithRawUsage(event: string, rawUsage: unknown): string {
  const start = event.indexOf('data: {');
  if (rawUsage === undefined || start < 0) return event;
  const body = JSON.parse(event.slice(start + 6)) as Record<string, unknown>;
  return `${event.slice(0, start + 6)}${JSON.stringify(withRawUsage(body, rawUsage))}\n\n`;
}
