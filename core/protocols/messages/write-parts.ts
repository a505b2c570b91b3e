import { asObject, asText, type JsonObject } from '../../base/json-values';
import { parseJson } from '../../base/parse-json';
import {
  type DocumentPart,
  type ImagePart,
  NotTranslatable,
  type Part,
  type ReasoningPart,
  type Source,
  type ToolCallPart,
  type ToolResultPart,
} from '../../catalog/conversation';
import type { TranslatedCall } from '../../catalog/upstream';
import { unsealFor } from '../seal';
import { inputObjectOf } from '../text-tools';

/** Returns a part as a content block, or nothing for reasoning of another upstream. */
export function writePart(part: Part, call: TranslatedCall): readonly JsonObject[] {
  switch (part.kind) {
    case 'text':
    case 'refusal':
      return [{ type: 'text', text: part.text }];
    case 'image':
      return [writeImage(part)];
    case 'document':
      return [writeDocument(part)];
    case 'audio':
      throw new NotTranslatable('audio', 'has no place in Messages');
    case 'tool_call':
      return [writeToolCall(part)];
    case 'tool_result':
      return [writeToolResult(part, call)];
    case 'reasoning':
      return writeReasoning(part, call);
  }
}

const IMAGES: readonly string[] = ['image/jpeg', 'image/png', 'image/gif', 'image/webp'];

function writeImage({ source }: ImagePart): JsonObject {
  if ('url' in source) return { type: 'image', source: urlOf(source.url, 'image') };
  if (!IMAGES.includes(source.mediaType))
    throw new NotTranslatable('image', `has the type ${source.mediaType}, which Messages does not take`);
  return { type: 'image', source: bytesOf(source) };
}

function urlOf(url: string, feature: 'image' | 'document'): JsonObject {
  if (!/^https?:/i.test(url)) throw new NotTranslatable(feature, 'has an address at which no vendor can fetch it');
  return { type: 'url', url };
}

function bytesOf({ base64, mediaType }: Extract<Source, { base64: string }>): JsonObject {
  return { type: 'base64', media_type: mediaType, data: base64 };
}

function writeDocument({ source, name }: DocumentPart): JsonObject {
  return { type: 'document', source: documentOf(source), ...(name && { title: name }) };
}

function documentOf(source: DocumentPart['source']): JsonObject {
  if ('text' in source) return plainText(source.text);
  const { mediaType = 'application/pdf' } = source;
  if (mediaType === 'application/pdf')
    return 'url' in source ? urlOf(source.url, 'document') : bytesOf(source as Bytes);
  if (mediaType === 'text/plain' && 'base64' in source)
    return plainText(Buffer.from(source.base64, 'base64').toString());
  throw new NotTranslatable('document', `has the type ${mediaType}, which Messages does not take`);
}

type Bytes = Extract<Source, { base64: string }>;

function plainText(data: string): JsonObject {
  return { type: 'text', media_type: 'text/plain', data };
}

function writeToolCall(part: ToolCallPart): JsonObject {
  return { type: 'tool_use', id: part.id, name: part.name, input: inputObjectOf(part) };
}

function writeToolResult({ id, parts, isError }: ToolResultPart, call: TranslatedCall): JsonObject {
  const content = parts.flatMap((part) => writePart(part, call));
  return {
    type: 'tool_result',
    tool_use_id: id,
    ...(content.length > 0 && { content }),
    ...(isError === true && { is_error: true }),
  };
}

/** Returns reasoning only for the upstream that produced it, because a vendor refuses the signatures of other vendors. */
function writeReasoning({ text, signature }: ReasoningPart, call: TranslatedCall): readonly JsonObject[] {
  const value = unsealFor(signature, call.upstream, 'messages');
  if (value === undefined) return [];
  const redacted = asText(asObject(parseJson(value))?.['redacted_thinking']);
  if (redacted !== '') return [{ type: 'redacted_thinking', data: redacted }];
  return [{ type: 'thinking', thinking: text, signature: value }];
}

/** Returns the signature value for a redacted block. It is JSON, which a plain signature never is, so `writeReasoning` recognizes it. */
export function redactedValue(data: string): string {
  return JSON.stringify({ redacted_thinking: data });
}
