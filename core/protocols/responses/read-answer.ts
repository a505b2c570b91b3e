import type { AnswerEvent, AnswerReader, Citation, FinishReason } from '../../catalog/answer';
import { readUsualError, type SseEvent } from '../../catalog/upstream';
import { UNKNOWN_USAGE } from '../../catalog/usage';
import { asArray, asCount, asObject, asText, type JsonObject } from '../../json-values';
import { parseJson } from '../../parse-json';
import { AnswerParts } from './answer-parts';

export function openReader(): AnswerReader {
  return new ResponsesReader();
}

/** Separates the paragraphs of a summary, which arrive in parts. */
const BETWEEN = '\n\n';

/**
 * Reads one answer. Numbers identify the items and the parts of messages. A message itself is not a part, only its contents;
 * reasoning and a call are one part each.
 */
class ResponsesReader implements AnswerReader {
  readonly #parts = new AnswerParts();
  /** The paragraph of each reasoning that last got text. */
  readonly #paragraphs = new Map<string, string>();
  #hasBegun = false;
  #hasEnded = false;

  event({ name, data }: SseEvent): readonly AnswerEvent[] {
    if (this.#hasEnded || data === undefined || data === '' || data.trim() === '[DONE]') return [];
    const event = asObject(parseJson(data));
    if (event === undefined) throw new Error('an event is no JSON object');
    return this.#read(asText(event['type']) || (name ?? ''), event);
  }

  body(body: unknown): readonly AnswerEvent[] {
    const response = asObject(body) ?? {};
    return response['status'] === 'failed'
      ? [{ is: 'error', error: readUsualError(response) }]
      : [...this.#begin(response), ...this.#end(response)];
  }

  end(): readonly AnswerEvent[] {
    return this.#parts.closeAll();
  }

  #read(type: string, event: JsonObject): readonly AnswerEvent[] {
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
        return [{ is: 'error', error: readUsualError(event['response']) }];
      case 'error':
        return [{ is: 'error', error: readUsualError({ ...event, type: undefined }) }];
      case 'response.output_item.added':
        return this.#openItem(asObject(event['item']) ?? {}, indexOf(event, 'output_index'));
      case 'response.output_item.done':
        return this.#wholeItem(asObject(event['item']) ?? {}, indexOf(event, 'output_index'));
      case 'response.content_part.added':
        return this.#openContent(asObject(event['part']) ?? {}, contentPlace(event));
      case 'response.content_part.done':
        return this.#wholeContent(asObject(event['part']) ?? {}, contentPlace(event));
      default:
        return this.#readText(type, event);
    }
  }

