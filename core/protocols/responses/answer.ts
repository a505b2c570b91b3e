import { append } from '../../base/collections';
import { asArray, asCount, asObject, asText, type JsonObject } from '../../base/json-values';
import type { AnswerEvent, AnswerReader, Citation } from '../../catalog/answer';
import { readUsualError, type SseEvent } from '../../catalog/upstream';
import { beginOf, finishOf, usageEvents } from '../answer-events';
import { parseEvent } from '../event-json';
import { AnswerParts } from './answer-parts';
import { readLargeEvent } from './large-event';
import { readResponsesUsage } from './usage';
import { INCOMPLETE_REASONS } from './words';

/** The separator between the paragraphs of a reasoning summary, which arrive as separate parts. */
const BETWEEN = '\n\n';

/** The suffix of the names of all events with new text. `…done` events and `response.completed` repeat that text. */
const DELTA = '.delta';

/**
 * Reads one Responses answer, in which numbers identify the items and the contents of messages. Each content of a message becomes one part.
 * Each other item, such as reasoning or a call, becomes one part, too. It never rejects a native answer as contradictory, because the
 * client gets that answer unchanged.
 */
export class ResponsesReader implements AnswerReader {
  readonly #parts: AnswerParts;
  /** The last paragraph of each reasoning that received text. */
  readonly #paragraphs = new Map<string, string>();
  #hasBegun = false;

  constructor(readonly isNative = false) {
    this.#parts = new AnswerParts(isNative);
  }

  event({ name, data }: SseEvent): readonly AnswerEvent[] {
    // Some upstreams end every stream with Chat's `[DONE]`, although this protocol ends with `response.completed`.
    if (data === undefined || data === '' || data.trim() === '[DONE]') return NOTHING;
    // Native events that repeat the request or the answer are not parsed, because they are long.
    if (this.isNative && name !== undefined && isRepeating(name) && isWhole(name, data)) return NOTHING;
    const event = parseEvent(data, this.isNative);
    if (event !== undefined) return this.#read(asText(event['type']) || (name ?? ''), event);
    const large = readLargeEvent(data, name);
    return this.#read(large.type, large.event);
  }

  body(body: unknown): readonly AnswerEvent[] {
    const response = asObject(body) ?? {};
    if (response['status'] === 'failed') return this.#failed(response, body);
    return [...this.#begin(response), ...this.#end(response)];
  }

  end(): readonly AnswerEvent[] {
    return this.#parts.closeAll();
  }

  #read(type: string, event: JsonObject): readonly AnswerEvent[] {
    if (this.isNative && isRepeating(type)) return NOTHING;
    switch (type) {
      case 'response.created':
      case 'response.in_progress':
        return this.#begin(asObject(event['response']) ?? {});
      case 'response.completed':
      case 'response.incomplete': {
        const response = asObject(event['response']) ?? {};
        return [...this.#begin(response), ...this.#end(response)];
      }
      case 'response.failed':
        return this.#failed(asObject(event['response']) ?? {}, event['response']);
      case 'error':
        return [{ kind: 'error', error: readUsualError({ ...event, type: undefined }) }];
      case 'response.output_item.added':
        return this.#openItem(asObject(event['item']) ?? {}, this.#itemPlace(event));
      case 'response.output_item.done':
        return this.#wholeItem(asObject(event['item']) ?? {}, this.#itemPlace(event));
      case 'response.content_part.added':
        return this.#openContent(asObject(event['part']) ?? {}, this.#contentPlace(event));
      case 'response.content_part.done':
        return this.#wholeContent(asObject(event['part']) ?? {}, this.#contentPlace(event));
      default:
        return this.#readText(type, event);
    }
  }

  /** Reads text, which the upstream sends first in pieces and then once more as a whole. */
  #readText(type: string, event: JsonObject): readonly AnswerEvent[] {
    switch (type) {
      case 'response.output_text.delta':
        return this.#say('text', event, this.#contentPlace(event));
      case 'response.refusal.delta':
        return this.#say('refusal', event, this.#contentPlace(event));
      case 'response.output_text.done':
        return this.#parts.complete(this.#contentPlace(event), 'text', asText(event['text']));
      case 'response.refusal.done':
        return this.#parts.complete(this.#contentPlace(event), 'refusal', asText(event['refusal']));
      case 'response.output_text.annotation.added':
        return this.#cite(event['annotation'], this.#contentPlace(event));
      case 'response.reasoning_summary_text.delta':
        return this.#reason(event, `summary ${String(event['summary_index'])}`);
      case 'response.reasoning_text.delta':
        return this.#reason(event, `content ${String(event['content_index'])}`);
      case 'response.function_call_arguments.delta':
      case 'response.custom_tool_call_input.delta':
        return this.#parts.add(this.#itemPlace(event), 'tool_call', asText(event['delta']));
      case 'response.function_call_arguments.done':
        return this.#parts.complete(this.#itemPlace(event), 'tool_call', asText(event['arguments']));
      case 'response.custom_tool_call_input.done':
        return this.#parts.complete(this.#itemPlace(event), 'tool_call', asText(event['input']));
      case 'response.audio.delta':
      case 'response.image_generation_call.partial_image':
        return this.#parts.open(`${this.#itemPlace(event, true)} other`, { kind: 'other' });
      default:
        return type.endsWith(DELTA) ? this.#other(event) : [];
    }
  }

