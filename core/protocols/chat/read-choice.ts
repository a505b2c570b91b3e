import { asArray, asCount, asObject, asText, type JsonObject } from '../../base/json-values';
import type { AnswerEvent, Citation, OpenPart } from '../../catalog/answer';
import { finishOf } from '../answer-events';
import { addDetails, type KeptReasoning } from './kept-reasoning';
import { CallsReader } from './read-calls';
import { CHAT_STOP_REASONS } from './words';

/** The kinds of text in a choice; `other` is a spoken answer, which no other protocol has. Only one kind is open at a time. */
type Kind = 'text' | 'reasoning' | 'refusal' | 'other';

/** The members in which vendors send the model's reasoning. Some vendors refuse the next call if the client does not return it. */
export const REASONING_MEMBERS = ['reasoning_content', 'reasoning'] as const;

/** Reads one choice of an answer. Chat does not mark the ends of parts. A part ends when a different kind of text, a call or a stop reason arrives. */
export class ChoiceReader {
  readonly #calls: CallsReader;
  #open: { readonly at: number; readonly kind: Kind; readonly signature: string | undefined } | undefined;
  /**
   * The positions in the message at which the open part begins and the text so far ends. Vendors count the characters of citations from the
   * beginning of the message.
   */
  #textFrom = 0;
  #textTo = 0;
  readonly #details: Record<string, unknown>[] = [];
  #isFinished = false;

  /** `next` returns the next part number of the whole answer. */
  constructor(
    private readonly index: number,
    answerId: string,
    private readonly isNative: boolean,
    private readonly next: () => number,
  ) {
    this.#calls = new CallsReader(index, answerId, isNative, next);
  }

  /** Adds the answer events of a `delta`, or of a whole `message`. */
  say(delta: JsonObject, isWhole: boolean, events: AnswerEvent[]): void {
    for (const member of REASONING_MEMBERS) {
      const text = asText(delta[member]);
      if (text === '') continue;
      this.#add('reasoning', text, events, member);
      break;
    }
    this.#detail(asArray(delta['reasoning_details']), events);
    this.#addContent(delta['content'], events);
    this.#cite(delta['annotations'], events);
    this.#add('refusal', asText(delta['refusal']), events);
    if (asObject(delta['audio']) !== undefined) this.#opened('other', events);
    for (const call of callsIn(delta, isWhole)) {
      const before = events.length;
      this.#calls.say(call, events);
      // The open text part must close before the first event of a tool call.
      if (events.length > before && this.#open !== undefined) events.splice(before, 0, ...this.#closed());
    }
  }

  /**
   * Ends the choice with the upstream's stop reason. An upstream may send `stop` although the model calls tools, may repeat the reason, or
   * may omit it in an unstreamed body.
   */
  finish(reason: string, stop: string, events: AnswerEvent[]): void {
    if (this.#isFinished && !this.isNative) return;
    this.close(events);
    const read = finishOf(reason === '' ? 'stop' : reason, CHAT_STOP_REASONS, this.index);
    if (!this.isNative && read.reason !== 'broken') this.#calls.checkNames();
    this.#isFinished = true;
    if (read.reason !== 'end' && read.reason !== 'tool_calls') return void events.push(read);
    const is = this.#calls.hasCalls ? 'tool_calls' : stop === '' ? 'end' : 'stop';
    events.push({ kind: 'finish', choice: this.index, reason: is, ...(is === 'stop' && { stop }) });
  }

  close(events: AnswerEvent[]): void {
    this.#closeText(events);
    this.#calls.close(events);
  }

  /** Adds `content`, which is text or, from some vendors, a list of parts. */
  #addContent(content: unknown, events: AnswerEvent[]): void {
    if (typeof content === 'string') this.#add('text', content, events);
    for (const given of asArray(content)) {
      const part = asObject(given) ?? {};
      const thinking = asArray(part['thinking']).map((each) => asText(asObject(each)?.['text']));
      this.#add('reasoning', asText(part['thinking']) || thinking.join(''), events);
      this.#add('text', asText(part['text']), events);
      this.#add('refusal', asText(part['refusal']), events);
    }
  }

  #add(kind: Kind, text: string, events: AnswerEvent[], signature?: string): void {
    if (text === '') return;
    if (kind === 'text') {
      if (this.#open?.kind !== kind) this.#textFrom = this.#textTo;
      this.#textTo += text.length;
    }
    events.push({ kind: 'add', at: this.#opened(kind, events, signature), text });
  }

  /** Keeps `reasoning_details` until the reasoning that they describe ends. Encrypted details arrive without text. */
  #detail(given: readonly unknown[], events: AnswerEvent[]): void {
    if (given.length === 0 || this.isNative || this.#isFinished) return;
    this.#opened('reasoning', events);
    addDetails(this.#details, given);
  }

  /** Returns the number of the open part of this kind, and opens a part if none is open. */
  #opened(kind: Kind, events: AnswerEvent[], signature?: string): number {
    if (this.#open?.kind === kind) return this.#open.at;
    this.#closeText(events);
    const at = this.next();
    // The gateway does not read events that only continue a native answer. It therefore does not know where the answer's parts end.
    this.#open = { at, kind, signature: this.isNative ? undefined : signature };
    const part: OpenPart = { kind };
    events.push({ kind: 'open', at, choice: this.index, part });
    return at;
  }

  #closeText(events: AnswerEvent[]): void {
    for (const event of this.#closed()) events.push(event);
  }

  #closed(): readonly AnswerEvent[] {
    if (this.#open === undefined) return [];
    const { at, kind, signature } = this.#open;
    this.#open = undefined;
    const kept: KeptReasoning = { reasoning_details: kind === 'reasoning' ? this.#details.splice(0) : [] };
    const value = kept.reasoning_details?.length ? JSON.stringify(kept) : signature;
    return [...(value === undefined ? [] : [{ kind: 'sign' as const, at, value }]), { kind: 'close', at }];
  }

  /** Adds citations. A citation outside an open text is dropped, because it belongs to no part. */
  #cite(annotations: unknown, events: AnswerEvent[]): void {
    if (this.#open?.kind !== 'text') return;
    for (const given of asArray(annotations)) {
      const cited = asObject(asObject(given)?.['url_citation']);
      if (cited !== undefined) events.push({ kind: 'cite', at: this.#open.at, citation: this.#citationOf(cited) });
    }
  }

  #citationOf(cited: JsonObject): Citation {
    const from = asCount(cited['start_index']);
    const to = asCount(cited['end_index']);
    const isInPart = from !== undefined && to !== undefined && from >= this.#textFrom && to >= from;
    return {
      url: asText(cited['url']) || undefined,
      title: asText(cited['title']) || undefined,
      ...(isInPart && { from: from - this.#textFrom, to: to - this.#textFrom }),
    };
  }
}

/**
 * Returns the tool calls of a delta or a message. The calls of an unstreamed message have no `index`, so their position in the list is
 * used. Old upstreams send their only call in `function_call`.
 */
function callsIn(delta: JsonObject, isWhole: boolean): readonly JsonObject[] {
  const given = delta['tool_calls'];
  const old = asObject(delta['function_call']);
  if (given === undefined && old === undefined) return NO_CALLS;
  const calls = asArray(given).flatMap((each, at) => {
    const call = asObject(each);
    return call === undefined ? [] : [isWhole ? { ...call, index: at } : call];
  });
  return old === undefined ? calls : [...calls, { index: 0, function: old }];
}

const NO_CALLS: readonly JsonObject[] = [];
