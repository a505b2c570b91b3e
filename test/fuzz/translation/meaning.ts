import { asArray, asObject, asText, type JsonObject } from '../../../core/base/json-values';
import type { Conversation, Part, Source, ToolCallPart, Turn } from '../../../core/catalog/conversation';
import { isHeldStrictly } from '../../../core/protocols/strict-schema';
import type { Upstream } from './directions';

/** The content of one side until the other side begins. Dialects differ in how they split it into messages, and in the order of kinds. */
export interface Run {
  readonly side: 'model' | 'user';
  readonly words: readonly string[];
  readonly calls: readonly unknown[];
  readonly results: readonly unknown[];
  readonly media: readonly string[];
}

/** The parts that must be equal on both sides of a translation, in a comparable form. */
export interface Meaning {
  readonly instructions: readonly string[];
  readonly runs: readonly Run[];
  readonly tools: readonly unknown[];
  readonly settings: JsonObject;
}

/** Lists the words of a text, as `word` makes them. */
export function wordsIn(text: string): readonly string[] {
  return text.match(/‹[^›]*›/gu) ?? [];
}

/** Returns the meaning of a conversation at an upstream; `undefined`: without one. */
export function meaningOf(talk: Conversation, upstream?: Upstream): Meaning {
  return {
    instructions: talk.instructions.flatMap(({ text }) => wordsIn(text)),
    runs: numbered(joined(talk.turns.map((turn) => runOf(turn, upstream)))),
    tools: byName(talk.tools).map((tool) => toolMeaning(tool, upstream)),
    settings: settingsOf(talk, upstream),
  };
}

/** Sorts tools by name, because tools of a namespace stand together. */
function byName<T extends { readonly name?: unknown }>(tools: readonly T[]): readonly T[] {
  return [...tools].sort((one, other) => (String(one.name) < String(other.name) ? -1 : 1));
}

function toolMeaning(
  { name, description, schema, strict, input, format }: Conversation['tools'][number],
  upstream?: Upstream,
) {
  const common = { name, description };
  if (input === 'text' && takesTexts(upstream)) return { ...common, input, format };
  if (input === 'text') return { ...common, input: 'input' };
  const isStrict = upstream !== 'gemini' && strict === true && mayBeStrict(schema, upstream);
  return { ...common, schema: plain(schema ?? { type: 'object', properties: {} }), isStrict };
}

/** Whether an upstream takes `strict` with a schema. */
function mayBeStrict(schema: unknown, upstream: Upstream | undefined): boolean {
  return (upstream !== 'chat' && upstream !== 'responses') || isHeldStrictly(schema);
}

function takesTexts(upstream: Upstream | undefined): boolean {
  return upstream !== 'messages' && upstream !== 'gemini';
}

function runOf({ role, parts }: Turn, upstream: Upstream | undefined): Run {
  return {
    side: role === 'assistant' ? 'model' : 'user',
    words: parts.flatMap((part) => wordsOf(part)),
    calls: parts.flatMap((part) => (part.kind === 'tool_call' ? [callOf(part, upstream)] : [])),
    results: parts.flatMap((part) => {
      if (part.kind !== 'tool_result') return [];
      const failed = upstream === 'chat' || upstream === 'responses' ? false : part.isError === true;
      return [{ id: part.id, words: part.parts.flatMap(wordsOf), failed }];
    }),
    media: parts.flatMap((part) => (part.kind === 'tool_result' ? part.parts.flatMap(mediaOf) : mediaOf(part))),
  };
}

/** Replaces ids by their order, because vendors take few characters in them. */
function numbered(runs: readonly Run[]): readonly Run[] {
  const numbers = new Map<unknown, number>();
  const withNumber = (given: unknown): unknown => {
    const { id, ...rest } = asObject(given) ?? {};
    if (!numbers.has(id)) numbers.set(id, numbers.size);
    return { ...rest, id: numbers.get(id) };
  };
  return runs.map((run) => ({ ...run, calls: run.calls.map(withNumber), results: run.results.map(withNumber) }));
}

