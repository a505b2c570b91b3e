import type { AnswerEvent, AnswerReader, Citation, FinishReason, OpenPart } from '../../catalog/answer';
import { readUsualError, type SseEvent } from '../../catalog/upstream';
import { UNKNOWN_USAGE } from '../../catalog/usage';
import { asArray, asCount, asObject, asText, type JsonObject } from '../../json-values';
import { parseJson } from '../../parse-json';
import { redactedValue } from './write-parts';

export function openReader(): AnswerReader {
  return new MessagesReader();
}

/** An open content block. */
interface Block {
  /** The number of its part; undefined for a type that the reader ignores. */
  readonly at: number | undefined;
  /** Its type, which decides the deltas that it may have. */
  readonly kind: string;
  /** The whole text so far. */
  text: string;
  signature: string;
  /** The input in its first event, as JSON. It counts only if no delta follows. */
  readonly input: string;
  readonly citations: Citation[];
}

/** Reads one answer: its beginning, its blocks by index, its stop reason and its end. Events in another order are errors. */
class MessagesReader implements AnswerReader {
  #stage: 'new' | 'begun' | 'finished' | 'ended' = 'new';
  /** Open blocks by index. */
  readonly #blocks = new Map<number, Block>();
  /** The highest index so far. Each index is used once. */
  #newest = -1;
  #parts = 0;

  event({ name, data }: SseEvent): readonly AnswerEvent[] {
    if (data === undefined || data === '' || this.#stage === 'ended') return [];
    const event = asObject(parseJson(data));
    if (event === undefined) throw new Error('an event of the answer is not a JSON object');
    return this.#read(asText(event['type']) || (name ?? ''), event);
  }

  body(body: unknown): readonly AnswerEvent[] {
    const message = asObject(body);
    if (message?.['type'] === 'error') return this.#read('error', message);
    if (!Array.isArray(message?.['content'])) throw new Error('the answer is not a message: it has no list `content`');
    const content = asArray(message['content']);
    return [
      ...this.#read('message_start', { message }),
      ...content.flatMap((block, index) => [
        ...this.#read('content_block_start', { index, content_block: block }),
        ...this.#read('content_block_stop', { index }),
      ]),
      ...this.#read('message_delta', { delta: message, usage: message['usage'] }),
      ...this.#read('message_stop', {}),
    ];
  }

  end(): readonly AnswerEvent[] {
    return this.#closeAll();
  }

  #read(type: string, event: JsonObject): readonly AnswerEvent[] {
    switch (type) {
      case 'message_start':
        return this.#begin(asObject(event['message']) ?? {});
      case 'content_block_start':
        return this.#open(this.#indexOf(event), asObject(event['content_block']) ?? {});
      case 'content_block_delta':
        return this.#add(this.#blockOf(event), asObject(event['delta']) ?? {});
      case 'content_block_stop':
        this.#blockOf(event);
        return this.#close(this.#indexOf(event));
      case 'message_delta':
        return this.#finish(asObject(event['delta']) ?? {}, asObject(event['usage']) ?? {});
      case 'message_stop':
        return this.#end();
      case 'error':
        this.#stage = 'ended';
        return [...this.#closeAll(), { is: 'error', error: readUsualError(event) }];
      default:
        return [];
    }
  }

  #begin({ id, model }: JsonObject): readonly AnswerEvent[] {
    if (this.#stage !== 'new') throw new Error('the answer begins a second time');
    this.#stage = 'begun';
    return [{ is: 'begin', id: asText(id) || undefined, model: asText(model) || undefined }];
  }

  #indexOf({ index }: JsonObject): number {
    if (this.#stage !== 'begun') throw new Error('a content block stands outside of the answer');
    const read = asCount(index);
    if (read === undefined) throw new Error('a content block has no index');
    return read;
  }

  #blockOf(event: JsonObject): Block {
    const block = this.#blocks.get(this.#indexOf(event));
    if (block === undefined) throw new Error('an event continues or ends a content block that is not open');
    return block;
  }

  #open(index: number, start: JsonObject): readonly AnswerEvent[] {
    if (index <= this.#newest) throw new Error('a content block begins that has begun before');
    this.#newest = index;
    const kind = asText(start['type']);
    const part = partOf(kind, start);
    const at = part && this.#parts++;
    const block = { at, kind, text: '', signature: signatureIn(start), input: inputIn(start), citations: [] };
    this.#blocks.set(index, block);
    if (at === undefined || part === undefined) return [];
    return [
      { is: 'open', at, choice: 0, part },
      ...this.#addText(block, textIn(start)),
      ...asArray(start['citations']).flatMap((citation) => this.#cite(block, citation)),
    ];
  }

  #add(block: Block, delta: JsonObject): readonly AnswerEvent[] {
    const type = asText(delta['type']);
    const belongs = DELTAS.get(type);
    if (block.at === undefined || belongs === undefined) return [];
    if (belongs.block !== block.kind) throw new Error(`a content block of the type ${block.kind} goes on as another`);
    if (type === 'citations_delta') return this.#cite(block, delta['citation']);
    const text = asText(delta[belongs.member]);
    if (type !== 'signature_delta') return this.#addText(block, text);
    block.signature = text;
    return [];
  }