  /** Reads text, which arrives in pieces and then once more as a whole. */
  #readText(type: string, event: JsonObject): readonly AnswerEvent[] {
    const delta = asText(event['delta']);
    switch (type) {
      case 'response.output_text.delta':
        return this.#say('text', delta, contentPlace(event));
      case 'response.refusal.delta':
        return this.#say('refusal', delta, contentPlace(event));
      case 'response.output_text.done':
        return this.#parts.complete(contentPlace(event), 'text', asText(event['text']));
      case 'response.refusal.done':
        return this.#parts.complete(contentPlace(event), 'refusal', asText(event['refusal']));
      case 'response.output_text.annotation.added':
        return this.#cite(event['annotation'], contentPlace(event));
      case 'response.reasoning_summary_text.delta':
        return this.#reason(delta, event, `summary ${String(event['summary_index'])}`);
      case 'response.reasoning_text.delta':
        return this.#reason(delta, event, `content ${String(event['content_index'])}`);
      case 'response.function_call_arguments.delta':
      case 'response.custom_tool_call_input.delta':
        return this.#parts.add(itemPlace(event), 'tool_call', delta);
      case 'response.function_call_arguments.done':
        return this.#parts.complete(itemPlace(event), 'tool_call', asText(event['arguments']));
      case 'response.custom_tool_call_input.done':
        return this.#parts.complete(itemPlace(event), 'tool_call', asText(event['input']));
      default:
        return [];
    }
  }

  #begin(response: JsonObject): readonly AnswerEvent[] {
    if (this.#hasBegun) return [];
    this.#hasBegun = true;
    return [{ is: 'begin', id: asText(response['id']) || undefined, model: asText(response['model']) || undefined }];
  }

  #say(is: 'text' | 'refusal', text: string, place: string): readonly AnswerEvent[] {
    return [...this.#parts.open(place, { is }), ...this.#parts.add(place, is, text)];
  }

  #reason(text: string, event: JsonObject, paragraph: string): readonly AnswerEvent[] {
    const place = itemPlace(event);
    const opened = this.#parts.open(place, { is: 'reasoning' });
    if (text === '') return opened;
    const before = this.#paragraphs.get(place);
    this.#paragraphs.set(place, paragraph);
    const isNext = before !== undefined && before !== paragraph;
    return [...opened, ...this.#parts.add(place, 'reasoning', isNext ? BETWEEN + text : text)];
  }

  #openItem(item: JsonObject, index: number): readonly AnswerEvent[] {
    const type = item['type'];
    const place = String(index);
    if (type === 'reasoning') return this.#parts.open(place, { is: 'reasoning' });
    if (type !== 'function_call' && type !== 'custom_tool_call') return [];
    const call = { is: 'tool_call', id: asText(item['call_id']), name: asText(item['name']) } as const;
    if (call.id === '' || call.name === '') throw new Error('a call has no id or no name');
    return this.#parts.open(place, type === 'custom_tool_call' ? { ...call, isText: true } : call);
  }

  #openContent(part: JsonObject, place: string): readonly AnswerEvent[] {
    const is = part['type'];
    if (is === 'output_text') return this.#parts.open(place, { is: 'text' });
    return is === 'refusal' ? this.#parts.open(place, { is: 'refusal' }) : [];
  }

  #wholeItem(item: JsonObject, index: number): readonly AnswerEvent[] {
    const place = String(index);
    switch (item['type']) {
      case 'message':
        return asArray(item['content']).flatMap((part, at) =>
          this.#wholeContent(asObject(part) ?? {}, `${place}/${at}`),
        );
      case 'reasoning':
        return [...this.#openItem(item, index), ...this.#wholeReasoning(item, place), ...this.#parts.close(place)];
      case 'function_call':
      case 'custom_tool_call': {
        const input = asText(item[item['type'] === 'function_call' ? 'arguments' : 'input']);
        const opened = this.#openItem(item, index);
        return [...opened, ...this.#parts.complete(place, 'tool_call', input), ...this.#parts.close(place)];
      }
      default:
        return [];
    }
  }

  #wholeContent(part: JsonObject, place: string): readonly AnswerEvent[] {
    const is = part['type'] === 'refusal' ? 'refusal' : 'text';
    const isNew = !this.#parts.has(place);
    const opened = this.#openContent(part, place);
    const whole = this.#parts.complete(place, is, asText(part[is]));
    // If the part came in pieces, its citations have come, too.
    const cited = isNew ? asArray(part['annotations']).flatMap((each) => this.#cite(each, place)) : [];
    return [...opened, ...whole, ...cited, ...this.#parts.close(place)];
  }

  #wholeReasoning(item: JsonObject, place: string): readonly AnswerEvent[] {
    const at = this.#parts.at(place);
    if (at === undefined) return [];
    const summary = asArray(item['summary']);
    const texts = [...summary, ...asArray(item['content'])].map((part) => asText(asObject(part)?.['text']));
    const whole = this.#parts.complete(place, 'reasoning', texts.join(BETWEEN));
    const { id, encrypted_content } = item;
    if (asText(encrypted_content) === '') return whole;
    return [...whole, { is: 'sign', at, value: JSON.stringify({ id, summary, encrypted_content }) }];
  }

  #cite(annotation: unknown, place: string): readonly AnswerEvent[] {
    const at = this.#parts.at(place);
    const citation = citationOf(asObject(annotation) ?? {});
    return at === undefined || citation === undefined ? [] : [{ is: 'cite', at, citation }];
  }

  #end(response: JsonObject): readonly AnswerEvent[] {
    this.#hasEnded = true;
    // Some upstreams send no event before the end.
    const output = this.#parts.isEmpty ? asArray(response['output']) : [];
    const said = output.flatMap((item, at) => this.#wholeItem(asObject(item) ?? {}, at));
    const reasoning = asCount(asObject(asObject(response['usage'])?.['output_tokens_details'])?.['reasoning_tokens']);
    return [
      ...said,
      ...this.#parts.closeAll(),
      { is: 'finish', choice: 0, reason: this.#reasonOf(response) },
      ...(reasoning ? [{ is: 'usage', usage: UNKNOWN_USAGE, reasoning } as const] : []),
      { is: 'end' },
    ];
  }

  #reasonOf(response: JsonObject): FinishReason {
    if (response['status'] === 'incomplete' || asObject(response['incomplete_details']) !== undefined)
      return asObject(response['incomplete_details'])?.['reason'] === 'content_filter' ? 'filter' : 'length';
    return this.#parts.hasKind('tool_call') ? 'tool_calls' : 'end';
  }
}

function citationOf({ type, url, title, start_index, end_index }: JsonObject): Citation | undefined {
  if (type !== 'url_citation' || asText(url) === '') return undefined;
  return { url: asText(url), title: asText(title) || undefined, from: asCount(start_index), to: asCount(end_index) };
}

function itemPlace(event: JsonObject): string {
  return String(indexOf(event, 'output_index'));
}

function contentPlace(event: JsonObject): string {
  return `${itemPlace(event)}/${indexOf(event, 'content_index')}`;
}

function indexOf(event: JsonObject, name: string): number {
  const index = asCount(event[name]);
  if (index === undefined) throw new Error(`an event has no ${name}`);
  return index;
}
