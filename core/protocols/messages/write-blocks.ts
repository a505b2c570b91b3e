import { append } from '../../base/collections';
import type { JsonObject } from '../../base/json-values';
import type { AnswerEvent, Citation, OpenPart } from '../../catalog/answer';
import { seal } from '../seal';
import { jsonInputOf } from '../text-tools';

/** An answer event that belongs to one part. */
export type PartEvent = Extract<AnswerEvent, { at: number }>;

interface Block {
  readonly at: number;
  readonly part: OpenPart;
  readonly index: number;
  isSigned: boolean;
  /** The input so far of a tool that accepts plain text. It is written as JSON when it is complete. */
  text: string;
}

/** Writes the content blocks of an answer sequentially. Events of another part wait until the open part closes. */
export class BlockWriter {
  readonly #seal: (value: string) => string;
  #index = 0;
  #block: Block | undefined;
  /** The events of waiting parts, by part, in the order in which the parts began. */
  readonly #waiting = new Map<number, PartEvent[]>();

  constructor(sealed: (value: string) => string) {
    this.#seal = sealed;
  }

  write(event: PartEvent): readonly JsonObject[] {
    const block = this.#block;
    if (block?.at === event.at) return event.kind === 'close' ? this.#close(block) : this.#go(block, event);
    const waiting = this.#waiting.get(event.at);
    if (waiting !== undefined) waiting.push(event);
    else if (event.kind === 'open' && event.choice === 0) {
      if (block === undefined) return this.#open(event.at, event.part);
      this.#waiting.set(event.at, [event]);
    }
    return [];
  }

  closeAll(): readonly JsonObject[] {
    const written: JsonObject[] = [];
    while (this.#block !== undefined) append(written, this.#close(this.#block));
    return written;
  }

  #go(block: Block, event: PartEvent): readonly JsonObject[] {
    switch (event.kind) {
      case 'open':
        return [];
      case 'add':
        return this.#add(block, event.text);
      case 'sign':
        return this.#sign(block, this.#seal(event.value));
      case 'cite':
        return this.#cite(block, event.citation);
      case 'close':
        return this.#end(block);
    }
  }

  #open(at: number, part: OpenPart): readonly JsonObject[] {
    const index = this.#index++;
    this.#block = { at, part, index, isSigned: false, text: '' };
    return [{ type: 'content_block_start', index, content_block: emptyBlock(part) }];
  }

  #delta({ index }: Block, delta: JsonObject): readonly JsonObject[] {
    return [{ type: 'content_block_delta', index, delta }];
  }

  #add(block: Block, text: string): readonly JsonObject[] {
    if (text === '') return [];
    if (block.part.kind !== 'tool_call') {
      const delta = block.part.kind === 'reasoning' ? { type: 'thinking_delta', thinking: text } : textDelta(text);
      return this.#delta(block, delta);
    }
    if (block.part.isText !== true) return this.#delta(block, { type: 'input_json_delta', partial_json: text });
    block.text += text;
    return [];
  }

  /** Writes a signature. Only blocks of reasoning have a member for it. */
  #sign(block: Block, signature: string): readonly JsonObject[] {
    if (block.part.kind !== 'reasoning') return [];
    block.isSigned = true;
    return this.#delta(block, { type: 'signature_delta', signature });
  }

  /** Writes a citation with a URL as one of a web search; drops any other. */
  #cite(block: Block, { url, title, quote }: Citation): readonly JsonObject[] {
    if (block.part.kind !== 'text' || url === undefined) return [];
    const citation = {
      type: 'web_search_result_location',
      url,
      title: title ?? null,
      cited_text: quote ?? '',
      encrypted_index: '',
    };
    return this.#delta(block, { type: 'citations_delta', citation });
  }

  /** Ends the block, then writes the waiting parts up to the first one that is still open. */
  #close(block: Block): readonly JsonObject[] {
    const written = [...this.#end(block)];
    for (const [at, events] of this.#waiting) {
      if (this.#block !== undefined) break;
      this.#waiting.delete(at);
      for (const event of events) append(written, this.#replay(event));
    }
    return written;
  }

  /** Writes a waiting event of the part that is now written. Events after the part's end are dropped. */
  #replay(event: PartEvent): readonly JsonObject[] {
    if (this.#block !== undefined) return this.#go(this.#block, event);
    return event.kind === 'open' ? this.#open(event.at, event.part) : [];
  }

  #end(block: Block): readonly JsonObject[] {
    this.#block = undefined;
    return [...this.#last(block), { type: 'content_block_stop', index: block.index }];
  }

  #last(block: Block): readonly JsonObject[] {
    const { part, text, isSigned } = block;
    if (part.kind === 'reasoning' && !isSigned)
      return this.#delta(block, { type: 'signature_delta', signature: UNSIGNED });
    if (part.kind !== 'tool_call' || part.isText !== true) return [];
    const input = jsonInputOf({ kind: 'tool_call', id: part.id, name: part.name, input: text, isText: true });
    return this.#delta(block, { type: 'input_json_delta', partial_json: input });
  }
}

/**
 * The placeholder signature of a thinking block that arrived without a signature. When a client sends such a block back, the gateway omits
 * it for every upstream, because vendors reject invalid signatures.
 */
const UNSIGNED = seal({ upstream: 'none', dialect: 'none', value: 'unsigned' });

function textDelta(text: string): JsonObject {
  return { type: 'text_delta', text };
}

function emptyBlock(part: OpenPart): JsonObject {
  switch (part.kind) {
    case 'text':
    case 'refusal':
      return { type: 'text', text: '' };
    case 'reasoning':
      return { type: 'thinking', thinking: '', signature: '' };
    case 'other':
      throw new Error('no content block of a Messages answer can express this part');
    case 'tool_call':
      return { type: 'tool_use', id: part.id, name: part.name, input: {} };
  }
}