  #begin(response: JsonObject): readonly AnswerEvent[] {
    if (this.#hasBegun) return [];
    this.#hasBegun = true;
    return [beginOf(response)];
  }

  #say(kind: 'text' | 'refusal', event: JsonObject, place: string): readonly AnswerEvent[] {
    const delta = asText(event['delta']);
    const opened = this.#parts.open(place, { kind });
    return opened.length === 0
      ? this.#parts.add(place, kind, delta)
      : [...opened, ...this.#parts.add(place, kind, delta)];
  }

  /** Reads content of an item that no other protocol has, such as the code of an interpreter. */
  #other(event: JsonObject): readonly AnswerEvent[] {
    const place = `${this.#itemPlace(event, true)} other`;
    return [...this.#parts.open(place, { kind: 'other' }), ...this.#parts.add(place, 'other', asText(event['delta']))];
  }

  #reason(event: JsonObject, paragraph: string): readonly AnswerEvent[] {
    const text = asText(event['delta']);
    const place = this.#itemPlace(event);
    const opened = this.#parts.open(place, { kind: 'reasoning' });
    if (text === '') return opened;
    const before = this.#paragraphs.get(place);
    this.#paragraphs.set(place, paragraph);
    const isNext = before !== undefined && before !== paragraph;
    return [...opened, ...this.#parts.add(place, 'reasoning', text, isNext ? BETWEEN : '')];
  }

  #openItem(item: JsonObject, place: string): readonly AnswerEvent[] {
    const type = asText(item['type']);
    if (type === 'message') return [];
    if (type === 'reasoning') return this.#parts.open(place, { kind: 'reasoning' });
    if (type !== 'function_call' && type !== 'custom_tool_call') {
      const opened = this.#parts.open(place, { kind: 'other' });
      return opened.length === 0 ? [] : [...opened, ...this.#parts.add(place, 'other', otherText(item))];
    }
    const call = { kind: 'tool_call', id: asText(item['call_id']), name: asText(item['name']) } as const;
    if ((call.id === '' || call.name === '') && !this.isNative)
      throw new Error("a tool call in the upstream's answer has no id or no name");
    return this.#parts.open(place, type === 'custom_tool_call' ? { ...call, isText: true } : call);
  }

