import type { SseEvent } from '../../../core/catalog/upstream';
import type { Random } from '../../support/random';
import { MODEL, type Upstream } from './directions';
import { chance, listed, object, word } from './talk';

type Json = Record<string, unknown>;

export type Said =
  | {
      readonly is: 'text' | 'refusal' | 'reasoning';
      readonly pieces: readonly string[];
      /** The citations of a text. */
      readonly cited: readonly Cited[];
    }
  | {
      readonly is: 'call';
      readonly id: string;
      readonly name: string;
      readonly input: Json;
      /** The input of a tool with text input: the one member of `input`. */
      readonly text: string | undefined;
    };

/** A citation: the words `from` to `to` of a text come from an address. */
export interface Cited {
  readonly url: string;
  readonly title: string;
  readonly from: number;
  readonly to: number;
}

/** The tool with text input. */
export const TEXT_TOOL = 'sql';

export interface Used {
  readonly input: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly output: number;
  readonly reasoning: number;
}

/** A model's content, before a dialect writes it. */
export interface RandomAnswer {
  readonly said: readonly Said[];
  readonly reason: 'end' | 'length' | 'tool_calls' | 'filter';
  readonly used: Used;
}

/** An answer in an upstream's dialect: as events, and as a body. */
export interface WrittenAnswer {
  readonly events: readonly SseEvent[];
  readonly body: Json;
}

/** Draws an answer that an upstream of this dialect can give. Chat has one text, one refusal and its calls, in this order. */
export function randomAnswer(random: Random, upstream: Upstream): RandomAnswer {
  const kinds = upstream === 'chat' ? CHAT_KINDS : refusingLast(listed(random, 5, () => random.pick(KINDS[upstream])));
  const said = kinds.flatMap((is, at) => {
    if (upstream === 'chat' && chance(random, 2)) return [];
    if (is === 'call') return [callOf(random, at)];
    const pieces = [word(random), ...listed(random, 3, () => random.pick(['', ' ', '\n', word(random), word(random)]))];
    const cited = is === 'text' && upstream !== 'gemini' ? citationsOf(random, pieces.join('').length) : [];
    return [{ is, pieces, cited }];
  });
  const cacheRead = random.pick([0, 0, 30]);
  const cacheWrite = upstream === 'gemini' ? 0 : random.pick([0, 0, 20]);
  const used = {
    input: random.below(900),
    cacheRead,
    cacheWrite,
    output: 20 + random.below(900),
    reasoning: random.below(20),
  };
  const hasCalls = said.some(({ is }) => is === 'call');
  const hasRefused = said.some(({ is }) => is === 'refusal');
  const reason = hasCalls ? 'tool_calls' : hasRefused ? 'end' : random.pick(['end', 'length', 'filter'] as const);
  return { said, reason, used };
}

type Kind = Said['is'];

const CHAT_KINDS: readonly Kind[] = ['reasoning', 'text', 'refusal', 'call', 'call', 'call'];
const KINDS: Readonly<Record<Upstream, readonly Kind[]>> = {
  messages: ['text', 'reasoning', 'call'],
  chat: CHAT_KINDS,
  responses: ['text', 'reasoning', 'refusal', 'call'],
  gemini: ['text', 'reasoning', 'call'],
};

/** Moves a refusal to the end, because Chat loses its position relative to the text. */
function refusingLast(kinds: readonly Kind[]): readonly Kind[] {
  const others = kinds.filter((is) => is !== 'refusal');
  return others.length === kinds.length ? kinds : [...others, 'refusal'];
}

function callOf(random: Random, at: number): Said {
  const id = `call_${at}_${random.below(1_000)}`;
  const text = chance(random, 4) ? word(random) : undefined;
  if (text !== undefined) return { is: 'call', id, name: TEXT_TOOL, input: { input: text }, text };
  return { is: 'call', id, name: random.pick(['weather', 'get']), input: object(random), text };
}

