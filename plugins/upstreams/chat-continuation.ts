import type { Continuation, SseEvent, StreamFollower } from '../../core/catalog/upstream';
import { outputTokens, totalInputTokens, type Usage } from '../../core/catalog/usage';
import { prefillEdits, SaidText, Seam } from './beginning';
import { asArray, asObject, asText, type JsonObject, parseData } from './json';

/** Continues a broken Chat answer at upstreams that treat a last assistant message as the beginning of their answer. */
export const chatContinuation: Continuation = {
  prefill: (call, beginning) => prefillEdits(call, beginning, ['max_tokens', 'max_completion_tokens']),
  follow: () => new ChatFollower(),
};

/** The members that are the same in every chunk of a stream. */
const IDENTITY = ['id', 'created', 'model', 'system_fingerprint', 'service_tier'] as const;

class ChatFollower implements StreamFollower {
  readonly #text = new SaidText();
  readonly #seam = new Seam();
  #identity: JsonObject | undefined;

  get said(): string | undefined {
    return this.#text.all;
  }

  note(event: SseEvent): void {
    const chunk = parsed(event);
    if (chunk === undefined) return;
    this.#identity ??= Object.fromEntries(IDENTITY.flatMap((name) => (name in chunk ? [[name, chunk[name]]] : [])));
    for (const choice of asArray(chunk['choices'])) this.#noteDelta(asObject(asObject(choice)?.['delta']) ?? {});
  }

  goOn(text: string): void {
    this.#seam.begin(this.said ?? '', text);
  }

  continued(event: SseEvent, usage: Usage | undefined): string | undefined {
    const chunk = parsed(event);
    if (chunk === undefined) return event.data === undefined ? undefined : `data: ${event.data}\n\n`;
    const choices = asArray(chunk['choices']).map((choice) => this.#continuedChoice(asObject(choice) ?? {}));
    const isWithoutUsage = chunk['usage'] === undefined || chunk['usage'] === null || usage === undefined;
    if (isWithoutUsage && choices.length > 0 && choices.every(isEmpty)) return undefined;
    const counts = isWithoutUsage ? {} : { usage: { ...asObject(chunk['usage']), ...countsOf(usage) } };
    return `data: ${JSON.stringify({ ...chunk, ...this.#identity, choices, ...counts })}\n\n`;
  }

  #noteDelta(delta: JsonObject): void {
    for (const [name, value] of Object.entries(delta)) {
      if (name === 'content' && (typeof value === 'string' || value === null)) this.#text.add(value ?? '');
      else if (name !== 'role' && !isNothing(value)) this.#text.giveUp();
    }
  }

  /** Removes what the caller already has from a choice: the role, and the repeated part of the text. */
  #continuedChoice(choice: JsonObject): JsonObject {
    const { role: _told, ...delta } = asObject(choice['delta']) ?? {};
    const isText = typeof delta['content'] === 'string';
    const content = isText ? this.#seam.follow(asText(delta['content'])) : delta['content'];
    const { content: _theirs, ...others } = delta;
    const shown = isNothing(content) ? others : { ...others, content };
    this.#noteDelta(shown);
    return { ...choice, delta: shown };
  }
}

/** Returns the chunk of an event; undefined for `[DONE]` and comments. */
function parsed({ data }: SseEvent): JsonObject | undefined {
  const read = data === undefined ? 'malformed' : parseData(data);
  return typeof read === 'string' ? undefined : read;
}

function isNothing(value: unknown): boolean {
  return value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0);
}

function isEmpty(choice: JsonObject): boolean {
  const delta = asObject(choice['delta']) ?? {};
  return isNothing(choice['finish_reason']) && Object.values(delta).every(isNothing);
}

function countsOf(usage: Usage): JsonObject {
  const prompt = totalInputTokens(usage);
  const completion = outputTokens(usage) ?? 0;
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
}