function callOf({ id, name, input, isText }: ToolCallPart, upstream: Upstream | undefined): unknown {
  const common = { id, name };
  if (isText !== true) return { ...common, input: JSON.parse(input.trim() === '' ? '{}' : input) as unknown };
  return takesTexts(upstream) ? { ...common, text: input } : { ...common, input: { input } };
}

function wordsOf(part: Part): readonly string[] {
  if (part.kind === 'text' || part.kind === 'refusal') return wordsIn(part.text);
  return part.kind === 'document' && 'text' in part.source ? wordsIn(part.source.text) : [];
}

function mediaOf(part: Part): readonly string[] {
  if (part.kind === 'audio') return [`audio/${part.format} ${part.base64}`];
  if (part.kind !== 'image' && part.kind !== 'document') return [];
  return 'text' in part.source ? [] : [sourceOf(part.source)];
}

function sourceOf(source: Source): string {
  return 'url' in source ? source.url : `${source.mediaType} ${source.base64}`;
}

/** Joins adjacent runs of one side, and drops empty ones. */
function joined(runs: readonly Run[]): readonly Run[] {
  const all: Run[] = [];
  for (const run of runs) {
    if (run.words.length + run.calls.length + run.results.length + run.media.length === 0) continue;
    const last = all.at(-1);
    if (last?.side !== run.side) all.push(run);
    else
      all[all.length - 1] = {
        side: run.side,
        words: [...last.words, ...run.words],
        calls: [...last.calls, ...run.calls],
        results: [...last.results, ...run.results],
        media: [...last.media, ...run.media],
      };
  }
  // A refusal stands after the text in some dialects, and images of results after all results.
  return all.map((run) => ({ ...run, words: [...run.words].sort(), media: [...run.media].sort() }));
}

function settingsOf(talk: Conversation, upstream: Upstream | undefined): JsonObject {
  const { toolChoice = 'auto', parallelTools, tools, outputFormat, choices, maxTokens, stop, temperature, topP } = talk;
  const choice = typeof toolChoice === 'object' ? toolChoice.tool : toolChoice;
  const knowsStrict = upstream !== 'messages' && upstream !== 'gemini';
  const has = (...upstreams: readonly Upstream[]) => upstream === undefined || upstreams.includes(upstream);
  return plain({
    toolChoice: tools.length === 0 ? 'auto' : choice,
    isSingle: tools.length > 0 && choice !== 'none' && parallelTools === false,
    format: outputFormat?.kind === 'schema' ? outputFormat.schema : outputFormat?.kind,
    isStrictFormat:
      knowsStrict &&
      outputFormat?.kind === 'schema' &&
      outputFormat.strict === true &&
      mayBeStrict(outputFormat.schema, upstream),
    choices,
    maxTokens,
    stop: [...stop],
    temperature,
    topP,
    topK: has('messages', 'gemini') ? talk.topK : undefined,
    seed: has('chat', 'gemini') ? talk.seed : undefined,
    penalties: [talk.frequencyPenalty ?? 0, talk.presencePenalty ?? 0],
  }) as JsonObject;
}

/** Converts to JSON. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value)) as unknown;
}

/** Lists the members that other dialects may refuse, by their name in the model of a conversation. */
export function refusedAt(upstream: Upstream, talk: Conversation): ReadonlySet<string> {
  const refused = new Set<string>();
  const refuse = (what: string, when: boolean) => when && refused.add(what);
  const { tools, toolChoice, stop, choices, temperature = 0, outputFormat, parallelTools } = talk;
  const asks = toolChoice !== undefined && toolChoice !== 'auto' && toolChoice !== 'none';
  const parts = talk.turns.flatMap((turn) => turn.parts);
  const shown = [...parts, ...parts.flatMap((part) => (part.kind === 'tool_result' ? part.parts : []))];
  refuse('toolChoice', upstream !== 'responses' && tools.length === 0 && asks);
  if (upstream === 'messages' || upstream === 'responses') {
    refuse('choices', choices > 1);
    refuse('frequencyPenalty', (talk.frequencyPenalty ?? 0) !== 0);
    refuse('presencePenalty', (talk.presencePenalty ?? 0) !== 0);
  }
  switch (upstream) {
    case 'messages':
      refuse('temperature', temperature > 1);
      refuse('outputFormat', outputFormat?.kind === 'json');
      refuse(
        'audio',
        shown.some(({ kind }) => kind === 'audio'),
      );
      refuse(
        'image',
        shown.some(
          (part) => part.kind === 'image' && 'mediaType' in part.source && part.source.mediaType === 'image/tiff',
        ),
      );
      break;
    case 'chat':
      refuse('stop', stop.length > 4);
      break;
    case 'responses':
      refuse('stop', stop.length > 0);
      refuse(
        'audio',
        shown.some((part) => part.kind === 'audio' && part.format === 'flac'),
      );
      break;
    case 'gemini':
      refuse('stop', stop.length > 5);
      refuse('parallelTools', tools.length > 0 && parallelTools === false);
      refuse(
        'image',
        shown.some((part) => part.kind === 'image' && 'url' in part.source && !part.source.url.endsWith('.png')),
      );
  }
  return refused;
}