function citationsOf(random: Random, length: number): readonly Cited[] {
  if (!chance(random, 3)) return [];
  return listed(random, 3, (at) => {
    const from = random.below(length);
    const to = from + 1 + random.below(length - from);
    return { url: `https://a.example/${at}`, title: word(random), from, to };
  });
}

/** Adds the citations of a text after one of its pieces. */
function withCitations<T>(random: Random, pieces: readonly T[], citations: readonly T[]): readonly T[] {
  const at = 1 + random.below(pieces.length);
  return [...pieces.slice(0, at), ...citations, ...pieces.slice(at)];
}

/** Makes the event by which a vendor of this dialect reports an error in the middle of a stream. */
export function errorOf(upstream: Upstream, message: string): SseEvent {
  const error = { type: 'overloaded_error', message };
  if (upstream === 'messages') return event({ type: 'error', error }, 'error');
  if (upstream !== 'responses') return event({ error });
  const response = { id: 'resp_1', object: 'response', status: 'failed', error: { code: 'server_error', message } };
  return event({ type: 'response.failed', response }, 'response.failed');
}

export function writeAnswer(random: Random, upstream: Upstream, answer: RandomAnswer): WrittenAnswer {
  return WRITERS[upstream](random, answer);
}

const WRITERS: Readonly<Record<Upstream, (random: Random, answer: RandomAnswer) => WrittenAnswer>> = {
  messages: messagesAnswer,
  chat: chatAnswer,
  responses: responsesAnswer,
  gemini: geminiAnswer,
};

function event(data: Json, name?: string): SseEvent {
  return { name, data: JSON.stringify(data) };
}

/** Splits an input anywhere except within a character. */
function inputPieces(random: Random, input: Json | string): readonly string[] {
  const text = [...(typeof input === 'string' ? input : JSON.stringify(input))];
  const at = random.below(text.length);
  return [text.slice(0, at).join(''), text.slice(at).join('')];
}

function messagesAnswer(random: Random, { said, reason, used }: RandomAnswer): WrittenAnswer {
  const usage = {
    input_tokens: used.input,
    cache_read_input_tokens: used.cacheRead,
    cache_creation_input_tokens: used.cacheWrite,
    output_tokens: used.output,
  };
  const reasons = { end: 'end_turn', length: 'max_tokens', tool_calls: 'tool_use', filter: 'refusal' };
  const head = { id: 'msg_1', type: 'message', role: 'assistant', model: MODEL };
  const delta = { stop_reason: reasons[reason], stop_sequence: null };
  const typed = (type: string, members: Json = {}) => event({ type, ...members }, type);
  return {
    events: [
      typed('message_start', {
        message: { ...head, content: [], ...delta, stop_reason: null, usage: { ...usage, output_tokens: 1 } },
      }),
      typed('ping'),
      ...said.flatMap((each, index) => [
        typed('content_block_start', { index, content_block: messagesBlock(each, true) }),
        ...messagesDeltas(random, each).map((one) => typed('content_block_delta', { index, delta: one })),
        typed('content_block_stop', { index }),
      ]),
      typed('message_delta', { delta, usage }),
      typed('message_stop'),
    ],
    body: { ...head, content: said.map((each) => messagesBlock(each, false)), ...delta, usage },
  };
}

function messagesBlock(said: Said, isEmpty: boolean): Json {
  if (said.is === 'call') return { type: 'tool_use', id: said.id, name: said.name, input: isEmpty ? {} : said.input };
  const text = isEmpty ? '' : said.pieces.join('');
  if (said.is === 'reasoning') return { type: 'thinking', thinking: text, signature: isEmpty ? '' : 'c2ln' };
  const citations = said.cited.map(messagesCitation);
  return { type: 'text', text, ...(citations.length > 0 && { citations: isEmpty ? [] : citations }) };
}

function messagesCitation({ url, title }: Cited): Json {
  return { type: 'web_search_result_location', url, title, cited_text: 'words', encrypted_index: 'abc' };
}

