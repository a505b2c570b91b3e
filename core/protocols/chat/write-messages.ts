import { append } from '../../base/collections';
import type { JsonObject } from '../../base/json-values';
import {
  type AudioPart,
  type DocumentPart,
  type ImagePart,
  NotTranslatable,
  type Part,
  type ReasoningPart,
  type RefusalPart,
  type TextPart,
  type ToolCallPart,
  type ToolResultPart,
  type Turn,
} from '../../catalog/conversation';
import type { TranslatedCall } from '../../catalog/upstream';
import { goodAt } from '../seal';
import { jsonInputOf } from '../text-tools';
import { type KeptReasoning, readKept } from './kept-reasoning';
import { REASONING_MEMBERS } from './read-choice';

/** Separates texts that were separate. Many upstreams take text only, not a list of texts. */
const APART = '\n\n';

/** Writes the messages. @throws NotTranslatable */
export function writeMessages({ conversation, upstream }: TranslatedCall): readonly JsonObject[] {
  const { instructions, turns } = conversation;
  const system = instructions.map(({ text }) => text).join(APART);
  return [
    ...(system === '' ? [] : [{ role: 'system', content: system }]),
    ...runsOf(turns).flatMap((run) => (isAssistant(run[0]) ? writeAnswer(run, upstream) : writeAsked(run))),
  ];
}

function isAssistant(turn: Turn | undefined): boolean {
  return turn?.role === 'assistant';
}

/** Groups consecutive turns of the assistant, and those between them. Vendors want all calls in one message, followed by their results. */
function runsOf(turns: readonly Turn[]): readonly (readonly Turn[])[] {
  const runs: Turn[][] = [];
  for (const turn of turns) {
    const run = runs.at(-1);
    if (run !== undefined && isAssistant(run[0]) === isAssistant(turn)) run.push(turn);
    else runs.push([turn]);
  }
  return runs;
}

/** Writes a run of the assistant's turns as one message. A run with reasoning alone gets no message. */
function writeAnswer(run: readonly Turn[], upstream: string): readonly JsonObject[] {
  const calls: JsonObject[] = [];
  const texts: string[] = [];
  let refusal = '';
  for (const { parts } of run) {
    const said = parts.filter((part) => part.is !== 'reasoning').map(ofAssistant);
    append(calls, writeCalls(parts, upstream));
    refusal += joined(said.filter((part) => part.is === 'refusal'));
    if (said.some((part) => part.is === 'text')) texts.push(joined(said.filter((part) => part.is === 'text')));
  }
  if (texts.length + calls.length === 0 && refusal === '') return [];
  const text = texts.filter((each) => each !== '').join(APART);
  const isSilent = text === '' && (calls.length > 0 || refusal !== '');
  return [
    {
      role: 'assistant',
      content: isSilent ? null : text,
      ...reasoningOf(run, upstream),
      ...(refusal !== '' && { refusal }),
      ...(calls.length > 0 && { tool_calls: calls }),
    },
  ];
}

/** Returns this upstream's own reasoning, in the member in which it sent it. A client may forge a sealed value, so no other member is written. */
function reasoningOf(run: readonly Turn[], upstream: string): JsonObject {
  const parts = run.flatMap((turn) => turn.parts.filter((part) => part.is === 'reasoning'));
  const from = (member: string) => parts.filter(({ signature }) => goodAt(signature, upstream, 'chat') === member);
  const said = REASONING_MEMBERS.map((member) => [member, joined(from(member))] as const);
  const details = parts.flatMap((part) => keptBy(part, upstream).reasoning_details ?? []);
  return {
    ...Object.fromEntries(said.filter(([, text]) => text !== '')),
    ...(details.length > 0 && { reasoning_details: details }),
  };
}

function keptBy({ signature }: ReasoningPart, upstream: string): KeptReasoning {
  return readKept(goodAt(signature, upstream, 'chat'));
}

/** Writes the calls of a turn. A call gets back what stands before it. */
function writeCalls(parts: readonly Part[], upstream: string): readonly JsonObject[] {
  const calls: JsonObject[] = [];
  let extra: JsonObject | undefined;
  for (const part of parts) {
    if (part.is === 'reasoning') extra = keptBy(part, upstream).extra_content ?? extra;
    if (part.is !== 'tool_call') continue;
    calls.push({ ...writeCall(part), ...(extra && { extra_content: extra }) });
    extra = undefined;
  }
  return calls;
}

