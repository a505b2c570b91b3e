import { asArray, asObject, asText, type JsonObject } from '../../base/json-values';
import { parseJson } from '../../base/parse-json';
import {
  type DocumentPart,
  type ImagePart,
  NotTranslatable,
  type Part,
  type Source,
  type ToolCallPart,
  type ToolResultPart,
  type Turn,
} from '../../catalog/conversation';
import type { TranslatedCall } from '../../catalog/upstream';
import { unsealFor } from '../seal';
import { jsonInputOf } from '../text-tools';

/** Returns the input items that express a conversation. @throws NotTranslatable */
export function writeItems({ conversation, upstream }: TranslatedCall): readonly JsonObject[] {
  return conversation.turns.flatMap((turn) => writeTurn(turn, upstream));
}

/** Writes a turn as items. Each call, result and reasoning becomes an item of its own. Adjacent parts of other kinds become one message. */
function writeTurn({ role, parts }: Turn, upstream: string): readonly JsonObject[] {
  const items: JsonObject[] = [];
  let content: JsonObject[] | undefined;
  for (const part of parts) {
    if (part.kind === 'tool_call' || part.kind === 'tool_result' || part.kind === 'reasoning') {
      content = undefined;
      items.push(...writeItem(part, upstream));
      continue;
    }
    if (content === undefined) {
      content = [];
      items.push({ type: 'message', role: role === 'system' ? 'developer' : role, content });
    }
    content.push(role === 'assistant' ? saidPart(part) : givenPart(part));
  }
  return items;
}

function writeItem(part: Extract<Part, { kind: 'tool_call' | 'tool_result' | 'reasoning' }>, upstream: string) {
  if (part.kind === 'tool_call') return [writeCall(part)];
  if (part.kind === 'tool_result') return [writeResult(part)];
  return writeReasoning(unsealFor(part.signature, upstream, 'responses') ?? '');
}

/**
 * Writes a reasoning item from the value of a signature. Clients can forge the value, so the vendor gets only known members and no
 * reference to a stored item.
 */
function writeReasoning(sealed: string): readonly JsonObject[] {
  const item = asObject(parseJson(sealed));
  const encrypted_content = asText(item?.['encrypted_content']);
  if (encrypted_content === '') return [];
  const id = asText(item?.['id']);
  const summary = asArray(item?.['summary']).map((part) => asText(asObject(part)?.['text']));
  return [
    {
      type: 'reasoning',
      ...(id !== '' && { id }),
      summary: summary.map((text) => ({ type: 'summary_text', text })),
      encrypted_content,
    },
  ];
}

function writeCall(part: ToolCallPart): JsonObject {
  const { id, name, input } = part;
  if (part.isText === true) return { type: 'custom_tool_call', call_id: id, name, input };
  return { type: 'function_call', call_id: id, name, arguments: jsonInputOf(part) };
}

function writeResult({ id, parts, isText }: ToolResultPart): JsonObject {
  const type = isText === true ? 'custom_tool_call_output' : 'function_call_output';
  return { type, call_id: id, output: outputOf(parts) };
}

function outputOf(parts: ToolResultPart['parts']): unknown {
  const [first] = parts;
  if (first === undefined) return '';
  return parts.length === 1 && first.kind === 'text' ? first.text : parts.map(givenPart);
}

function saidPart(part: Part): JsonObject {
  if (part.kind === 'text') return { type: 'output_text', text: part.text, annotations: [] };
  if (part.kind === 'refusal') return { type: 'refusal', refusal: part.text };
  throw new NotTranslatable(part.kind, 'has no place in an answer there');
}

function givenPart(part: Part): JsonObject {
  switch (part.kind) {
    case 'text':
      return { type: 'input_text', text: part.text };
    case 'image':
      return imageOf(part);
    case 'document':
      return documentOf(part);
    case 'audio':
      if (part.format !== 'wav' && part.format !== 'mp3')
        throw new NotTranslatable('audio', `has the format "${part.format}", and only wav and mp3 go there`);
      return { type: 'input_audio', input_audio: { data: part.base64, format: part.format } };
    default:
      throw new NotTranslatable(part.kind, 'has no place in a message of the user there');
  }
}

function imageOf({ source, detail = 'auto' }: ImagePart): JsonObject {
  return { type: 'input_image', image_url: urlOf(source), detail };
}

/** Returns a document part. Inline data needs a file name; a URL needs none. */
function documentOf({ source, name }: DocumentPart): JsonObject {
  if ('text' in source)
    return { type: 'input_text', text: name === undefined ? source.text : `${name}\n\n${source.text}` };
  if ('url' in source) return { type: 'input_file', file_url: source.url };
  return { type: 'input_file', filename: name ?? nameFor(source.mediaType), file_data: urlOf(source) };
}

/** Returns a file name for a media type, because vendors derive the type from the extension. */
function nameFor(mediaType: string): string {
  return `document.${mediaType === 'text/plain' ? 'txt' : mediaType.slice(mediaType.lastIndexOf('/') + 1)}`;
}

function urlOf(source: Source): string {
  return 'url' in source ? source.url : `data:${source.mediaType};base64,${source.base64}`;
}
