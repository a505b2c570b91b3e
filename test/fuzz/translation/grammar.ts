import assert from 'node:assert/strict';
import { asArray, asObject, asText, type JsonObject } from '../../../core/base/json-values';
import type { SseEvent } from '../../../core/catalog/upstream';
import type { Client } from './directions';

/** The content of an answer as a client understands it. */
export interface Understood {
  text: string;
  reasoning: string;
  /** The calls. `isText`: the input is text and not JSON. */
  calls: { readonly id: unknown; readonly name: unknown; readonly isText: boolean; input: string }[];
  /** The citations: their address and the cited words, which are unknown in Messages. */
  citations: { readonly url: unknown; readonly title: unknown; readonly words: string | undefined }[];
  reason: unknown;
  usage: { readonly input: number; readonly output: number } | undefined;
}

/** Reads a stream as a strict client does. Each event must be in its place; anything else that the protocol forbids throws. */
export abstract class StrictClient {
  readonly understood: Understood = nothing();
  /** Whether the protocol's own end has arrived. */
  hasEnded = false;
  /** The message of the error that ended the stream. */
  failure: string | undefined;

  read(event: SseEvent): void {
    assert(!this.hasEnded, `${event.data} comes behind the end`);
    assert(this.failure === undefined, `${event.data} comes behind the error`);
    assert(event.data !== undefined, 'an event without data');
    this.take(event.data, event.name);
  }

  protected abstract take(data: string, name: string | undefined): void;
}

function nothing(): Understood {
  return { text: '', reasoning: '', calls: [], citations: [], reason: undefined, usage: undefined };
}

export function strictClient(client: Client): StrictClient {
  if (client === 'chat') return new StrictChat();
  return client === 'messages' ? new StrictMessages() : new StrictResponses();
}

function parsed(data: string): JsonObject {
  const object = asObject(JSON.parse(data));
  assert(object !== undefined, 'an event is no object');
  return object;
}

function objectAt(object: JsonObject, name: string): JsonObject {
  const value = asObject(object[name]);
  assert(value !== undefined, `${name} is no object`);
  return value;
}

function textAt(object: JsonObject, name: string): string {
  const value = object[name];
  assert(typeof value === 'string', `${name} is no text`);
  return value;
}

function sum(object: JsonObject, ...names: readonly string[]): number {
  return names.reduce((before, name) => {
    const count = object[name];
    assert(Number.isSafeInteger(count), `${name} is no count`);
    return before + (count as number);
  }, 0);
}

const CHAT_REASONS: readonly unknown[] = ['stop', 'length', 'tool_calls', 'content_filter'];

export class StrictChat extends StrictClient {
  #head: string | undefined;
  /** The answers by number; the first one is `understood`. */
  readonly choices: Understood[] = [];

  constructor(readonly count = 1) {
    super();
  }

  protected take(data: string, name: string | undefined): void {
    assert.equal(name, undefined);
    if (data === '[DONE]') {
      this.#isFinished('the end comes before the stop reason');
      this.hasEnded = true;
      return;
    }
    const chunk = parsed(data);
    if (chunk['error'] !== undefined) {
      this.failure = textAt(objectAt(chunk, 'error'), 'message');
      return;
    }
    const { id, object, created, model } = chunk;
    assert.equal(object, 'chat.completion.chunk');
    const head = JSON.stringify({ id, created, model });
    this.#head ??= head;
    assert.equal(head, this.#head);
    const choices = asArray(chunk['choices']);
    for (const choice of choices) this.#choice(asObject(choice) ?? {});
    if (choices.length === 0) this.#usage(objectAt(chunk, 'usage'));
  }

  #usage(usage: JsonObject): void {
    assert(this.understood.usage === undefined, 'the usage comes twice');
    this.#isFinished('the usage comes before the stop reason');
    this.understood.usage = { input: sum(usage, 'prompt_tokens'), output: sum(usage, 'completion_tokens') };
    assert.equal(usage['total_tokens'], sum(usage, 'prompt_tokens', 'completion_tokens'));
  }