function messagesDeltas(random: Random, said: Said): readonly Json[] {
  if (said.is === 'call')
    return inputPieces(random, said.input).map((partial_json) => ({ type: 'input_json_delta', partial_json }));
  if (said.is === 'text') {
    const texts: readonly Json[] = said.pieces.map((text) => ({ type: 'text_delta', text }));
    const cited = said.cited.map((each) => ({ type: 'citations_delta', citation: messagesCitation(each) }));
    return withCitations(random, texts, cited);
  }
  const thought = said.pieces.map((thinking) => ({ type: 'thinking_delta', thinking }));
  return [...thought, { type: 'signature_delta', signature: 'c2ln' }];
}

function chatAnswer(random: Random, { said, reason, used }: RandomAnswer): WrittenAnswer {
  const input = used.input + used.cacheRead + used.cacheWrite;
  const usage = {
    prompt_tokens: input,
    completion_tokens: used.output,
    total_tokens: input + used.output,
    prompt_tokens_details: { cached_tokens: used.cacheRead, cache_write_tokens: used.cacheWrite },
    completion_tokens_details: { reasoning_tokens: used.reasoning },
  };
  const reasons = { end: 'stop', length: 'length', tool_calls: 'tool_calls', filter: 'content_filter' };
  const head = { id: 'chatcmpl-1', created: 1, model: MODEL };
  const chunk = (choices: readonly unknown[], more: Json = {}) =>
    event({ ...head, object: 'chat.completion.chunk', choices, ...more });
  const delta = (members: Json, finish: string | null = null) =>
    chunk([{ index: 0, delta: members, finish_reason: finish }]);
  const calls = said.filter((each) => each.is === 'call');
  const message = { role: 'assistant', content: null, ...Object.fromEntries(said.flatMap((each) => chatMember(each))) };
  const toolCalls = calls.map((call) => chatCall(call, call.text ?? JSON.stringify(call.input)));
  const callDeltas = interleaved(
    random,
    calls.map((call, index) => chatDeltas(random, call, index)),
  );
  return {
    events: [
      delta({ role: 'assistant', content: '' }),
      ...said.flatMap((each) => (each.is === 'call' ? [] : chatPieces(random, each))).map((each) => delta(each)),
      ...callDeltas.map((each) => delta({ tool_calls: [each] })),
      delta({}, reasons[reason]),
      chunk([], { usage }),
      { name: undefined, data: '[DONE]' },
    ],
    body: {
      ...head,
      object: 'chat.completion',
      choices: [
        {
          index: 0,
          message: { ...message, ...(calls.length > 0 && { tool_calls: toolCalls }) },
          finish_reason: reasons[reason],
        },
      ],
      usage,
    },
  };
}

const CHAT_MEMBERS = { text: 'content', refusal: 'refusal', reasoning: 'reasoning_content' } as const;

function chatMember(said: Said): readonly [string, unknown][] {
  if (said.is === 'call') return [];
  const text: [string, unknown] = [CHAT_MEMBERS[said.is], said.pieces.join('')];
  return said.cited.length === 0 ? [text] : [text, ['annotations', chatAnnotations(said.cited)]];
}

function chatAnnotations(cited: readonly Cited[]): readonly Json[] {
  return cited.map(({ url, title, from, to }) => ({
    type: 'url_citation',
    url_citation: { url, title, start_index: from, end_index: to },
  }));
}

function chatPieces(random: Random, { is, pieces, cited }: Exclude<Said, { is: 'call' }>): readonly Json[] {
  const texts: readonly Json[] = pieces.map((piece) => ({ [CHAT_MEMBERS[is]]: piece }));
  return withCitations(random, texts, cited.length === 0 ? [] : [{ annotations: chatAnnotations(cited) }]);
}

type Call = Extract<Said, { is: 'call' }>;

function chatCall({ id, name, text }: Call, input: string): Json {
  if (text !== undefined) return { id, type: 'custom', custom: { name, input } };
  return { id, type: 'function', function: { name, arguments: input } };
}

