import type { JsonObject } from '../../base/json-values';
import { parseJson } from '../../base/parse-json';
import type { Citation, OpenPart } from '../../catalog/answer';
import { parseForeign } from '../../http/raw-json';
import type { OwnName } from './tool-names';

/** An event without its sequence number. */
export type ItemEvent = readonly [type: string, members: JsonObject];

type Status = 'in_progress' | 'completed' | 'incomplete';

/** Writes one item of an answer: its events, and its final form. */
export abstract class WrittenItem {
  protected text = '';
  /** The finished item; undefined before its end. */
  whole: JsonObject | undefined;

  constructor(
    protected readonly id: string,
    protected readonly index: number,
  ) {}

  begin(): readonly ItemEvent[] {
    return [['response.output_item.added', { output_index: this.index, item: this.item('in_progress') }]];
  }

  add(text: string): readonly ItemEvent[] {
    this.text += text;
    return [];
  }

  cite(_: Citation): readonly ItemEvent[] {
    return [];
  }

  sign(_: string): void {}

  /** Ends the item. `isCut`: the answer ended before the item was complete. */
  end(isCut: boolean): readonly ItemEvent[] {
    this.whole = this.item(isCut || !this.isWhole ? 'incomplete' : 'completed');
    return [['response.output_item.done', { output_index: this.index, item: this.whole }]];
  }

  protected get at(): JsonObject {
    return { item_id: this.id, output_index: this.index };
  }

  protected get isWhole(): boolean {
    return true;
  }

  protected abstract item(status: Status): JsonObject;
}

/** A message with one part: a text or a refusal. */
export class MessageItem extends WrittenItem {
  readonly #annotations: JsonObject[] = [];

  constructor(
    id: string,
    index: number,
    readonly kind: 'text' | 'refusal',
  ) {
    super(`msg_${id}`, index);
  }

