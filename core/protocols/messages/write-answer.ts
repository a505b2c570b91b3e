import type { JsonObject } from '../../base/json-values';
import type {
  AnswerError,
  AnswerEvent,
  AnswerWriter,
  ClientEvent,
  FinishReason,
  WrittenCall,
} from '../../catalog/answer';
import { isTooLong, statusOf, tooLongMessage } from '../error-words';
import { WrittenUsage } from '../written-usage';
import { foldAnswer } from './fold-answer';
import { writeMessagesUsage } from './usage';
import { ERROR_TYPES, MESSAGES_WRITTEN_REASONS } from './words';
import { BlockWriter, type PartEvent } from './write-blocks';

export class MessagesWriter implements AnswerWriter {
  readonly #call: WrittenCall;
  readonly #blocks: BlockWriter;
  #stage: 'new' | 'begun' | 'ended' = 'new';
  readonly #used: WrittenUsage;
  #finish: { readonly reason: FinishReason; readonly stop?: string | undefined } | undefined;
  #hasCalls = false;
  #hasRefused = false;

  constructor(call: WrittenCall) {
    this.#call = call;
    this.#used = new WrittenUsage(call);
    this.#blocks = new BlockWriter((value) => call.seal(value));
  }

  write(event: AnswerEvent): readonly ClientEvent[] {
    return this.#say(event).map((said) => {
      const written = { name: String(said['type']), data: JSON.stringify(said) };
      return said['type'] === 'message_delta' ? { ...written, finish: true, finalUsage: true } : written;
    });
  }

  body(events: readonly AnswerEvent[]): JsonObject {
    const said = [...events, END].flatMap((event) => this.#say(event));
    return foldAnswer(said, { ...this.#stopped(), usage: this.#written() });
  }

  #say(event: AnswerEvent): readonly JsonObject[] {
    if (this.#stage === 'ended') return [];
    this.#used.note(event);
    switch (event.kind) {
      case 'begin':
        return this.#begin();
      case 'usage':
        return [];
      case 'finish':
        if (event.choice === 0) this.#finish ??= event;
        return [];
      case 'end':
        return this.#end();
      case 'error':
        this.#stage = 'ended';
        return [writeMessagesError(event.error, 200, this.#call.requestId)];
      default:
        this.#note(event);
        return this.#stage === 'begun' ? this.#blocks.write(event) : [...this.#begin(), ...this.#blocks.write(event)];
    }
  }

  #note(event: PartEvent): void {
    if (event.kind !== 'open' || event.choice !== 0) return;
    this.#hasCalls ||= event.part.kind === 'tool_call';
    this.#hasRefused ||= event.part.kind === 'refusal';
  }

  #begin(): readonly JsonObject[] {
    if (this.#stage !== 'new') return [];
    this.#stage = 'begun';
    const { requestId, id = `msg_${requestId}`, model } = this.#call;
    const message = {
      id,
      type: 'message',
      role: 'assistant',
      model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      stop_details: null,
      container: null,
      usage: this.#written(),
    };
    return [{ type: 'message_start', message }];
  }

  /** Ends the message. Without a stop reason the answer is incomplete, so the client gets no final event. */
  #end(): readonly JsonObject[] {
    const begun = this.#begin();
    this.#stage = 'ended';
    const closed = [...begun, ...this.#blocks.closeAll()];
    if (this.#finish === undefined) return closed;
    const delta = { ...this.#stopped(), stop_details: null, container: null };
    return [...closed, { type: 'message_delta', delta, usage: this.#written() }, { type: 'message_stop' }];
  }

  #stopped(): { readonly stop_reason: string | null; readonly stop_sequence: string | null } {
    if (this.#finish === undefined) return { stop_reason: null, stop_sequence: null };
    const { reason, stop } = this.#finish;
    return { stop_reason: this.#reasonFor(reason), stop_sequence: reason === 'stop' ? (stop ?? null) : null };
  }

  /** Returns the Messages stop reason. Some dialects report `end` even if the model calls a tool or refuses. */
  #reasonFor(reason: FinishReason): string {
    if (reason === 'end' && this.#hasRefused) return MESSAGES_WRITTEN_REASONS.filter;
    if (reason === 'end' && this.#hasCalls) return MESSAGES_WRITTEN_REASONS.tool_calls;
    return MESSAGES_WRITTEN_REASONS[reason];
  }

  #written(): JsonObject {
    return writeMessagesUsage(this.#used.counts);
  }
}

const END: AnswerEvent = { kind: 'end' };

/** Returns an upstream's error in the form that Messages has for a status. An error inside a stream has no status, so its code and type decide. */
export function writeMessagesError(error: AnswerError, status: number, requestId: string): JsonObject {
  const { code, param } = error;
  const known = status >= 400 ? status : (statusOf(error) ?? 500);
  const type = ERROR_TYPES[known] ?? (known < 500 ? 'invalid_request_error' : 'api_error');
  const message = isTooLong(error) ? tooLongMessage(error) : error.message;
  return {
    type: 'error',
    error: { type, message, ...(code !== undefined && { code }), ...(param !== undefined && { param }) },
    request_id: requestId,
  };
}