function chatDeltas(random: Random, call: Call, index: number): readonly Json[] {
  const pieces = inputPieces(random, call.text ?? call.input);
  const others = pieces.map((piece) =>
    call.text === undefined ? { function: { arguments: piece } } : { custom: { input: piece } },
  );
  return [chatCall(call, ''), ...others].map((each) => ({ index, ...each }));
}

/** Interleaves the lists, each in its order. They begin in order, and follow each other or overlap. */
function interleaved<T>(random: Random, lists: readonly (readonly T[])[]): readonly T[] {
  if (random.below(2) === 0) return lists.flat();
  const firsts = lists.flatMap(([first]) => (first === undefined ? [] : [first]));
  const left = lists.map((list) => list.slice(1));
  const mixed: T[] = [];
  while (left.some(({ length }) => length > 0)) mixed.push(...random.pick(left).splice(0, 1));
  return [...firsts, ...mixed];
}

function responsesAnswer(random: Random, { said, reason, used }: RandomAnswer): WrittenAnswer {
  const input = used.input + used.cacheRead + used.cacheWrite;
  const usage = {
    input_tokens: input,
    input_tokens_details: { cached_tokens: used.cacheRead, cache_write_tokens: used.cacheWrite },
    output_tokens: used.output,
    output_tokens_details: { reasoning_tokens: used.reasoning },
    total_tokens: input + used.output,
  };
  const isWhole = reason === 'end' || reason === 'tool_calls';
  const status = isWhole ? 'completed' : 'incomplete';
  const why = reason === 'length' ? 'max_output_tokens' : 'content_filter';
  const head = { id: 'resp_1', object: 'response', model: MODEL };
  const output = said.map((each, at) => responsesItem(each, at, false));
  const body = { ...head, status, incomplete_details: isWhole ? null : { reason: why }, output, usage };
  const all = said.map((each, at) => responsesEvents(random, each, at));
  const texts = all.filter((_, at) => said[at]?.is !== 'call');
  const calls = all.filter((_, at) => said[at]?.is === 'call');
  let number = 0;
  const typed = (type: string, members: Json) => event({ type, sequence_number: number++, ...members }, type);
  const begun = { ...head, status: 'in_progress', output: [], usage: null };
  return {
    events: [
      typed('response.created', { response: begun }),
      typed('response.in_progress', { response: begun }),
      ...[...texts.flat(), ...interleaved(random, calls)].map(([type, members]) => typed(type, members)),
      typed(`response.${status}`, { response: body }),
    ],
    body,
  };
}

function responsesItem(said: Said, at: number, isEmpty: boolean): Json {
  const id = `item_${at}`;
  if (said.is === 'call') {
    const { id: call_id, name, text: given, input } = said;
    if (given !== undefined) return { id, type: 'custom_tool_call', call_id, name, input: isEmpty ? '' : given };
    return { id, type: 'function_call', call_id, name, arguments: isEmpty ? '' : JSON.stringify(input) };
  }
  const text = said.pieces.join('');
  if (said.is === 'reasoning')
    return {
      id,
      type: 'reasoning',
      summary: isEmpty ? [] : [{ type: 'summary_text', text }],
      encrypted_content: isEmpty ? '' : 'c2ln',
    };
  return { id, type: 'message', role: 'assistant', content: isEmpty ? [] : [responsesPart(said.is, text, said.cited)] };
}

function responsesPart(is: 'text' | 'refusal', text: string, cited: readonly Cited[]): Json {
  if (is === 'refusal') return { type: 'refusal', refusal: text };
  return { type: 'output_text', text, annotations: cited.map(responsesAnnotation) };
}

function responsesAnnotation({ url, title, from, to }: Cited): Json {
  return { type: 'url_citation', url, title, start_index: from, end_index: to };
}

type Told = readonly [type: string, members: Json];

