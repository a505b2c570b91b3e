import { append } from '../../base/collections';
import { asArray, asCount, asObject, asText, type JsonObject } from '../../base/json-values';
import { takeRandom } from '../../base/random';
import type { AnswerEvent, AnswerReader, OpenPart } from '../../catalog/answer';
import { readUsualError, type SseEvent } from '../../catalog/upstream';
import { jsonOf } from '../../http/raw-json';
import { finishOf, usageEvents } from '../answer-events';
import { parseEvent } from '../event-json';
import { readGeminiUsage } from './usage';
import { GEMINI_STOP_REASONS } from './words';

/** The state of one choice of the answer. */
interface Choice {
  /** The open part; it ends when a part of another kind begins. */
  open: { readonly at: number; readonly is: OpenPart['is'] } | undefined;
  hasCalls: boolean;
}

/** Reads generateContent's answers: each event has only the new parts, in order. */
export class GeminiReader implements AnswerReader {
  readonly #choices = new Map<number, Choice>();
  readonly #unfinished = new Set<number>();
  #parts = 0;
  #hasBegun = false;
  #finished = 0;

  /** `asked`: how many choices the call requests. Every event has counts, so counts do not mark the last one. */
  constructor(private readonly asked = 1) {}

  event({ data }: SseEvent): readonly AnswerEvent[] {
    if (data === undefined || data === '') return [];
    return this.#read(parseEvent(data, false) as JsonObject);
  }

  body(body: unknown): readonly AnswerEvent[] {
    const events = this.#read(asObject(body) ?? {});
    return events.at(-1)?.is === 'end' ? events : [...events, ...this.end(), { is: 'end' }];
  }

  end(): readonly AnswerEvent[] {
    return [...this.#choices.values()].flatMap((choice) => closed(choice));
  }

  #read(answer: JsonObject): readonly AnswerEvent[] {
    if (answer['error'] !== undefined) return [{ is: 'error', error: readUsualError(answer) }];
    const events: AnswerEvent[] = [];
    if (!this.#hasBegun)
      events.push({ is: 'begin', id: textOf(answer['responseId']), model: textOf(answer['modelVersion']) });
    this.#hasBegun = true;
    const candidates = asArray(answer['candidates']);
    for (let at = 0; at < candidates.length; at += 1) this.#candidate(asObject(candidates[at]) ?? {}, at, events);
    const blocked = textOf(asObject(answer['promptFeedback'])?.['blockReason']);
    if (blocked !== undefined) append(events, this.#finish(0, 'SAFETY'));
    const usage = usageEvents(readGeminiUsage(answer));
    append(events, usage);
    // The protocol has no closing event: the last event has the stop reasons and the counts.
    const hasAll = blocked !== undefined || this.#finished >= this.asked;
    const isOver = hasAll && this.#unfinished.size === 0 && usage.length > 0;
    return isOver ? [...events, ...this.end(), { is: 'end' }] : events;
  }

  #candidate(candidate: JsonObject, at: number, events: AnswerEvent[]): void {
    const index = asCount(candidate['index']) ?? at;
    const choice = this.#choice(index);
    for (const part of asArray(asObject(candidate['content'])?.['parts']))
      this.#part(asObject(part) ?? {}, choice, index, events);
    const reason = textOf(candidate['finishReason']);
    if (reason === undefined || reason === 'FINISH_REASON_UNSPECIFIED') return;
    append(events, this.#finish(index, reason));
  }

  #choice(index: number): Choice {
    const known = this.#choices.get(index);
    if (known !== undefined) return known;
    const choice = { open: undefined, hasCalls: false };
    this.#unfinished.add(index);
    this.#choices.set(index, choice);
    return choice;
  }

  #part(part: JsonObject, choice: Choice, index: number, events: AnswerEvent[]): void {
    const call = asObject(part['functionCall']);
    const signature = textOf(part['thoughtSignature']);
    if (call !== undefined) return void append(events, this.#call(call, signature, choice, index));
    const text = asText(part['text']);
    if (text !== '') {
      append(events, this.#opened(part['thought'] === true ? 'reasoning' : 'text', choice, index));
      if (choice.open !== undefined) events.push({ is: 'add', at: choice.open.at, text });
    }
    // Gemini puts the signature of reasoning into the part that follows it.
    if (signature !== undefined) append(events, this.#signed(signature, choice, index));
  }

  /** Reads a tool call, whose input arrives whole. */
  #call(call: JsonObject, signature: string | undefined, choice: Choice, choiceIndex: number): readonly AnswerEvent[] {
    const events = signature === undefined ? [] : this.#signed(signature, choice, choiceIndex);
    const ended = closed(choice);
    const at = this.#next();
    const id = textOf(call['id']) ?? `call_${takeRandom(12).toString('base64url')}`;
    choice.hasCalls = true;
    return [
      ...events,
      ...ended,
      { is: 'open', at, choice: choiceIndex, part: { is: 'tool_call', id, name: asText(call['name']) } },
      { is: 'add', at, text: jsonOf(asObject(call['args']) ?? {}) },
      { is: 'close', at },
    ];
  }

  /** Puts a signature on the reasoning before it. If there is none, opens empty reasoning for it. */
  #signed(value: string, choice: Choice, index: number): readonly AnswerEvent[] {
    const events = this.#opened('reasoning', choice, index);
    const at = choice.open?.at ?? 0;
    return [...events, { is: 'sign', at, value }, ...closed(choice)];
  }

  #opened(is: 'text' | 'reasoning', choice: Choice, index: number): readonly AnswerEvent[] {
    if (choice.open?.is === is) return NOTHING;
    const ended = closed(choice);
    choice.open = { at: this.#next(), is };
    return [...ended, { is: 'open', at: choice.open.at, choice: index, part: { is } }];
  }

  #next(): number {
    this.#parts += 1;
    return this.#parts - 1;
  }

  #finish(index: number, word: string): readonly AnswerEvent[] {
    const choice = this.#choice(index);
    if (!this.#unfinished.delete(index)) return [];
    this.#finished += 1;
    const read = finishOf(word, GEMINI_STOP_REASONS, index);
    const reason = read.reason === 'end' && choice.hasCalls ? 'tool_calls' : read.reason;
    return [...closed(choice), { ...read, reason }];
  }
}

const NOTHING: readonly AnswerEvent[] = [];

function closed(choice: Choice): readonly AnswerEvent[] {
  const { open } = choice;
  choice.open = undefined;
  return open === undefined ? [] : [{ is: 'close', at: open.at }];
}

function textOf(value: unknown): string | undefined {
  return asText(value) || undefined;
}
