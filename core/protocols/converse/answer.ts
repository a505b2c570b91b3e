import { asArray, asCount, asObject, asText, type JsonObject } from '../../base/json-values';
import type { AnswerEvent, AnswerReader } from '../../catalog/answer';
import { readUsualError, type SseEvent } from '../../catalog/upstream';
import { jsonOf } from '../../http/raw-json';
import { finishOf, usageEvents } from '../answer-events';
import { parseEvent } from '../event-json';
import { readConverseUsage } from './usage';
import { CONVERSE_STOP_REASONS } from './words';

/** Reads the answers of Converse. Its content blocks are numbered, but only blocks of tool calls announce their beginning. */
export class ConverseReader implements AnswerReader {
  /** The part number in the answer for each open content block, by the block's index. */
  readonly #open = new Map<number, number>();
  #parts = 0;
  #hasFinished = false;

  event({ name, data }: SseEvent): readonly AnswerEvent[] {
    if (data === undefined || data === '') return [];
    const event = parseEvent(data, false) as JsonObject;
    const block = asCount(event['contentBlockIndex']) ?? 0;
    switch (name) {
      case 'contentBlockStart':
        return this.#start(block, asObject(event['start']) ?? {});
      case 'contentBlockDelta':
        return this.#delta(block, asObject(event['delta']) ?? {});
      case 'contentBlockStop':
        return this.#stop(block);
      case 'messageStop':
        return this.#finish(event);
      case 'metadata': {
        const usage = usageEvents(readConverseUsage(event));
        return this.#hasFinished ? [...this.end(), ...usage, END] : usage;
      }
      case 'exception':
        return [{ kind: 'error', error: readUsualError(event) }];
      default:
        return [];
    }
  }

  body(body: unknown): readonly AnswerEvent[] {
    const answer = asObject(body) ?? {};
    const message = asObject(asObject(answer['output'])?.['message']) ?? {};
    const events = asArray(message['content']).flatMap((block, at) => this.#whole(at, asObject(block) ?? {}));
    return [...events, ...this.#finish(answer), ...usageEvents(readConverseUsage(answer)), END];
  }

  end(): readonly AnswerEvent[] {
    return [...this.#open.keys()].flatMap((block) => this.#stop(block));
  }

  #start(block: number, start: JsonObject): readonly AnswerEvent[] {
    const use = asObject(start['toolUse']);
    if (use === undefined) return [];
    const part = { kind: 'tool_call', id: asText(use['toolUseId']), name: asText(use['name']) } as const;
    return [...this.#stop(block), { kind: 'open', at: this.#next(block), choice: 0, part }];
  }

  #delta(block: number, delta: JsonObject): readonly AnswerEvent[] {
    const reasoning = asObject(delta['reasoningContent']);
    if (reasoning !== undefined) return this.#reasoning(block, reasoning, false);
    const input = asObject(delta['toolUse'])?.['input'];
    const at = this.#open.get(block);
    if (input !== undefined) {
      if (at === undefined) throw new Error('the upstream sent the input of a tool call before the call');
      return [{ kind: 'add', at, text: asText(input) }];
    }
    const text = asText(delta['text']);
    return text === '' ? [] : this.#text('text', block, text);
  }

  #text(kind: 'text' | 'reasoning', block: number, text: string): readonly AnswerEvent[] {
    const opened = this.#opened(kind, block);
    return [...opened, { kind: 'add', at: this.#open.get(block) ?? 0, text }];
  }

  #opened(kind: 'text' | 'reasoning', block: number): readonly AnswerEvent[] {
    if (this.#open.has(block)) return [];
    return [{ kind: 'open', at: this.#next(block), choice: 0, part: { kind } }];
  }

  /**
   * Reads reasoning, and the signature with which a client returns it to the model. An unstreamed block has both; in a stream the signature
   * follows the text.
   */
  #reasoning(block: number, reasoning: JsonObject, isWhole: boolean): readonly AnswerEvent[] {
    const content = isWhole ? (asObject(reasoning['reasoningText']) ?? {}) : reasoning;
    const text = asText(content['text']);
    const hidden = asText(reasoning['redactedContent']);
    const signature = asText(content['signature']);
    const events: AnswerEvent[] = text === '' ? [] : [...this.#text('reasoning', block, text)];
    if (hidden === '' && signature === '') return events;
    events.push(...this.#opened('reasoning', block));
    const value = JSON.stringify(hidden === '' ? { signature } : { redactedContent: hidden });
    return [...events, { kind: 'sign', at: this.#open.get(block) ?? 0, value }];
  }

  #stop(block: number): readonly AnswerEvent[] {
    const at = this.#open.get(block);
    if (at === undefined) return [];
    this.#open.delete(block);
    return [{ kind: 'close', at }];
  }

  #whole(at: number, block: JsonObject): readonly AnswerEvent[] {
    const use = asObject(block['toolUse']);
    const reasoning = asObject(block['reasoningContent']);
    const text = asText(block['text']);
    if (use !== undefined) {
      const opened = this.#start(at, { toolUse: use });
      const input = jsonOf(asObject(use['input']) ?? {});
      return [...opened, { kind: 'add', at: this.#open.get(at) ?? 0, text: input }, ...this.#stop(at)];
    }
    if (reasoning !== undefined) return [...this.#reasoning(at, reasoning, true), ...this.#stop(at)];
    return text === '' ? [] : [...this.#text('text', at, text), ...this.#stop(at)];
  }

  #finish(event: JsonObject): readonly AnswerEvent[] {
    const reason = asText(event['stopReason']);
    if (reason === '' || this.#hasFinished) return [];
    this.#hasFinished = true;
    return [...this.end(), finishOf(reason, CONVERSE_STOP_REASONS)];
  }

  #next(block: number): number {
    const at = this.#parts;
    this.#parts += 1;
    this.#open.set(block, at);
    return at;
  }
}

const END: AnswerEvent = { kind: 'end' };