  override begin(): readonly ItemEvent[] {
    return [...super.begin(), ['response.content_part.added', { ...this.#place, part: this.#part() }]];
  }

  override add(delta: string): readonly ItemEvent[] {
    super.add(delta);
    const said = { item_id: this.id, output_index: this.index, content_index: 0, delta };
    return this.kind === 'text'
      ? [['response.output_text.delta', Object.assign(said, { logprobs: [] })]]
      : [['response.refusal.delta', said]];
  }

  override cite(citation: Citation): readonly ItemEvent[] {
    const annotation = annotationOf(citation, this.text.length);
    if (annotation === undefined || this.kind === 'refusal') return [];
    const annotation_index = this.#annotations.push(annotation) - 1;
    return [['response.output_text.annotation.added', { ...this.#place, annotation_index, annotation }]];
  }

  override end(isCut: boolean): readonly ItemEvent[] {
    const whole = this.kind === 'text' ? { text: this.text } : { refusal: this.text };
    return [
      [`response.${this.#word}.done`, { ...this.#place, ...whole, ...this.#probabilities }],
      ['response.content_part.done', { ...this.#place, part: this.#part() }],
      ...super.end(isCut),
    ];
  }

  protected item(status: Status): JsonObject {
    const content = status === 'in_progress' ? [] : [this.#part()];
    return { id: this.id, type: 'message', status, role: 'assistant', content };
  }

  get #place(): JsonObject {
    return { ...this.at, content_index: 0 };
  }

  get #word(): string {
    return this.kind === 'text' ? 'output_text' : 'refusal';
  }

  get #probabilities(): JsonObject {
    return this.kind === 'text' ? { logprobs: [] } : {};
  }

  #part(): JsonObject {
    if (this.kind === 'refusal') return { type: 'refusal', refusal: this.text };
    return { type: 'output_text', text: this.text, annotations: [...this.#annotations], logprobs: [] };
  }
}

/** Returns a citation as an annotation. A citation without a range covers the whole text so far. */
function annotationOf({ url, title, from = 0, to }: Citation, said: number): JsonObject | undefined {
  if (url === undefined) return undefined;
  return { type: 'url_citation', url, title: title ?? url, start_index: from, end_index: to ?? said };
}

export class ReasoningItem extends WrittenItem {
  #signature: string | undefined;

  constructor(id: string, index: number) {
    super(`rs_${id}`, index);
  }

  override add(delta: string): readonly ItemEvent[] {
    const isFirst = this.text === '';
    const begun: ItemEvent = ['response.reasoning_summary_part.added', { ...this.#place, part: summary('') }];
    super.add(delta);
    return [...(isFirst ? [begun] : []), ['response.reasoning_summary_text.delta', { ...this.#place, delta }]];
  }

  override sign(sealed: string): void {
    this.#signature = sealed;
  }

  override end(isCut: boolean): readonly ItemEvent[] {
    const ended = super.end(isCut);
    if (this.text === '') return ended;
    return [
      ['response.reasoning_summary_text.done', { ...this.#place, text: this.text }],
      ['response.reasoning_summary_part.done', { ...this.#place, part: summary(this.text) }],
      ...ended,
    ];
  }

  protected item(status: Status): JsonObject {
    const encrypted_content = this.#signature ?? null;
    return {
      id: this.id,
      type: 'reasoning',
      status,
      summary: this.text ? [summary(this.text)] : [],
      encrypted_content,
    };
  }

  get #place(): JsonObject {
    return { ...this.at, summary_index: 0 };
  }
}

function summary(text: string): JsonObject {
  return { type: 'summary_text', text };
}

export type ToolCall = Extract<OpenPart, { kind: 'tool_call' }>;

/** The item types and event names for calls of functions and of custom tools. */
const CALLS = {
  function: { id: 'fc', type: 'function_call', input: 'arguments', event: 'response.function_call_arguments' },
  custom: { id: 'ctc', type: 'custom_tool_call', input: 'input', event: 'response.custom_tool_call_input' },
} as const;

/** A tool call. Function arguments that are not JSON were cut off by the token limit, so the call is incomplete and the client does not run it. */
export class CallItem extends WrittenItem {
  readonly #names: (typeof CALLS)[keyof typeof CALLS];

  constructor(
    id: string,
    index: number,
    readonly call: ToolCall,
    readonly own: OwnName,
  ) {
    const names = CALLS[call.isText === true ? 'custom' : 'function'];
    super(`${names.id}_${id}`, index);
    this.#names = names;
  }

  override add(delta: string): readonly ItemEvent[] {
    super.add(delta);
    return [[`${this.#names.event}.delta`, { ...this.at, delta }]];
  }

  override end(isCut: boolean): readonly ItemEvent[] {
    const isEmpty = this.call.isText !== true && this.text.trim() === '' && !isCut;
    const filled = isEmpty ? this.add('{}') : [];
    const named = this.call.isText === true ? {} : { name: this.own.name };
    const done = { ...this.at, ...named, [this.#names.input]: this.text };
    return [...filled, [`${this.#names.event}.done`, done], ...super.end(isCut)];
  }

  protected override get isWhole(): boolean {
    return this.call.isText === true || parseJson(this.text) !== undefined;
  }

  protected item(status: Status): JsonObject {
    const { name, namespace } = this.own;
    const called = { name, ...(namespace !== undefined && { namespace }), [this.#names.input]: this.text };
    return { id: this.id, type: this.#names.type, status, call_id: this.call.id, ...called };
  }
}

/** A search for tools, whose arguments are written in one piece. */
export class SearchItem extends WrittenItem {
  constructor(
    id: string,
    index: number,
    readonly call: ToolCall,
  ) {
    super(`tsc_${id}`, index);
  }

  protected override get isWhole(): boolean {
    return this.text.trim() === '' || parseJson(this.text) !== undefined;
  }

  protected item(status: Status): JsonObject {
    const args = parseForeign(this.text) ?? parseJson(this.text) ?? {};
    return {
      id: this.id,
      type: 'tool_search_call',
      status,
      call_id: this.call.id,
      execution: 'client',
      arguments: args,
    };
  }
}
