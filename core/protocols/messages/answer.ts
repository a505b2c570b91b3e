import { append } from '../../base/collections';
import { asArray, asCount, asObject, asText, type JsonObject } from '../../base/json-values';
import type { AnswerEvent, AnswerReader, Citation, OpenPart } from '../../catalog/answer';
import { readUsualError, type SseEvent } from '../../catalog/upstream';
import { withOutput } from '../../catalog/usage';
import { jsonOf } from '../../http/raw-json';
import { beginOf, finishOf, usageEvents } from '../answer-events';
import { parseEvent } from '../event-json';
import { readMessagesUsage } from './usage';
import { MESSAGES_STOP_REASONS } from './words';
import { redactedValue } from './write-parts';

/** An open content block. */
interface Block {
  /** The number of the block's part in the answer. */
  readonly at: number;
  /** The block's type, which determines its allowed deltas. */
  readonly kind: string;
  /** How many characters the block has so far. */
  length: number;
  /** The tool input in the content block's first event, as JSON. It counts only if no delta follows. */
  readonly input: string;
  readonly citations: Citation[];
}

/**
 * Reads one Messages answer: its beginning, its blocks by index, its stop reason and its end. Events in a wrong order are errors, except in
 * a native answer, because the client gets it unchanged.
 */
export class MessagesReader implements AnswerReader {
  #stage: 'new' | 'begun' | 'finished' | 'ended' = 'new';
  /** Open blocks by index. */
  readonly #blocks = new Map<number, Block>();
  /** The highest block index so far. No index is used twice. */
  #newest = -1;
  #parts = 0;

  constructor(readonly isNative = false) {}

  event({ name, data }: SseEvent): readonly AnswerEvent[] {
    if (data === undefined || data === '') return [];
    const event = parseEvent(data, this.isNative);
    if (event !== undefined) return this.#read(asText(event['type']) || (name ?? ''), event);
    if (name === 'content_block_stop') return [];
    return this.#add(this.#opened(this.#newest + 1, { type: 'unread' }, []), { type: 'text_delta', text: data });
  }

