import { append } from '../../base/collections';
import { asArray, asCount, asObject, asText, type JsonObject } from '../../base/json-values';
import type { AnswerEvent, AnswerReader } from '../../catalog/answer';
import { readUsualError, type SseEvent } from '../../catalog/upstream';
import { beginOf, usageEvents } from '../answer-events';
import { parseEvent } from '../event-json';
import type { UsageSettings } from '../usage-report';
import { ChoiceReader } from './read-choice';
import { readChatUsage } from './usage';

/** Reads one Chat answer. It never rejects a native answer as contradictory, because the client gets that answer unchanged. */
export class ChatReader implements AnswerReader {
  readonly #choices = new Map<number, ChoiceReader>();
  #parts = 0;
  #id = '';
  #hasBegun = false;

  constructor(
    private readonly isNative = false,
    /** The `adapterSettings` of the upstream. */
    private readonly settings?: unknown,
  ) {}

  event({ data }: SseEvent): readonly AnswerEvent[] {
    if (data === undefined || data === '') return [];
    const trimmed = data.trim();
    if (trimmed === '[DONE]') return this.#end();
    const chunk = parseEvent(data, this.isNative);
    if (chunk === undefined) return [{ kind: 'add', at: 0, text: data }];
    return this.#read(chunk, 'delta');
  }

  body(body: unknown): readonly AnswerEvent[] {
    const answer = asObject(body);
    if (answer === undefined && !this.isNative) throw new Error('the answer is no JSON object');
    const events = this.#read(answer ?? {}, 'message');
    return events.at(-1)?.kind === 'error' ? events : [...events, ...this.#end()];
  }

  end(): readonly AnswerEvent[] {
    return this.#closeAll();
  }

  /** Some upstreams have `"error": null` in every chunk. */
  #read(answer: JsonObject, member: 'delta' | 'message'): readonly AnswerEvent[] {
    if (answer['error'] !== undefined && answer['error'] !== null && answer['error'] !== '')
      return [...this.#closeAll(), { kind: 'error', error: readUsualError(answer) }];
    const choices = asArray(answer['choices']);
    // Some upstreams report running token counts in every chunk. Only a chunk without choices, or one that ends the choices, has the final counts.
    const isLast = choices.length === 0 || choices.some((each) => reasonOf(asObject(each) ?? {}) !== '');
    const usage = readChatUsage(answer, this.settings as UsageSettings | undefined);
    const events = usageEvents(usage, isLast && asObject(answer['usage']) !== undefined);
    // Some upstreams send a first chunk that has neither choices nor an id, so it does not begin the answer.
    if (choices.length > 0 || member === 'message') this.#begin(answer, events);
    for (let at = 0; at < choices.length; at += 1) {
      const choice = asObject(choices[at]);
      if (choice !== undefined) this.#readChoice(choice, asCount(choice['index']) ?? at, member, events);
      if (events.at(-1)?.kind === 'error') break;
    }
    return events;
  }

  #begin(answer: JsonObject, events: AnswerEvent[]): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    this.#id = asText(answer['id']);
    events.push(beginOf(answer));
  }

  #readChoice(choice: JsonObject, index: number, member: 'delta' | 'message', events: AnswerEvent[]): void {
    const reader = this.#choiceOf(index);
    reader.say(asObject(choice[member]) ?? {}, member === 'message', events);
    const reason = reasonOf(choice);
    if (reason !== '' || member === 'message') reader.finish(reason, asText(choice['stop_reason']), events);
  }

  #choiceOf(index: number): ChoiceReader {
    const known = this.#choices.get(index);
    if (known !== undefined) return known;
    const reader = new ChoiceReader(index, this.#id, this.isNative, () => this.#parts++);
    this.#choices.set(index, reader);
    return reader;
  }

  #end(): readonly AnswerEvent[] {
    const events: AnswerEvent[] = [];
    this.#begin({}, events);
    append(events, this.#closeAll());
    events.push({ kind: 'end' });
    return events;
  }

  #closeAll(): readonly AnswerEvent[] {
    const events: AnswerEvent[] = [];
    for (const choice of this.#choices.values()) choice.close(events);
    return events;
  }
}

function reasonOf(choice: JsonObject): string {
  return asText(choice['finish_reason']);
}