  #openContent(part: JsonObject, place: string): readonly AnswerEvent[] {
    const kind = part['type'];
    if (kind === 'output_text') return this.#parts.open(place, { kind: 'text' });
    return kind === 'refusal' ? this.#parts.open(place, { kind: 'refusal' }) : [];
  }

  #wholeItem(item: JsonObject, place: string): readonly AnswerEvent[] {
    const events: AnswerEvent[] = [];
    switch (item['type']) {
      case 'message':
        for (const [at, part] of asArray(item['content']).entries())
          append(events, this.#wholeContent(asObject(part) ?? {}, `${place}/${at}`));
        return events;
      case 'reasoning':
        append(events, this.#openItem(item, place));
        append(events, this.#wholeReasoning(item, place));
        break;
      case 'function_call':
      case 'custom_tool_call': {
        const input = asText(item[item['type'] === 'function_call' ? 'arguments' : 'input']);
        append(events, this.#openItem(item, place));
        append(events, this.#parts.complete(place, 'tool_call', input));
        break;
      }
      default:
        append(events, this.#openItem(item, place));
    }
    append(events, this.#parts.close(place));
    return events;
  }

  #wholeContent(part: JsonObject, place: string): readonly AnswerEvent[] {
    const kind = part['type'] === 'refusal' ? 'refusal' : 'text';
    const isNew = !this.#parts.has(place);
    const opened = this.#openContent(part, place);
    const whole = this.#parts.complete(place, kind, asText(part[kind]));
    // If the part arrived in pieces, its citations have already arrived.
    const cited = isNew ? asArray(part['annotations']).flatMap((each) => this.#cite(each, place)) : [];
    return [...opened, ...whole, ...cited, ...this.#parts.close(place)];
  }

  #wholeReasoning(item: JsonObject, place: string): readonly AnswerEvent[] {
    const at = this.#parts.at(place);
    if (at === undefined) return [];
    const summary = asArray(item['summary']);
    const texts = [...summary, ...asArray(item['content'])].map((part) => asText(asObject(part)?.['text']));
    const added = BETWEEN.length * (texts.length - 1);
    const whole = this.#parts.complete(place, 'reasoning', texts.join(BETWEEN), added);
    const { id, encrypted_content } = item;
    if (asText(encrypted_content) === '') return whole;
    return [...whole, { kind: 'sign', at, value: JSON.stringify({ id, summary, encrypted_content }) }];
  }

  #cite(annotation: unknown, place: string): readonly AnswerEvent[] {
    const at = this.#parts.at(place);
    const citation = citationOf(asObject(annotation) ?? {});
    return at === undefined || citation === undefined ? [] : [{ kind: 'cite', at, citation }];
  }

  #failed(response: JsonObject, body: unknown): readonly AnswerEvent[] {
    return [...usageEvents(readResponsesUsage(response)), { kind: 'error', error: readUsualError(response), body }];
  }

  #end(response: JsonObject): readonly AnswerEvent[] {
    const events: AnswerEvent[] = [];
    // Some upstreams send no event before the final one, so its `output` is read.
    if (this.#parts.isEmpty)
      for (const [at, item] of asArray(response['output']).entries())
        append(events, this.#wholeItem(asObject(item) ?? {}, String(at)));
    append(events, this.#parts.closeAll());
    this.#parts.isLoose = true;
    return [...events, this.#finish(response), ...usageEvents(readResponsesUsage(response), true), { kind: 'end' }];
  }

  #finish({ status, incomplete_details }: JsonObject): AnswerEvent {
    const details = asObject(incomplete_details);
    if (status === 'incomplete' || details !== undefined)
      return finishOf(asText(details?.['reason']) || 'max_output_tokens', INCOMPLETE_REASONS);
    return { kind: 'finish', choice: 0, reason: this.#parts.hasKind('tool_call') ? 'tool_calls' : 'end' };
  }

  #itemPlace(event: JsonObject, isOptional = this.isNative): string {
    return String(indexOf(event, 'output_index', isOptional));
  }

  #contentPlace(event: JsonObject): string {
    return `${this.#itemPlace(event)}/${indexOf(event, 'content_index', this.isNative)}`;
  }
}

const NOTHING: readonly AnswerEvent[] = [];

/** Returns whether a native event is irrelevant to routing and money: it only announces a part whose content follows, or repeats content. */
function isRepeating(type: string): boolean {
  return type.endsWith('.done') || BEGINNING.has(type);
}

const BEGINNING: ReadonlySet<string> = new Set([
  'response.created',
  'response.in_progress',
  'response.content_part.added',
]);

/** Returns whether the data begins like an event of this name and ends like an object. */
function isWhole(name: string, data: string): boolean {
  return data.startsWith(`{"type":"${name}"`) && data.endsWith('}');
}

/** Returns the text that the model wrote into an item of a kind that other protocols cannot express. */
function otherText(item: JsonObject): string {
  const texts = [...asArray(item['content']), ...asArray(item['summary'])].map((each) => {
    const part = asObject(each);
    return asText(part?.['text']) + asText(part?.['refusal']);
  });
  for (const name of ['arguments', 'input', 'code']) texts.push(asText(item[name]));
  for (const name of ['action', 'operation']) {
    const said = asObject(item[name]);
    if (said !== undefined && !VENDORS_OWN.has(asText(item['type']))) texts.push(JSON.stringify(said));
  }
  return texts.join('');
}

/** The types of calls to tools that run at the vendor. The text of these calls is not output of the model. */
const VENDORS_OWN: ReadonlySet<string> = new Set(['web_search_call']);

function citationOf({ type, url, title, start_index, end_index }: JsonObject): Citation | undefined {
  if (type !== 'url_citation' || asText(url) === '') return undefined;
  return { url: asText(url), title: asText(title) || undefined, from: asCount(start_index), to: asCount(end_index) };
}

function indexOf(event: JsonObject, name: string, isOptional: boolean): number {
  const index = asCount(event[name]);
  if (index === undefined && !isOptional) throw new Error(`an event of the upstream's answer has no ${name}`);
  return index ?? 0;
}