  #isFinished(otherwise: string): void {
    assert.equal(this.choices.filter(({ reason }) => reason !== undefined).length, this.count, otherwise);
  }

  #choice(choice: JsonObject): void {
    const index = choice['index'] as number;
    assert(index < this.count, `there is no choice ${index}`);
    const delta = objectAt(choice, 'delta');
    const isNew = this.choices[index] === undefined;
    if (isNew) assert.equal(delta['role'], 'assistant');
    this.choices[index] ??= index === 0 ? this.understood : nothing();
    const understood = this.choices[index];
    assert(understood.reason === undefined, 'a choice continues after its stop reason');
    understood.text += asText(delta['content']) + asText(delta['refusal']);
    for (const call of asArray(delta['tool_calls'])) this.#call(asObject(call) ?? {}, understood);
    if (delta['annotations'] !== undefined) understood.citations = chatCitations(delta, understood.text);
    const reason = choice['finish_reason'];
    if (reason === null) return;
    assert(CHAT_REASONS.includes(reason), `${String(reason)} is no stop reason`);
    understood.reason = reason;
  }

  #call(given: JsonObject, { calls }: Understood): void {
    const index = given['index'] as number;
    const isText = given['custom'] !== undefined;
    const called = objectAt(given, isText ? 'custom' : 'function');
    if (index === calls.length) {
      assert.equal(given['type'], isText ? 'custom' : 'function');
      calls.push({ id: textAt(given, 'id'), name: textAt(called, 'name'), isText, input: '' });
    } else assert(given['id'] === undefined, 'a call begins twice');
    const call = calls[index];
    assert(call?.isText === isText, `there is no such call ${index}`);
    call.input += textAt(called, isText ? 'input' : 'arguments');
  }
}

function chatCitations({ annotations }: JsonObject, text: string): Understood['citations'] {
  return asArray(annotations).map((each) => citationOf(objectAt(asObject(each) ?? {}, 'url_citation'), text));
}

function citationOf({ url, title, start_index: from, end_index: to }: JsonObject, text: string) {
  assert(typeof from === 'number' && typeof to === 'number', 'a citation is about no words');
  assert(from >= 0 && from <= to, `a citation is about ${from} to ${to}`);
  return { url, title, words: text.slice(from, to) };
}

const MESSAGES_REASONS: readonly unknown[] = [
  'end_turn',
  'max_tokens',
  'stop_sequence',
  'tool_use',
  'pause_turn',
  'refusal',
  'model_context_window_exceeded',
];

class StrictMessages extends StrictClient {
  #hasBegun = false;
  #next = 0;
  #block: string | undefined;

  protected take(data: string, name: string | undefined): void {
    const event = parsed(data);
    assert.equal(event['type'], name);
    if (name === 'error') {
      this.failure = textAt(objectAt(event, 'error'), 'message');
      return;
    }
    assert.equal(this.#hasBegun, name !== 'message_start', 'the message begins once, and first');
    if (name === 'content_block_start') this.#open(event);
    else if (name === 'content_block_delta') this.#add(event);
    else if (name === 'content_block_stop') this.#close(event);
    else if (name === 'message_delta') this.#finish(event);
    else if (name === 'message_stop') this.#end();
    else this.#begin(name, event);
  }

  #begin(name: string | undefined, event: JsonObject): void {
    assert.equal(name, 'message_start');
    this.#hasBegun = true;
    const message = objectAt(event, 'message');
    assert.deepEqual([message['role'], message['content'], message['stop_reason']], ['assistant', [], null]);
    sum(objectAt(message, 'usage'), 'input_tokens', 'output_tokens');
  }

  #open(event: JsonObject): void {
    assert.equal(this.#block, undefined, 'a block begins inside another');
    assert.equal(this.understood.reason, undefined, 'a block begins behind the stop reason');
    assert.equal(event['index'], this.#next);
    const block = objectAt(event, 'content_block');
    this.#block = textAt(block, 'type');
    if (this.#block === 'tool_use') {
      this.understood.calls.push({ id: textAt(block, 'id'), name: textAt(block, 'name'), isText: false, input: '' });
      assert.deepEqual(block['input'], {});
    }
  }

  #add(event: JsonObject): void {
    assert.equal(event['index'], this.#next);
    const delta = objectAt(event, 'delta');
    const kind = `${this.#block} ${String(delta['type'])}`;
    if (kind === 'text text_delta') this.understood.text += textAt(delta, 'text');
    else if (kind === 'thinking thinking_delta') this.understood.reasoning += textAt(delta, 'thinking');
    else if (kind === 'thinking signature_delta') textAt(delta, 'signature');
    else if (kind === 'tool_use input_json_delta') {
      const call = this.understood.calls.at(-1);
      if (call !== undefined) call.input += textAt(delta, 'partial_json');
    } else {
      assert.equal(kind, 'text citations_delta');
      this.understood.citations.push(messagesCitation(objectAt(delta, 'citation')));
    }
  }

  #close(event: JsonObject): void {
    assert(this.#block !== undefined, 'a block ends that is not open');
    assert.equal(event['index'], this.#next);
    this.#block = undefined;
    this.#next += 1;
  }

  #finish(event: JsonObject): void {
    assert.equal(this.#block, undefined, 'the message stops inside a block');
    assert.equal(this.understood.reason, undefined, 'the message stops twice');
    this.understood.reason = objectAt(event, 'delta')['stop_reason'];
    assert(MESSAGES_REASONS.includes(this.understood.reason), `${String(this.understood.reason)} is no stop reason`);
    this.understood.usage = messagesUsage(objectAt(event, 'usage'));
  }

  #end(): void {
    assert(this.understood.reason !== undefined, 'the message ends before its stop reason');
    this.hasEnded = true;
  }
}

function messagesCitation({ url, title }: JsonObject): Understood['citations'][number] {
  return { url, title, words: undefined };
}

function messagesUsage(usage: JsonObject): Understood['usage'] {
  const input = sum(usage, 'input_tokens', 'cache_creation_input_tokens', 'cache_read_input_tokens');
  return { input, output: sum(usage, 'output_tokens') };
}

class StrictResponses extends StrictClient {
  #events = 0;
  /** The items that have begun, by number: their content, and how they ended. */
  readonly #items: {
    readonly type: string;
    said: string;
    hasPart: boolean;
    readonly annotations: unknown[];
    whole: JsonObject | undefined;
  }[] = [];