  body(body: unknown): readonly AnswerEvent[] {
    const message = asObject(body) ?? {};
    if (message['type'] === 'error') return this.#read('error', message);
    if (!Array.isArray(message['content'])) this.#contradict('the answer is not a message: it has no list `content`');
    const events = [...usageEvents(readMessagesUsage(message, true), true), ...this.#begin(message)];
    for (const [index, block] of asArray(message['content']).entries()) {
      append(events, this.#open(index, asObject(block) ?? {}));
      append(events, this.#close(index));
    }
    return [...events, ...this.#finish(message), ...this.#end()];
  }

  end(): readonly AnswerEvent[] {
    return this.#closeAll();
  }

  #read(type: string, event: JsonObject): readonly AnswerEvent[] {
    switch (type) {
      case 'message_start': {
        // The output count in the first event is a placeholder, so it is dropped. If it counted, a broken stream would be almost free.
        const message = asObject(event['message']) ?? {};
        const usage = withOutput(readMessagesUsage(message, false), undefined);
        const isKnown = asObject(message['usage']) !== undefined;
        return [...(isKnown ? usageEvents(usage) : []), ...this.#begin(message)];
      }
      case 'content_block_start':
        return this.#open(asCount(event['index']), asObject(event['content_block']) ?? {});
      case 'content_block_delta':
        return this.#delta(asCount(event['index']), asObject(event['delta']) ?? {});
      case 'content_block_stop':
        return this.#close(asCount(event['index']));
      case 'message_delta': {
        const delta = asObject(event['delta']) ?? {};
        return [
          ...usageEvents(readMessagesUsage(event, true), asText(delta['stop_reason']) !== ''),
          ...this.#finish(delta),
        ];
      }
      case 'message_stop':
        return this.#end();
      case 'error':
        return [...this.#closeAll(), { kind: 'error', error: readUsualError(event) }];
      default:
        return [];
    }
  }

  #contradict(why: string): void {
    if (!this.isNative && this.#stage !== 'ended') throw new Error(why);
  }

  #begin(message: JsonObject): AnswerEvent[] {
    if (this.#stage !== 'new') this.#contradict('the answer begins a second time');
    this.#stage = 'begun';
    return [beginOf(message)];
  }

  #open(index: number | undefined, start: JsonObject): readonly AnswerEvent[] {
    this.#mayHaveBlocks(index);
    if (index !== undefined && index <= this.#newest) this.#contradict('a content block begins that has begun before');
    const events: AnswerEvent[] = [];
    const block = this.#opened(index ?? this.#newest + 1, start, events);
    append(events, this.#addText(block, textIn(start)));
    for (const citation of asArray(start['citations'])) block.citations.push(citationOf(asObject(citation) ?? {}));
    const value = signatureIn(start);
    if (value !== '') events.push({ kind: 'sign', at: block.at, value });
    return events;
  }

  #mayHaveBlocks(index: number | undefined): void {
    if (this.#stage !== 'begun' && this.#stage !== 'finished')
      this.#contradict('a content block stands outside of the answer');
    if (index === undefined) this.#contradict('a content block has no index');
  }

  #opened(index: number, start: JsonObject, events: AnswerEvent[]): Block {
    const kind = asText(start['type']);
    const at = this.#parts++;
    const block = { at, kind, length: 0, input: kind === 'tool_use' ? inputIn(start) : '', citations: [] };
    this.#newest = Math.max(this.#newest, index);
    this.#blocks.set(index, block);
    const hidden = kind === 'redacted_thinking' ? Buffer.byteLength(asText(start['data'])) : undefined;
    events.push({
      kind: 'open',
      at,
      choice: 0,
      part: partOf(kind, start),
      ...(hidden !== undefined && { bytes: hidden }),
    });
    return block;
  }

  #delta(index: number | undefined, delta: JsonObject): readonly AnswerEvent[] {
    this.#mayHaveBlocks(index);
    const block = index === undefined ? undefined : this.#blocks.get(index);
    if (block !== undefined) return this.#add(block, delta);
    this.#contradict('an event continues a content block that is not open');
    const events: AnswerEvent[] = [];
    const other = this.#opened(index ?? this.#newest + 1, { type: 'unknown' }, events);
    return [...events, ...this.#add(other, delta)];
  }

  #add(block: Block, delta: JsonObject): readonly AnswerEvent[] {
    const type = asText(delta['type']);
    const belongs = DELTAS.get(type);
    if (belongs === undefined) return [];
    if (belongs.block !== block.kind && BLOCKS.has(block.kind))
      this.#contradict(`a content block of the type ${block.kind} goes on as another`);
    if (type === 'citations_delta') {
      block.citations.push(citationOf(asObject(delta['citation']) ?? {}));
      return [];
    }
    const text = asText(delta[belongs.member]);
    if (type !== 'signature_delta') return this.#addText(block, text);
    return text === '' ? [] : [{ kind: 'sign', at: block.at, value: text }];
  }

  #addText(block: Block, text: string): readonly AnswerEvent[] {
    if (text === '') return [];
    block.length += text.length;
    return [{ kind: 'add', at: block.at, text }];
  }

  #close(index: number | undefined): readonly AnswerEvent[] {
    this.#mayHaveBlocks(index);
    const block = index === undefined ? undefined : this.#blocks.get(index);
    if (index === undefined || block === undefined) {
      this.#contradict('an event ends a content block that is not open');
      return [];
    }
    this.#blocks.delete(index);
    const { at, length, input, citations } = block;
    const events: AnswerEvent[] = [];
    if (length === 0 && input !== '')
      events.push({ kind: 'add', at, text: input, ...(input === '{}' && { bytes: 0 }) });
    // A citation waits until its content block closes, because it applies to the whole block, whose length is unknown until then.
    for (const citation of citations) events.push({ kind: 'cite', at, citation: { ...citation, from: 0, to: length } });
    events.push({ kind: 'close', at });
    return events;
  }

  #closeAll(): readonly AnswerEvent[] {
    const blocks = [...this.#blocks.keys()];
    return blocks.length === 0 ? [] : blocks.flatMap((index) => this.#close(index));
  }

  #finish(delta: JsonObject): readonly AnswerEvent[] {
    if (this.#stage === 'new') this.#contradict('the answer stops before it begins');
    const word = asText(delta['stop_reason']);
    if (word === '' || (this.#stage !== 'begun' && !this.isNative)) return [];
    const closed = this.#closeAll();
    if (this.#stage !== 'ended') this.#stage = 'finished';
    const stop = asText(delta['stop_sequence']);
    const refused = this.#refuse(asObject(delta['stop_details']) ?? {});
    return [...closed, ...refused, { ...(stop !== '' && { stop }), ...finishOf(word, MESSAGES_STOP_REASONS) }];
  }

  /** Returns the vendor's explanation of a refusal as a separate part. The model has not written it, so it costs no tokens. */
  #refuse({ type, explanation }: JsonObject): readonly AnswerEvent[] {
    const text = asText(explanation);
    if (type !== 'refusal' || text === '' || this.isNative) return [];
    const at = this.#parts++;
    return [
      { kind: 'open', at, choice: 0, part: { kind: 'refusal' } },
      { kind: 'add', at, text, bytes: 0 },
      { kind: 'close', at },
    ];
  }

  #end(): readonly AnswerEvent[] {
    if (this.#stage === 'new') this.#contradict('the answer ends before it begins');
    const closed = this.#closeAll();
    this.#stage = 'ended';
    return [...closed, { kind: 'end' }];
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

/** The types of blocks that other protocols can express. */
const BLOCKS: ReadonlySet<string> = new Set(['text', 'thinking', 'redacted_thinking', 'tool_use']);

function partOf(kind: string, { id, name }: JsonObject): OpenPart {
  switch (kind) {
    case 'text':
      return { kind: 'text' };
    case 'thinking':
    case 'redacted_thinking':
      return { kind: 'reasoning' };
    case 'tool_use':
      return { kind: 'tool_call', id: asText(id), name: asText(name) };
    default:
      return { kind: 'other' };
  }
}

function textIn({ type, text, thinking }: JsonObject): string {
  if (type === 'text') return asText(text);
  return type === 'thinking' ? asText(thinking) : '';
}

function signatureIn({ type, signature, data }: JsonObject): string {
  if (type === 'redacted_thinking') return asText(data) === '' ? '' : redactedValue(asText(data));
  return type === 'thinking' ? asText(signature) : '';
}

function inputIn({ input }: JsonObject): string {
  return jsonOf(asObject(input) ?? {});
}

function citationOf(citation: JsonObject): Citation {
  const source = asText(citation['source']);
  return {
    url: asText(citation['url']) || (/^https?:/i.test(source) ? source : undefined),
    title: asText(citation['title']) || asText(citation['document_title']) || undefined,
    quote: asText(citation['cited_text']) || undefined,
  };
}