function responsesEvents(random: Random, said: Said, output_index: number): readonly Told[] {
  const begun = [
    'response.output_item.added',
    { output_index, item: responsesItem(said, output_index, true) },
  ] as const;
  const ended = [
    'response.output_item.done',
    { output_index, item: responsesItem(said, output_index, false) },
  ] as const;
  return [begun, ...innerEvents(random, said, { output_index, item_id: `item_${output_index}` }), ended];
}

function innerEvents(random: Random, said: Said, at: Json): readonly Told[] {
  if (said.is === 'call') {
    const whole = said.text ?? JSON.stringify(said.input);
    const [kind, member] =
      said.text === undefined ? ['function_call_arguments', 'arguments'] : ['custom_tool_call_input', 'input'];
    const deltas = inputPieces(random, whole).map((delta) => [`response.${kind}.delta`, { ...at, delta }] as const);
    return [...deltas, [`response.${kind}.done`, { ...at, [member as string]: whole }]];
  }
  const text = said.pieces.join('');
  if (said.is === 'reasoning')
    return [
      ...said.pieces.map(
        (delta) => ['response.reasoning_summary_text.delta', { ...at, summary_index: 0, delta }] as const,
      ),
      ['response.reasoning_summary_text.done', { ...at, summary_index: 0, text }],
    ];
  const place = { ...at, content_index: 0 };
  const [kind, member] = said.is === 'text' ? ['output_text', 'text'] : ['refusal', 'refusal'];
  return [
    ['response.content_part.added', { ...place, part: responsesPart(said.is, '', []) }],
    ...withCitations(
      random,
      said.pieces.map((delta): Told => [`response.${kind}.delta`, { ...place, delta }]),
      said.cited.map(
        (each, annotation_index): Told => [
          'response.output_text.annotation.added',
          { ...place, annotation_index, annotation: responsesAnnotation(each) },
        ],
      ),
    ),
    [`response.${kind}.done`, { ...place, [member as string]: text }],
    ['response.content_part.done', { ...place, part: responsesPart(said.is, text, said.cited) }],
  ];
}

function geminiAnswer(random: Random, answer: RandomAnswer): WrittenAnswer {
  return geminiAnswers(random, [answer]);
}

/** Writes several answers to one call. Each event has one piece of one of them. The counts are those of the first, in the last event or in all. */
export function geminiAnswers(random: Random, answers: readonly RandomAnswer[]): WrittenAnswer {
  const { input, cacheRead, output, reasoning } = (answers[0] as RandomAnswer).used;
  const usageMetadata = {
    promptTokenCount: input + cacheRead,
    cachedContentTokenCount: cacheRead,
    candidatesTokenCount: output - reasoning,
    thoughtsTokenCount: reasoning,
    totalTokenCount: input + cacheRead + output,
  };
  const head = { modelVersion: MODEL, responseId: 'r1' };
  const content = (parts: readonly Json[]) => ({ role: 'model', parts });
  const wholes = answers.map(({ said, reason }, index) => {
    const finishReason = { end: 'STOP', tool_calls: 'STOP', length: 'MAX_TOKENS', filter: 'SAFETY' }[reason];
    return { index, content: content(said.flatMap((each) => geminiParts(each))), finishReason };
  });
  const pieces = wholes.map(({ index, content: { parts }, finishReason }) => [
    ...parts.map((part) => ({ index, content: content([part]) })),
    { index, content: content([{ text: '' }]), finishReason },
  ]);
  const isCountedAlways = chance(random, 2);
  const all = interleaved<Json>(random, pieces);
  return {
    events: all.map((candidate, at) =>
      event({
        ...head,
        candidates: [candidate],
        ...((isCountedAlways || at === all.length - 1) && { usageMetadata }),
      }),
    ),
    body: { ...head, candidates: wholes, usageMetadata },
  };
}

function geminiParts(said: Said): readonly Json[] {
  if (said.is === 'call') return [{ functionCall: { id: said.id, name: said.name, args: said.input } }];
  return said.pieces.map((text) => ({ text, ...(said.is === 'reasoning' && { thought: true }) }));
}
