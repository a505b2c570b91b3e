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
import { unsealFor } from '../seal';
import { jsonInputOf } from '../text-tools';
import { type KeptReasoning, readKept } from './kept-reasoning';
import { REASONING_MEMBERS } from './read-choice';

/** The separator between separate texts that are joined into one. Many upstreams accept only a text, not a list of texts. */
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

/** Groups consecutive turns of the assistant, and the other turns between them. Vendors want all tool calls in one message, followed by their results. */
function runsOf(turns: readonly Turn[]): readonly (readonly Turn[])[] {
  const runs: Turn[][] = [];
  for (const turn of turns) {
    const run = runs.at(-1);
    if (run !== undefined && isAssistant(run[0]) === isAssistant(turn)) run.push(turn);
    else runs.push([turn]);
  }
  return runs;
}

/** Writes a run of the assistant's turns as one message. A run that has only reasoning gets no message. */
function writeAnswer(run: readonly Turn[], upstream: string): readonly JsonObject[] {
  const calls: JsonObject[] = [];
  const texts: string[] = [];
  let refusal = '';
  for (const { parts } of run) {
    const said = parts.filter((part) => part.kind !== 'reasoning').map(ofAssistant);
    append(calls, writeCalls(parts, upstream));
    refusal += joined(said.filter((part) => part.kind === 'refusal'));
    if (said.some((part) => part.kind === 'text')) texts.push(joined(said.filter((part) => part.kind === 'text')));
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

/**
 * Returns the reasoning that this upstream produced, in the member in which the upstream sent it. Reasoning in other members is not
 * written, because clients may forge signatures.
 */
function reasoningOf(run: readonly Turn[], upstream: string): JsonObject {
  const parts = run.flatMap((turn) => turn.parts.filter((part) => part.kind === 'reasoning'));
  const from = (member: string) => parts.filter(({ signature }) => unsealFor(signature, upstream, 'chat') === member);
  const said = REASONING_MEMBERS.map((member) => [member, joined(from(member))] as const);
  const details = parts.flatMap((part) => keptBy(part, upstream).reasoning_details ?? []);
  return {
    ...Object.fromEntries(said.filter(([, text]) => text !== '')),
    ...(details.length > 0 && { reasoning_details: details }),
  };
}

function keptBy({ signature }: ReasoningPart, upstream: string): KeptReasoning {
  return readKept(unsealFor(signature, upstream, 'chat'));
}

/** Writes the tool calls of a turn. A signature before a call becomes the call's `extra_content`. */
function writeCalls(parts: readonly Part[], upstream: string): readonly JsonObject[] {
  const calls: JsonObject[] = [];
  let extra: JsonObject | undefined;
  for (const part of parts) {
    if (part.kind === 'reasoning') extra = keptBy(part, upstream).extra_content ?? extra;
    if (part.kind !== 'tool_call') continue;
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
  if (part.kind === 'text' || part.kind === 'refusal' || part.kind === 'tool_call') return part;
  throw new NotTranslatable(part.kind, 'cannot stand in a message of the assistant at this upstream');
}

function writeCall(part: ToolCallPart): JsonObject {
  const { id, name, input, isText } = part;
  if (isText === true) return { id, type: 'custom', custom: { name, input } };
  return { id, type: 'function', function: { name, arguments: jsonInputOf(part) } };
}

type Shown = TextPart | ImagePart | DocumentPart | AudioPart;

/**
 * Writes consecutive turns of the user, with tool results first. A tool message accepts only text, so the result's images and documents
 * follow in a message of the user.
 */
function writeAsked(run: readonly Turn[]): readonly JsonObject[] {
  const results = run.flatMap(({ parts }) => parts.filter((part) => part.kind === 'tool_result'));
  const shown = results.flatMap(shownBy);
  return [
    ...results.map(writeResult),
    ...(shown.length === 0 ? [] : [{ role: 'user', content: shown.map(writeShown) }]),
    ...run.flatMap(writeTurn),
  ];
}

function writeTurn({ role, parts }: Turn): readonly JsonObject[] {
  const said = parts.filter((part) => part.kind !== 'tool_result').map(ofUser);
  if (said.length === 0 && parts.length > 0) return [];
  const texts = said.map(textOf).filter((text) => text !== undefined);
  if (texts.length === said.length) return [{ role, content: texts.join(APART) }];
  if (role === 'system') throw new NotTranslatable('system', 'takes text alone at this upstream');
  return [{ role, content: said.map(writeShown) }];
}

function ofUser(part: Part): Shown {
  if (part.kind === 'text' || part.kind === 'image' || part.kind === 'document' || part.kind === 'audio') return part;
  throw new NotTranslatable(part.kind, 'cannot stand in a message of the user at this upstream');
}

/** Returns the text of a document; undefined if it is not a text document. */
function textOf(part: Shown): string | undefined {
  if (part.kind === 'text') return part.text;
  if (part.kind !== 'document' || !('text' in part.source)) return undefined;
  return part.name === undefined ? part.source.text : `${part.name}${APART}${part.source.text}`;
}

function writeResult({ id, parts }: ToolResultPart): JsonObject {
  const texts = parts.map(textOf).filter((text) => text !== undefined);
  return { role: 'tool', tool_call_id: id, content: texts.join(APART) };
}

function shownBy({ id, parts }: ToolResultPart): readonly Shown[] {
  const shown = parts.filter((part) => textOf(part) === undefined);
  return shown.length === 0 ? [] : [{ kind: 'text', text: `Shown by the result of the call ${id}:` }, ...shown];
}

function writeShown(part: Shown): JsonObject {
  const text = textOf(part);
  if (text !== undefined) return { type: 'text', text };
  switch (part.kind) {
    case 'image':
      return writeImage(part);
    case 'document':
      return writeDocument(part);
    case 'audio':
      return { type: 'input_audio', input_audio: { data: part.base64, format: part.format } };
    default:
      throw new Error(`a part of the kind ${part.kind} has no text`);
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