/** Joins the texts of one turn without a separator, because they continue each other. */
function joined(parts: readonly { readonly text: string }[]): string {
  return parts.map(({ text }) => text).join('');
}

function ofAssistant(part: Part): TextPart | RefusalPart | ToolCallPart {
  if (part.is === 'text' || part.is === 'refusal' || part.is === 'tool_call') return part;
  throw new NotTranslatable(part.is, 'cannot stand in a message of the assistant at this upstream');
}

function writeCall(part: ToolCallPart): JsonObject {
  const { id, name, input, isText } = part;
  if (isText === true) return { id, type: 'custom', custom: { name, input } };
  return { id, type: 'function', function: { name, arguments: jsonInputOf(part) } };
}

type Shown = TextPart | ImagePart | DocumentPart | AudioPart;

/**
 * Writes a run of the user's turns, with tool results first. A result's message takes text only, so its images and documents
 * follow in a message of the user.
 */
function writeAsked(run: readonly Turn[]): readonly JsonObject[] {
  const results = run.flatMap(({ parts }) => parts.filter((part) => part.is === 'tool_result'));
  const shown = results.flatMap(shownBy);
  return [
    ...results.map(writeResult),
    ...(shown.length === 0 ? [] : [{ role: 'user', content: shown.map(writeShown) }]),
    ...run.flatMap(writeTurn),
  ];
}

function writeTurn({ role, parts }: Turn): readonly JsonObject[] {
  const said = parts.filter((part) => part.is !== 'tool_result').map(ofUser);
  if (said.length === 0 && parts.length > 0) return [];
  const texts = said.map(textOf).filter((text) => text !== undefined);
  if (texts.length === said.length) return [{ role, content: texts.join(APART) }];
  if (role === 'system') throw new NotTranslatable('system', 'takes text alone at this upstream');
  return [{ role, content: said.map(writeShown) }];
}

function ofUser(part: Part): Shown {
  if (part.is === 'text' || part.is === 'image' || part.is === 'document' || part.is === 'audio') return part;
  throw new NotTranslatable(part.is, 'cannot stand in a message of the user at this upstream');
}

/** Returns a document as text; undefined if it is not text. */
function textOf(part: Shown): string | undefined {
  if (part.is === 'text') return part.text;
  if (part.is !== 'document' || !('text' in part.source)) return undefined;
  return part.name === undefined ? part.source.text : `${part.name}${APART}${part.source.text}`;
}

function writeResult({ id, parts }: ToolResultPart): JsonObject {
  const texts = parts.map(textOf).filter((text) => text !== undefined);
  return { role: 'tool', tool_call_id: id, content: texts.join(APART) };
}

function shownBy({ id, parts }: ToolResultPart): readonly Shown[] {
  const shown = parts.filter((part) => textOf(part) === undefined);
  return shown.length === 0 ? [] : [{ is: 'text', text: `Shown by the result of the call ${id}:` }, ...shown];
}

function writeShown(part: Shown): JsonObject {
  const text = textOf(part);
  if (text !== undefined) return { type: 'text', text };
  switch (part.is) {
    case 'image':
      return writeImage(part);
    case 'document':
      return writeDocument(part);
    case 'audio':
      return { type: 'input_audio', input_audio: { data: part.base64, format: part.format } };
    default:
      throw new Error(`a part of the kind ${part.is} has no text`);
  }
}

function writeImage({ source, detail }: ImagePart): JsonObject {
  const url = 'url' in source ? source.url : dataUrl(source);
  return { type: 'image_url', image_url: { url, ...(detail !== undefined && { detail }) } };
}

function writeDocument({ source, name }: DocumentPart): JsonObject {
  if (!('base64' in source))
    throw new NotTranslatable('document', 'must stand in the request itself: this upstream fetches no documents');
  const filename = name ?? (source.mediaType === 'application/pdf' ? 'document.pdf' : 'document');
  return { type: 'file', file: { filename, file_data: dataUrl(source) } };
}

function dataUrl({ base64, mediaType }: { readonly base64: string; readonly mediaType: string }): string {
  return `data:${mediaType};base64,${base64}`;
}
