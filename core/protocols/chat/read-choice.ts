import type { AnswerEvent, Citation, FinishReason, OpenPart } from '../../catalog/answer';
import { asArray, asCount, asObject, asText, type JsonObject } from '../../json-values';
import { CallsReader } from './read-calls';

/** The kinds of text in a choice. One kind is open at a time. */
type Kind = 'text' | 'reasoning' | 'refusal';

const REASONS: Readonly<Record<string, FinishReason>> = {
  stop: 'end',
  length: 'length',
  max_tokens: 'length',
  tool_calls: 'tool_calls',
  function_call: 'tool_calls',
  content_filter: 'filter',
  sensitive: 'filter',
  model_length: 'context',
};

/** Stop reasons by which vendors say that their answer broke off. */
const BROKEN: ReadonlySet<string> = new Set(['error', 'network_error', 'insufficient_system_resource']);

/** The members that vendors use for the model's reasoning. Some vendors refuse the next call without it. */
export const REASONING_MEMBERS = ['reasoning_content', 'reasoning'] as const;

/** Reads one choice of an answer. Chat does not mark where a part begins and ends: a different kind of text, a call or a stop reason marks it. */
export class ChoiceReader {
  readonly #index: number;
  readonly #next: () => number;
  readonly #calls: CallsReader;
  #open: { readonly at: number; readonly kind: Kind; readonly signature: string | undefined } | undefined;
  /**
   * The positions in the message where the open part begins and where the text so far ends. Citations count characters from the
   * beginning of the message.
   */
  #textFrom = 0;
  #textTo = 0;
  #isFinished = false;

  /** `next` numbers the parts of the whole answer. */
  constructor(index: number, answerId: string, next: () => number) {
    this.#index = index;
    this.#next = next;
    this.#calls = new CallsReader(index, answerId, next);
  }

  /** Returns the answer events of a `delta`, or of a whole `message`. */
  say(delta: JsonObject, isWhole: boolean): readonly AnswerEvent[] {
    const member = REASONING_MEMBERS.find((each) => asText(delta[each]) !== '');
    const said: AnswerEvent[] = [
      ...(member === undefined ? [] : this.#add('reasoning', asText(delta[member]), member)),
      ...this.#addContent(delta['content']),
      ...this.#cite(asArray(delta['annotations'])),
      ...this.#add('refusal', asText(delta['refusal'])),
      ...this.#call(callsIn(delta, isWhole)),
    ];
    if (said.length > 0 && this.#isFinished)
      throw new Error('the upstream sent content after the stop reason of a choice');
    return said;
  }

  /**
   * Ends the choice. The answer may say `stop` although the model calls tools, and may repeat the reason. An empty reason comes
   * from a body without one.
   */
  finish(reason: string, stop: string): readonly AnswerEvent[] {
    if (this.#isFinished) return [];
    if (BROKEN.has(reason)) throw new Error(`the upstream broke off its answer: ${reason}`);
    this.#calls.checkNames();
    const closed = this.close();
    this.#isFinished = true;
    const read = (Object.hasOwn(REASONS, reason) && REASONS[reason]) || 'end';
    const { hasCalls } = this.#calls;
    const isOver = read === 'end' || read === 'tool_calls';
    const finish = isOver ? (hasCalls ? 'tool_calls' : stop === '' ? 'end' : 'stop') : read;
    return [...closed, { is: 'finish', choice: this.#index, reason: finish, ...(finish === 'stop' && { stop }) }];
  }

  close(): readonly AnswerEvent[] {
    return [...this.#closeText(), ...this.#calls.close()];
  }

  /** Adds content, which is text or, with some vendors, a list of parts. */
  #addContent(content: unknown): readonly AnswerEvent[] {
    if (typeof content === 'string') return this.#add('text', content);
    return asArray(content).flatMap((given) => {
      const part = asObject(given) ?? {};
      const thinking = asArray(part['thinking']).map((each) => asText(asObject(each)?.['text']));
      return [
        ...this.#add('reasoning', asText(part['thinking']) || thinking.join('')),
        ...this.#add('text', asText(part['text'])),
        ...this.#add('refusal', asText(part['refusal'])),
      ];
    });
  }

  #add(kind: Kind, text: string, signature?: string): readonly AnswerEvent[] {
    if (text === '') return [];
    if (kind === 'text') this.#textTo += text.length;
    if (this.#open?.kind === kind) return [{ is: 'add', at: this.#open.at, text }];
    const closed = this.#closeText();
    const at = this.#next();
    this.#open = { at, kind, signature };
    if (kind === 'text') this.#textFrom = this.#textTo - text.length;
    return [...closed, this.#opens(at, { is: kind }), { is: 'add', at, text }];
  }

  #closeText(): readonly AnswerEvent[] {
    if (this.#open === undefined) return [];
    const { at, signature: value } = this.#open;
    this.#open = undefined;
    return [...(value === undefined ? [] : [{ is: 'sign' as const, at, value }]), { is: 'close', at }];
  }

  #opens(at: number, part: OpenPart): AnswerEvent {
    return { is: 'open', at, choice: this.#index, part };
  }

  /** Returns the citations. A citation outside an open text is dropped, because it belongs to no part. */
  #cite(annotations: readonly unknown[]): readonly AnswerEvent[] {
    if (this.#open?.kind !== 'text') return [];
    const { at } = this.#open;
    return annotations.flatMap((given): AnswerEvent[] => {
      const cited = asObject(asObject(given)?.['url_citation']);
      return cited === undefined ? [] : [{ is: 'cite', at, citation: this.#citationOf(cited) }];
    });
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

  #call(calls: readonly JsonObject[]): readonly AnswerEvent[] {
    const said = calls.flatMap((call) => this.#calls.say(call));
    return said.length === 0 ? [] : [...this.#closeText(), ...said];
  }
}

/**
 * Returns the calls of a delta or a message. Calls of a whole message have no numbers, so their position counts. Old upstreams
 * put their one call into another member.
 */
function callsIn(delta: JsonObject, isWhole: boolean): readonly JsonObject[] {
  const calls = asArray(delta['tool_calls']).flatMap((given, at) => {
    const call = asObject(given);
    return call === undefined ? [] : [isWhole ? { ...call, index: at } : call];
  });
  const old = asObject(delta['function_call']);
  return old === undefined ? calls : [...calls, { index: 0, function: old }];
}