/** Returns the meaning of a generateContent body. It has its own reader, because no client speaks the dialect. */
export function geminiMeaning(body: JsonObject): Meaning {
  const config = asObject(body['generationConfig']) ?? {};
  const [group] = asArray(body['tools']);
  const calling = asObject(asObject(body['toolConfig'])?.['functionCallingConfig']) ?? {};
  const modes: Readonly<Record<string, unknown>> = { AUTO: 'auto', VALIDATED: 'auto', NONE: 'none', ANY: 'required' };
  const [named] = asArray(calling['allowedFunctionNames']);
  return {
    instructions: objects(asObject(body['systemInstruction'])?.['parts']).flatMap(({ text }) => wordsIn(asText(text))),
    runs: numbered(joined(objects(body['contents']).map(geminiRun))),
    tools: byName(objects(asObject(group)?.['functionDeclarations'])).map(geminiTool),
    settings: {
      toolChoice: named ?? modes[asText(calling['mode'])] ?? 'auto',
      isSingle: false,
      isStrictFormat: false,
      ...(config['responseMimeType'] !== undefined && { format: config['responseJsonSchema'] ?? 'json' }),
      choices: config['candidateCount'] ?? 1,
      ...only('maxTokens', config['maxOutputTokens']),
      stop: config['stopSequences'] ?? [],
      ...only('temperature', config['temperature']),
      ...only('topP', config['topP']),
      ...only('topK', config['topK']),
      ...only('seed', config['seed']),
      penalties: [config['frequencyPenalty'] ?? 0, config['presencePenalty'] ?? 0],
    },
  };
}

function only(name: string, value: unknown): JsonObject {
  return value === undefined ? {} : { [name]: value };
}

function objects(list: unknown): readonly JsonObject[] {
  return asArray(list).map((each) => asObject(each) ?? {});
}

function geminiTool({ name, description, parametersJsonSchema }: JsonObject): unknown {
  const isText = asText(name).startsWith('text_');
  const shape = isText ? { input: Object.keys(asObject(asObject(parametersJsonSchema)?.['properties']) ?? {})[0] } : {};
  return { name, description, ...(isText ? shape : { schema: parametersJsonSchema, isStrict: false }) };
}

function geminiRun({ role, parts }: JsonObject): Run {
  const all = objects(parts);
  return {
    side: role === 'model' ? 'model' : 'user',
    words: all.flatMap(({ text }) => wordsIn(asText(text))),
    calls: all.flatMap(({ functionCall }) => {
      const { id, name, args } = asObject(functionCall) ?? {};
      return functionCall === undefined ? [] : [{ id, name, input: args }];
    }),
    results: all.flatMap(({ functionResponse }) => {
      if (functionResponse === undefined) return [];
      const { id, response } = asObject(functionResponse) ?? {};
      const { error, output } = asObject(response) ?? {};
      return [{ id, words: wordsIn(asText(error ?? output)), failed: error !== undefined }];
    }),
    media: all.flatMap(({ inlineData, fileData }) => {
      const { mimeType, data } = asObject(inlineData) ?? {};
      if (inlineData !== undefined) return [`${String(mimeType)} ${String(data)}`];
      return fileData === undefined ? [] : [asText(asObject(fileData)?.['fileUri'])];
    }),
  };
}
