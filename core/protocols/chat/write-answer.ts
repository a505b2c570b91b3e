import type { JsonObject } from '../../base/json-values';
import type {
  AnswerError,
  AnswerEvent,
  AnswerWriter,
  ClientEvent,
  FinishReason,
  WrittenCall,
} from '../../catalog/answer';
import { openaiError, statusOf } from '../error-words';
import { WrittenUsage } from '../written-usage';
import { writeChatUsage } from './usage';
import { CHAT_WRITTEN_REASONS } from './words';
import { WrittenChoice } from './written-choice';

/** Returns an error with the vendor's own message, and a type and a code that Chat clients know. */
export function writeChatError(error: AnswerError, status: number, requestId: string): JsonObject {
  return { error: openaiError(error, status), request_id: requestId };
}

export class ChatWriter implements AnswerWriter {
  readonly #call: WrittenCall;
  readonly #choices = new Map<number, WrittenChoice>();
  /** The choice that each part belongs to; undefined for reasoning, which Chat cannot express. */
  readonly #choiceOf = new Map<number, WrittenChoice | undefined>();
  readonly #used: WrittenUsage;
  #isOver = false;
  #chunkHead: string | undefined;

  constructor(call: WrittenCall) {
    this.#call = call;
    this.#used = new WrittenUsage(call);
  }

  write(event: AnswerEvent): readonly ClientEvent[] {
    if (this.#isOver) return [];
    this.#used.note(event);
    switch (event.kind) {
      case 'begin':
        return this.#begin(0);
      case 'open':
        return this.#open(event);
      case 'add':
        return this.#deltas(event.at, (choice) => choice.add(event.at, event.text));
      case 'close':
        return this.#deltas(event.at, (choice) => choice.close(event.at));
      case 'cite':
        return this.#deltas(event.at, (choice) => choice.cite(event.at, event.citation));
      case 'finish':
        return this.#finish(event.choice, event.reason);
      case 'usage':
        return [];
      case 'error':
        this.#isOver = true;
        return [this.#error(event.error)];
      case 'end':
        this.#isOver = true;
        return [...this.#finishChunks(), ...this.#usageChunk(), { data: '[DONE]' }];
      case 'sign':
        return [];
    }
  }

  body(events: readonly AnswerEvent[]): JsonObject {
    for (const event of events) this.write(event);
    const choices = [...this.#choices.values()].sort((one, other) => one.index - other.index);
    const usage = writeChatUsage(this.#used.counts);
    return {
      ...this.#head('chat.completion'),
      choices: choices.map((choice) => ({
        index: choice.index,
        message: choice.message(),
        logprobs: null,
        finish_reason: CHAT_WRITTEN_REASONS[choice.reason ?? 'end'],
      })),
      ...(usage !== undefined && { usage }),
    };
  }

  #open({ at, choice: index, part }: Extract<AnswerEvent, { kind: 'open' }>): readonly ClientEvent[] {
    if (this.#choiceOf.has(at)) throw new Error("the upstream's answer begins the same part twice");
    const begun = this.#begin(index);
    const choice = part.kind === 'reasoning' ? undefined : this.#choices.get(index);
    this.#choiceOf.set(at, choice);
    return [...begun, ...(choice?.open(at, part) ?? []).map((delta) => this.#chunk(index, delta))];
  }

  /** Returns the first chunk of a choice, which names its role. */
  #begin(index: number): readonly ClientEvent[] {
    if (this.#choices.has(index)) return [];
    this.#choices.set(index, new WrittenChoice(index));
    return [this.#chunk(index, { role: 'assistant', content: '', refusal: null })];
  }

  #deltas(at: number, deltasOf: (choice: WrittenChoice) => readonly JsonObject[]): readonly ClientEvent[] {
    if (!this.#choiceOf.has(at)) throw new Error("the upstream's answer continues a part that has not begun");
    const choice = this.#choiceOf.get(at);
    return choice === undefined ? [] : deltasOf(choice).map((delta) => this.#chunk(choice.index, delta));
  }

  /** Keeps the stop reason until the answer ends, because some upstreams send more content after it. */
  #finish(index: number, reason: FinishReason): readonly ClientEvent[] {
    const begun = this.#begin(index);
    const choice = this.#choices.get(index);
    if (choice !== undefined) choice.reason ??= reason;
    return begun;
  }

  #finishChunks(): readonly ClientEvent[] {
    return [...this.#choices.values()].flatMap((choice) => {
      const { index, reason } = choice;
      if (reason === undefined) return [];
      const last = choice.last().map((delta) => this.#chunk(index, delta));
      return [...last, { ...this.#chunk(index, {}, CHAT_WRITTEN_REASONS[reason]), finish: true }];
    });
  }

  #usageChunk(): readonly ClientEvent[] {
    const usage = writeChatUsage(this.#used.counts);
    if (usage === undefined) return [];
    const chunk = { ...this.#head('chat.completion.chunk'), choices: [], usage };
    return [{ data: JSON.stringify(chunk), finalUsage: true }];
  }

  #error(error: AnswerError): ClientEvent {
    return { data: JSON.stringify({ error: openaiError(error, statusOf(error) ?? 500) }) };
  }

  /** Concatenates a chunk's JSON text instead of serializing an object, because all chunks of an answer begin alike. */
  #chunk(index: number, delta: JsonObject, finish: string | null = null): ClientEvent {
    this.#chunkHead ??= JSON.stringify(this.#head('chat.completion.chunk')).slice(0, -1);
    const choice = `{"index":${index},"delta":${JSON.stringify(delta)},"logprobs":null,"finish_reason":${JSON.stringify(finish)}}`;
    return { data: `${this.#chunkHead},"choices":[${choice}]}` };
  }

  #head(object: string): JsonObject {
    const { requestId, id = `chatcmpl-${requestId}`, createdAt, model } = this.#call;
    return { id, object, created: createdAt, model };
  }
}
