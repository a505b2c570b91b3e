import type { Continuation, SseEvent, StreamFollower } from '../../core/catalog/upstream';
import { outputTokens, tokensOf, type Usage } from '../../core/catalog/usage';
import { prefillEdits, SaidText, Seam } from './beginning';
import { asObject, asText, type JsonObject, parseData } from './json';

/** Continues a broken Messages answer: the request ends with an assistant message that holds the beginning. */
export const messagesContinuation: Continuation = {
  prefill: (call, beginning) => prefillEdits(call, beginning, ['max_tokens']),
  follow: () => new MessagesFollower(),
};

class MessagesFollower implements StreamFollower {
  readonly #text = new SaidText();
  readonly #seam = new Seam();
  /** The open block, by the caller's index. Blocks do not overlap. */
  #open: { readonly index: number; readonly isText: boolean } | undefined;
  #lastIndex = -1;
  /** The caller's index of each block of the continuing answer. */
  #indexes = new Map<number, number>();

  get said(): string | undefined {
    return this.#text.all;
  }

  note(event: SseEvent): void {
    const data = parsed(event);
    if (data === undefined) return;
    const index = Number(data['index']);
    switch (data['type']) {
      case 'content_block_start':
        this.#begin(index, asObject(data['content_block']) ?? {});
        break;
      case 'content_block_delta':
        this.#noteDelta(asObject(data['delta']) ?? {});
        break;
      case 'content_block_stop':
        this.#open = undefined;
    }
  }

  goOn(text: string): void {
    this.#seam.begin(this.said ?? '', text);
    this.#indexes = new Map();
  }

  continued(event: SseEvent, usage: Usage | undefined): string | undefined {
    const data = parsed(event);
    if (data === undefined) return written(event);
    switch (data['type']) {
      case 'message_start':
        return undefined;
      case 'content_block_start':
        return this.#continuedStart(data);
      case 'content_block_delta':
        return this.#continuedDelta(data);
      case 'content_block_stop': {
        const index = this.#indexOf(data);
        if (this.#open?.index !== index) return undefined;
        this.#open = undefined;
        return eventOf({ ...data, index });
      }
      case 'message_delta':
        return this.#ending() + eventOf(usage === undefined ? data : { ...data, usage: usageOfBoth(data, usage) });
      default:
        return written(event);
    }
  }

  #begin(index: number, block: JsonObject): void {
    const isText = block['type'] === 'text';
    this.#open = { index, isText };
    this.#lastIndex = Math.max(this.#lastIndex, index);
    if (isText) this.#text.add(asText(block['text']));
    else this.#text.giveUp();
  }

  #noteDelta(delta: JsonObject): void {
    if (delta['type'] === 'text_delta') this.#text.add(asText(delta['text']));
    else this.#text.giveUp();
  }

  /** Begins a block of the continuing answer. Text that continues the open text block begins no new one. */
  #continuedStart(data: JsonObject): string | undefined {
    const block = asObject(data['content_block']) ?? {};
    const theirs = Number(data['index']);
    if (this.#open?.isText === true && block['type'] === 'text' && this.#indexes.size === 0) {
      this.#indexes.set(theirs, this.#open.index);
      const text = this.#seam.follow(asText(block['text']));
      this.#text.add(text);
      return text === '' ? undefined : textDelta(this.#open.index, text);
    }
    const ending = this.#ending();
    const index = this.#lastIndex + 1;
    this.#indexes.set(theirs, index);
    this.#begin(index, block);
    return ending + eventOf({ ...data, index });
  }

  #continuedDelta(data: JsonObject): string | undefined {
    const delta = asObject(data['delta']) ?? {};
    const index = this.#indexOf(data);
    if (delta['type'] !== 'text_delta') {
      this.#noteDelta(delta);
      return eventOf({ ...data, index });
    }
    const text = this.#seam.follow(asText(delta['text']));
    this.#text.add(text);
    return text === '' ? undefined : eventOf({ ...data, index, delta: { ...delta, text } });
  }

  #indexOf(data: JsonObject): number {
    const theirs = Number(data['index']);
    return this.#indexes.get(theirs) ?? theirs;
  }

  /** Ends the open block before an event that must not come inside it. */
  #ending(): string {
    if (this.#open === undefined) return '';
    const { index } = this.#open;
    this.#open = undefined;
    return eventOf({ type: 'content_block_stop', index });
  }
}

function parsed({ data }: SseEvent): JsonObject | undefined {
  const read = data === undefined ? 'malformed' : parseData(data);
  return typeof read === 'string' ? undefined : read;
}

function written({ name, data }: SseEvent): string | undefined {
  if (data === undefined) return undefined;
  return `${name === undefined ? '' : `event: ${name}\n`}data: ${data.replaceAll('\n', '\ndata: ')}\n\n`;
}

function eventOf(data: JsonObject): string {
  return `event: ${asText(data['type'])}\ndata: ${JSON.stringify(data)}\n\n`;
}

function textDelta(index: number, text: string): string {
  return eventOf({ type: 'content_block_delta', index, delta: { type: 'text_delta', text } });
}

/** Returns the event's own `usage` with the counts of the whole call: as input only what was charged, and the whole output. */
function usageOfBoth(data: JsonObject, usage: Usage): JsonObject {
  const own = asObject(data['usage']) ?? {};
  return {
    ...own,
    ...(own['input_tokens'] !== undefined && { input_tokens: tokensOf(usage, ['input']) ?? 0 }),
    output_tokens: outputTokens(usage) ?? 0,
  };
}