  protected take(data: string, name: string | undefined): void {
    const event = parsed(data);
    assert.equal(event['type'], name);
    assert.equal(event['sequence_number'], this.#events);
    const first = ['response.created', 'response.in_progress'][this.#events];
    this.#events += 1;
    if (first !== undefined && name !== 'response.failed') assert.equal(name, first);
    else this.#take(name ?? '', event);
  }

  #take(name: string, event: JsonObject): void {
    switch (name) {
      case 'response.output_item.added':
        assert.equal(event['output_index'], this.#items.length);
        this.#items.push({
          type: textAt(objectAt(event, 'item'), 'type'),
          said: '',
          hasPart: false,
          annotations: [],
          whole: undefined,
        });
        break;
      case 'response.content_part.added':
      case 'response.reasoning_summary_part.added':
        assert(!this.#item(event).hasPart, 'a part begins twice');
        this.#item(event).hasPart = true;
        break;
      case 'response.content_part.done':
      case 'response.reasoning_summary_part.done': {
        const part = objectAt(event, 'part');
        assert.equal(part['text'] ?? part['refusal'], this.#item(event).said);
        if (part['text'] !== undefined && name === 'response.content_part.done')
          assert.deepEqual(part['annotations'], this.#item(event).annotations);
        break;
      }
      case 'response.output_item.done':
        this.#done(this.#item(event), objectAt(event, 'item'));
        break;
      case 'response.output_text.annotation.added':
        assert.equal(event['annotation_index'], this.#item(event).annotations.length);
        this.#item(event).annotations.push(event['annotation']);
        break;
      case 'response.completed':
      case 'response.incomplete':
        this.#end(name, objectAt(event, 'response'));
        break;
      case 'response.failed':
        this.#fail(objectAt(event, 'response'));
        break;
      default:
        this.#text(name, event);
    }
  }

  #fail(response: JsonObject): void {
    assert.equal(response['status'], 'failed');
    this.failure = textAt(objectAt(response, 'error'), 'message');
    // The gateway's own error for a stream that is cut off repeats no items.
    if (asArray(response['output']).length > 0) this.#hasItems(response);
    for (const { type, said, whole = {} } of this.#items) this.#understand(type, said, whole);
  }

  #hasItems(response: JsonObject): void {
    const wholes = this.#items.map(({ whole }) => whole);
    assert.deepEqual(asArray(response['output']), wholes, 'the output has other items');
  }

  #item(event: JsonObject) {
    const item = this.#items[event['output_index'] as number];
    assert(item !== undefined && item.whole === undefined, 'an event continues an item that is not open');
    return item;
  }

  #text(name: string, event: JsonObject): void {
    const item = this.#item(event);
    const [, kind, end] = /^response\.(\w+)\.(delta|done)$/.exec(name) ?? [];
    const type = KINDS[kind ?? ''];
    assert.equal(item.type, type, `${name} in a ${item.type}`);
    if (type === 'message' || type === 'reasoning') assert(item.hasPart, `${name} before its part`);
    if (end === 'delta') item.said += textAt(event, 'delta');
    else assert.equal(event['text'] ?? event['refusal'] ?? event['arguments'] ?? event['input'], item.said);
  }

  #done(item: { type: string; said: string; whole: JsonObject | undefined }, whole: JsonObject): void {
    assert.equal(whole['type'], item.type);
    const [content] = [...asArray(whole['content']), ...asArray(whole['summary'])].map((each) => asObject(each));
    const said = whole['arguments'] ?? whole['input'] ?? content?.['text'] ?? content?.['refusal'] ?? '';
    assert.equal(said, item.said);
    item.whole = whole;
  }

