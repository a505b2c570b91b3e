import type { JsonObject } from '../../base/json-values';
import type {
  AnswerError,
  AnswerEvent,
  AnswerWriter,
  ClientEvent,
  FinishReason,
  OpenPart,
  WrittenCall,
} from '../../catalog/answer';
import { jsonOf } from '../../http/raw-json';
import { openaiError } from '../error-words';
import { WrittenUsage } from '../written-usage';
import { ownNames, SEARCH } from './tool-names';
import { writeResponsesUsage } from './usage';
import { WRITTEN_INCOMPLETE } from './words';
import {
  CallItem,
  type ItemEvent,
  MessageItem,
  ReasoningItem,
  SearchItem,
  type ToolCall,
  type WrittenItem,
} from './written-item';

export function writeResponsesError(error: AnswerError, status: number, requestId: string): JsonObject {
  return { request_id: requestId, error: openaiError(error, status) };
}

/** Writes an answer in the form of Responses. Each part becomes a separate item. */
export class ResponsesWriter implements AnswerWriter {
  readonly #call: WrittenCall;
  readonly #ownNames: ReturnType<typeof ownNames>;
  readonly #echo: JsonObject;
  /** All items of the answer, in the order in which they began. `#open` has the unfinished items, by the number of their part. */
  readonly #items: WrittenItem[] = [];
  readonly #open = new Map<number, WrittenItem>();
  readonly #used: WrittenUsage;
  #reason: FinishReason = 'end';
  #events = 0;
  #response: JsonObject | undefined;

  constructor(call: WrittenCall) {
    this.#call = call;
    this.#used = new WrittenUsage(call);
    this.#ownNames = ownNames(call.request);
    this.#echo = echoOf(call.request);
  }

  write(event: AnswerEvent): readonly ClientEvent[] {
    const begun = this.#events === 0 ? this.#begin() : [];
    return [...begun, ...this.#write(event)];
  }

  body(events: readonly AnswerEvent[]): JsonObject {
    for (const event of events) this.#write(event);
    return this.#response ?? this.#finished();
  }

  #write(event: AnswerEvent): readonly ClientEvent[] {
    this.#used.note(event);
    switch (event.kind) {
      case 'open':
        return event.choice === 0 ? this.#numbered(this.#opened(event.at, event.part).begin()) : [];
      case 'add':
        return event.text === '' ? [] : this.#numbered(this.#open.get(event.at)?.add(event.text) ?? []);
      case 'cite':
        return this.#numbered(this.#open.get(event.at)?.cite(event.citation) ?? []);
      case 'sign':
        this.#open.get(event.at)?.sign(this.#call.seal(event.value));
        return [];
      case 'close':
        return this.#numbered(this.#ended(event.at, false));
      case 'finish':
        if (event.choice === 0) this.#reason = event.reason;
        return [];
      case 'usage':
        return [];
      case 'end':
        return this.#end();
      case 'error':
        return this.#fail(event.error);
      default:
        return [];
    }
  }

  #begin(): readonly ClientEvent[] {
    const response = this.#responseAs('in_progress', {});
    return this.#numbered([
      ['response.created', { response }],
      ['response.in_progress', { response }],
    ]);
  }

  #opened(at: number, part: OpenPart): WrittenItem {
    const index = this.#items.length;
    const item = this.#itemFor(part, `${this.#call.requestId}_${index}`, index);
    this.#items.push(item);
    this.#open.set(at, item);
    return item;
  }

  #itemFor(part: OpenPart, id: string, index: number): WrittenItem {
    if (part.kind === 'tool_call') return this.#callFor(part, id, index);
    return part.kind === 'reasoning'
      ? new ReasoningItem(id, index)
      : new MessageItem(id, index, part.kind === 'refusal' ? 'refusal' : 'text');
  }

  #callFor(call: ToolCall, id: string, index: number): WrittenItem {
    const own = this.#ownNames.get(call.name) ?? { name: call.name };
    if (own.isSearch === true) return new SearchItem(id, index, call);
    return new CallItem(id, index, call, own);
  }

  #ended(at: number, isCut: boolean): readonly ItemEvent[] {
    const item = this.#open.get(at);
    this.#open.delete(at);
    return item?.end(isCut) ?? [];
  }

  #end(): readonly ClientEvent[] {
    if (this.#response !== undefined) return [];
    const cut = this.#cut();
    const response = this.#finished();
    const last = this.#numbered([[`response.${String(response['status'])}`, { response }]]);
    const usage = response['usage'] === null ? {} : { finalUsage: true, usageAt: USAGE_AT };
    return [...cut, ...last.map((event) => ({ ...event, finish: true, ...usage }))];
  }

  #fail(given: AnswerError): readonly ClientEvent[] {
    if (this.#response !== undefined) return [];
    const cut = this.#cut();
    const { message, code } = openaiError(given, 500);
    const error = { code: code ?? 'server_error', message };
    this.#response = this.#responseAs('failed', { error, output: this.#output() });
    return [...cut, ...this.#numbered([['response.failed', { response: this.#response }]])];
  }

  #cut(): readonly ClientEvent[] {
    return this.#numbered([...this.#open.keys()].flatMap((at) => this.#ended(at, true)));
  }

  #finished(): JsonObject {
    const why = WRITTEN_INCOMPLETE[this.#reason];
    this.#response = this.#responseAs(why === undefined ? 'completed' : 'incomplete', {
      incomplete_details: why === undefined ? null : { reason: why },
      output: this.#output(),
      usage: writeResponsesUsage(this.#used.counts),
    });
    return this.#response;
  }

  #output(): readonly JsonObject[] {
    return this.#items.flatMap(({ whole }) => (whole === undefined ? [] : [whole]));
  }

  #responseAs(status: string, members: JsonObject): JsonObject {
    const { requestId, id = `resp_${requestId}`, model, createdAt } = this.#call;
    const head = { id, object: 'response', created_at: createdAt, status, model };
    return { ...head, error: null, incomplete_details: null, output: [], ...this.#echo, usage: null, ...members };
  }

  #numbered(events: readonly ItemEvent[]): readonly ClientEvent[] {
    return events.map(([type, members]) => {
      // In Node 20 a spread that adds members takes ten times as long as `Object.assign`.
      const event = Object.assign({ type, sequence_number: this.#events }, members);
      const data = this.#ownNames.has(SEARCH) ? jsonOf(event) : JSON.stringify(event);
      this.#events += 1;
      return { name: type, data };
    });
  }
}

const USAGE_AT = ['response', 'usage'] as const;

/** The members of a request that its response repeats, with their defaults. */
const USUAL: JsonObject = {
  background: false,
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  metadata: {},
  parallel_tool_calls: true,
  previous_response_id: null,
  prompt_cache_key: null,
  reasoning: { effort: null, summary: null },
  safety_identifier: null,
  service_tier: 'default',
  temperature: 1,
  text: { format: { type: 'text' } },
  tool_choice: 'auto',
  tools: [],
  top_logprobs: 0,
  top_p: 1,
  truncation: 'disabled',
  user: null,
};

/** Returns the request members that the response repeats. `store` is always false because the gateway stores no response; the tier is always `default`. */
function echoOf(request: JsonObject): JsonObject {
  const said = Object.entries(USUAL).map(([name, usual]) => [name, request[name] ?? usual]);
  return { ...Object.fromEntries(said), store: false, service_tier: 'default' };
}