  #addText(block: Block, text: string): readonly AnswerEvent[] {
    if (block.at === undefined || text === '') return [];
    block.text += text;
    return [{ is: 'add', at: block.at, text }];
  }

  /** Keeps a citation until its block closes, because it is about the whole block. */
  #cite(block: Block, value: unknown): readonly AnswerEvent[] {
    block.citations.push(citationOf(asObject(value) ?? {}));
    return [];
  }

  #close(index: number): readonly AnswerEvent[] {
    const block = this.#blocks.get(index);
    this.#blocks.delete(index);
    if (block?.at === undefined) return [];
    const { at, kind, text, signature, input, citations } = block;
    return [
      ...(kind === 'tool_use' && text === '' ? this.#addText(block, input) : []),
      ...citations.map((citation) => ({
        is: 'cite' as const,
        at,
        citation: { ...citation, from: 0, to: text.length },
      })),
      ...(signature === '' ? [] : [{ is: 'sign' as const, at, value: signature }]),
      { is: 'close', at },
    ];
  }

  #closeAll(): readonly AnswerEvent[] {
    return [...this.#blocks.keys()].flatMap((index) => this.#close(index));
  }

  #finish(delta: JsonObject, usage: JsonObject): readonly AnswerEvent[] {
    if (this.#stage === 'new') throw new Error('the answer stops before it begins');
    const reasoning = asCount(asObject(usage['output_tokens_details'])?.['thinking_tokens']);
    const usageEvents: readonly AnswerEvent[] =
      reasoning === undefined ? [] : [{ is: 'usage', usage: UNKNOWN_USAGE, reasoning }];
    const reason = asText(delta['stop_reason']);
    if (reason === '' || this.#stage !== 'begun') return usageEvents;
    const closed = this.#closeAll();
    this.#stage = 'finished';
    const stop = asText(delta['stop_sequence']) || undefined;
    return [
      ...closed,
      ...this.#refuse(asObject(delta['stop_details']) ?? {}),
      { is: 'finish', choice: 0, reason: REASONS.get(reason) ?? 'end', ...(stop !== undefined && { stop }) },
      ...usageEvents,
    ];
  }

  /** Returns the vendor's explanation of a refusal as a part of its own. */
  #refuse({ type, explanation }: JsonObject): readonly AnswerEvent[] {
    const text = asText(explanation);
    if (type !== 'refusal' || text === '') return [];
    const at = this.#parts++;
    return [
      { is: 'open', at, choice: 0, part: { is: 'refusal' } },
      { is: 'add', at, text },
      { is: 'close', at },
    ];
  }

  #end(): readonly AnswerEvent[] {
    if (this.#stage === 'new') throw new Error('the answer ends before it begins');
    this.#stage = 'ended';
    return [...this.#closeAll(), { is: 'end' }];
  }
}

/** The type of block to which each delta belongs, and the member that has its text. Other deltas are ignored. */
const DELTAS: ReadonlyMap<string, { readonly block: string; readonly member: string }> = new Map([
  ['text_delta', { block: 'text', member: 'text' }],
  ['citations_delta', { block: 'text', member: 'citation' }],
  ['thinking_delta', { block: 'thinking', member: 'thinking' }],
  ['signature_delta', { block: 'thinking', member: 'signature' }],
  ['input_json_delta', { block: 'tool_use', member: 'partial_json' }],
]);

const REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ['end_turn', 'end'],
  ['max_tokens', 'length'],
  ['stop_sequence', 'stop'],
  ['tool_use', 'tool_calls'],
  ['pause_turn', 'pause'],
  ['refusal', 'filter'],
  ['model_context_window_exceeded', 'context'],
]);

function partOf(kind: string, { id, name }: JsonObject): OpenPart | undefined {
  switch (kind) {
    case 'text':
      return { is: 'text' };
    case 'thinking':
    case 'redacted_thinking':
      return { is: 'reasoning' };
    case 'tool_use':
      return { is: 'tool_call', id: asText(id), name: asText(name) };
    default:
      return undefined;
  }
}

function textIn({ type, text, thinking }: JsonObject): string {
  if (type === 'text') return asText(text);
  return type === 'thinking' ? asText(thinking) : '';
}

function signatureIn({ type, signature, data }: JsonObject): string {
  if (type === 'redacted_thinking') return asText(data) === '' ? '' : redactedValue(asText(data));
  return asText(signature);
}

function inputIn({ input }: JsonObject): string {
  return JSON.stringify(asObject(input) ?? {});
}

function citationOf(citation: JsonObject): Citation {
  const source = asText(citation['source']);
  return {
    url: asText(citation['url']) || (/^https?:/i.test(source) ? source : undefined),
    title: asText(citation['title']) || asText(citation['document_title']) || undefined,
    quote: asText(citation['cited_text']) || undefined,
  };
}