  #end(name: string, response: JsonObject): void {
    assert.equal(`response.${String(response['status'])}`, name);
    this.#hasItems(response);
    for (const { type, said, whole = {} } of this.#items) this.#understand(type, said, whole);
    this.understood.reason = asObject(response['incomplete_details'])?.['reason'] ?? 'completed';
    const usage = asObject(response['usage']);
    if (usage !== undefined)
      this.understood.usage = { input: sum(usage, 'input_tokens'), output: sum(usage, 'output_tokens') };
    this.hasEnded = true;
  }

  /** Adds an item. Overlapping items are in the order in which they began. */
  #understand(type: string, said: string, { call_id: id, name, content }: JsonObject): void {
    const { citations } = this.understood;
    if (type === 'message') {
      this.understood.text += said;
      citations.push(...responsesCitations(content));
    } else if (type === 'reasoning') this.understood.reasoning += said;
    else this.understood.calls.push({ id, name, isText: type === 'custom_tool_call', input: said });
  }
}

function responsesCitations(content: unknown): Understood['citations'] {
  return asArray(content).flatMap((each) => {
    const part = asObject(each) ?? {};
    return asArray(part['annotations']).map((cited) => citationOf(asObject(cited) ?? {}, asText(part['text'])));
  });
}

const KINDS: Readonly<Record<string, string>> = {
  output_text: 'message',
  refusal: 'message',
  reasoning_summary_text: 'reasoning',
  function_call_arguments: 'function_call',
  custom_tool_call_input: 'custom_tool_call',
};

/** Returns a Chat client's understanding of each answer in a body. */
export function chatChoices(body: JsonObject): readonly Understood[] {
  const usage = asObject(body['usage']);
  return asArray(body['choices']).map((given, at) => {
    const choice = asObject(given) ?? {};
    assert.equal(choice['index'], at);
    const message = asObject(choice['message']) ?? {};
    const text = asText(message['content']) + asText(message['refusal']);
    return {
      text,
      reasoning: '',
      calls: asArray(message['tool_calls']).map((each) => {
        const call = asObject(each) ?? {};
        const isText = call['type'] === 'custom';
        const called = objectAt(call, isText ? 'custom' : 'function');
        const input = textAt(called, isText ? 'input' : 'arguments');
        return { id: call['id'], name: called['name'], isText, input };
      }),
      citations: chatCitations(message, text),
      reason: choice['finish_reason'],
      usage: usage && { input: sum(usage, 'prompt_tokens'), output: sum(usage, 'completion_tokens') },
    };
  });
}

/** Returns a client's understanding of an unstreamed answer. */
export function understoodBody(client: Client, body: JsonObject): Understood {
  return BODIES[client](body);
}

const BODIES: Readonly<Record<Client, (body: JsonObject) => Understood>> = {
  chat: (body) => chatChoices(body)[0] ?? nothing(),
  messages: (body) => {
    const blocks = asArray(body['content']).map((block) => asObject(block) ?? {});
    return {
      text: blocks.map(({ text }) => asText(text)).join(''),
      reasoning: blocks.map(({ thinking }) => asText(thinking)).join(''),
      calls: blocks.flatMap(({ type, id, name, input }) =>
        type === 'tool_use' ? [{ id, name, isText: false, input: JSON.stringify(input) }] : [],
      ),
      citations: blocks.flatMap(({ citations }) =>
        asArray(citations).map((each) => messagesCitation(asObject(each) ?? {})),
      ),
      reason: body['stop_reason'],
      usage: messagesUsage(objectAt(body, 'usage')),
    };
  },
  responses: (body) => {
    const items = asArray(body['output']).map((item) => asObject(item) ?? {});
    const parts = (list: unknown) =>
      asArray(list).map((part) => asText(asObject(part)?.['text'] ?? asObject(part)?.['refusal']));
    const usage = asObject(body['usage']);
    return {
      text: items.flatMap(({ content }) => parts(content)).join(''),
      reasoning: items.flatMap(({ summary }) => parts(summary)).join(''),
      calls: items.flatMap(({ type, call_id: id, name, arguments: json, input: text }) => {
        const isText = type === 'custom_tool_call';
        return isText || type === 'function_call' ? [{ id, name, isText, input: asText(isText ? text : json) }] : [];
      }),
      citations: items.flatMap(({ content }) => responsesCitations(content)),
      reason: asObject(body['incomplete_details'])?.['reason'] ?? body['status'],
      usage: usage && { input: sum(usage, 'input_tokens'), output: sum(usage, 'output_tokens') },
    };
  },
};
