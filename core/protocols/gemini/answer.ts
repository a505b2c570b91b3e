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
  /** The open part; it ends when a different kind of part begins. */
  open: { readonly at: number; readonly kind: OpenPart['kind'] } | undefined;
  hasCalls: boolean;
}

/** Reads the answers of generateContent. Each event contains only the new parts, in order. */
export class GeminiReader implements AnswerReader {
  readonly #choices = new Map<number, Choice>();
  readonly #unfinished = new Set<number>();
  #parts = 0;
  #hasBegun = false;
  #finished = 0;

  /** `asked` is how many choices the call requests. The reader needs it because every event contains token counts, so counts do not mark the last event. */
  constructor(private readonly asked = 1) {}

  event({ data }: SseEvent): readonly AnswerEvent[] {
    if (data === undefined || data === '') return [];
    return this.#read(parseEvent(data, false) as JsonObject);
  }

  body(body: unknown): readonly AnswerEvent[] {
    const events = this.#read(asObject(body) ?? {});
    return events.at(-1)?.kind === 'end' ? events : [...events, ...this.end(), { kind: 'end' }];
  }

  end(): readonly AnswerEvent[] {
    return [...this.#choices.values()].flatMap((choice) => closed(choice));
  }

  #read(answer: JsonObject): readonly AnswerEvent[] {
    if (answer['error'] !== undefined) return [{ kind: 'error', error: readUsualError(answer) }];
    const events: AnswerEvent[] = [];
    if (!this.#hasBegun)
      events.push({ kind: 'begin', id: textOf(answer['responseId']), model: textOf(answer['modelVersion']) });
    this.#hasBegun = true;
    const candidates = asArray(answer['candidates']);
    for (let at = 0; at < candidates.length; at += 1) this.#candidate(asObject(candidates[at]) ?? {}, at, events);
    const blocked = textOf(asObject(answer['promptFeedback'])?.['blockReason']);
    if (blocked !== undefined) append(events, this.#finish(0, 'SAFETY'));
    const usage = usageEvents(readGeminiUsage(answer));
    append(events, usage);
    // The protocol has no closing event. The last event contains the token counts, and the stop reasons of all choices or a block reason.
    const hasAll = blocked !== undefined || this.#finished >= this.asked;
    const isOver = hasAll && this.#unfinished.size === 0 && usage.length > 0;
    return isOver ? [...events, ...this.end(), { kind: 'end' }] : events;
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
      if (choice.open !== undefined) events.push({ kind: 'add', at: choice.open.at, text });
    }
    // Gemini puts the signature of reasoning into the part that follows it.
    if (signature !== undefined) append(events, this.#signed(signature, choice, index));
  }

  /** Reads a tool call, whose input always arrives complete. */
  #call(call: JsonObject, signature: string | undefined, choice: Choice, choiceIndex: number): readonly AnswerEvent[] {
    const events = signature === undefined ? [] : this.#signed(signature, choice, choiceIndex);
    const ended = closed(choice);
    const at = this.#next();
    const id = textOf(call['id']) ?? `call_${takeRandom(12).toString('base64url')}`;
    choice.hasCalls = true;
    return [
      ...events,
      ...ended,
      { kind: 'open', at, choice: choiceIndex, part: { kind: 'tool_call', id, name: asText(call['name']) } },
      { kind: 'add', at, text: jsonOf(asObject(call['args']) ?? {}) },
      { kind: 'close', at },
    ];
  }

  /** Attaches a signature to the reasoning before it. If there is none, opens empty reasoning for the signature. */
  #signed(value: string, choice: Choice, index: number): readonly AnswerEvent[] {
    const events = this.#opened('reasoning', choice, index);
    const at = choice.open?.at ?? 0;
    return [...events, { kind: 'sign', at, value }, ...closed(choice)];
  }

  #opened(kind: 'text' | 'reasoning', choice: Choice, index: number): readonly AnswerEvent[] {
    if (choice.open?.kind === kind) return NOTHING;
    const ended = closed(choice);
    choice.open = { at: this.#next(), kind };
    return [...ended, { kind: 'open', at: choice.open.at, choice: index, part: { kind } }];
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
  return open === undefined ? [] : [{ kind: 'close', at: open.at }];
}

function textOf(value: unknown): string | undefined {
  return asText(value) || undefined;
}
