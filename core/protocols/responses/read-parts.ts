import type { JsonObject } from '../../base/json-values';
import type { AudioPart, DocumentPart, ImagePart, Part } from '../../catalog/conversation';
import { listAt, optionalText, optionalWord, sourceOf, textAt } from '../checked';
import { RESPONSES_RULES } from './request';

/** Reads the parts of an item's content, which is a text or a list. Empty text becomes no part. @throws NotTranslatable */
export function readContent(item: JsonObject, name: string, path: string): readonly Part[] {
  const content = item[name];
  if (typeof content === 'string') return content === '' ? [] : [{ kind: 'text', text: content }];
  return listAt(item, name, path).map((part, at) => readPart(part, `${path}.${name}[${at}]`));
}

function readPart(given: unknown, path: string): Part {
  const type = RESPONSES_RULES.carriedType(given, 'content', path);
  const isEcho = type === 'output_text' || type === 'refusal';
  const part = RESPONSES_RULES.carriedMembers(given, `content[${type}]`, path, isEcho);
  switch (type) {
    case 'input_image':
      return readImage(part, path);
    case 'input_file':
      return readDocument(part, path);
    case 'input_audio':
      return readAudio(part, path);
    case 'refusal':
      return { kind: 'refusal', text: textAt(part, 'refusal', path) };
    default:
      return { kind: 'text', text: textAt(part, 'text', path) };
  }
}

const DETAILS = ['low', 'high', 'auto', 'original'] as const;

function readImage(part: JsonObject, path: string): ImagePart {
  const detail = optionalWord(part, 'detail', DETAILS, path);
  const source = sourceOf(textAt(part, 'image_url', path), `${path}.image_url`);
  return { kind: 'image', source, ...(detail !== undefined && detail !== 'original' && { detail }) };
}

/** Reads a document. If the media type is missing, as from some client programs, the bytes count as PDF. */
function readDocument(part: JsonObject, path: string): DocumentPart {
  const url = optionalText(part, 'file_url', path);
  const name = optionalText(part, 'filename', path);
  const named = name === undefined ? {} : { name };
  if (url !== undefined) return { kind: 'document', source: sourceOf(url, `${path}.file_url`), ...named };
  const data = textAt(part, 'file_data', path);
  const source = /^data:/i.test(data)
    ? sourceOf(data, `${path}.file_data`)
    : { base64: data, mediaType: 'application/pdf' };
  return { kind: 'document', source, ...named };
}

function readAudio(part: JsonObject, path: string): AudioPart {
  const audio = RESPONSES_RULES.carriedMembers(part['input_audio'], 'input_audio', `${path}.input_audio`);
  const textOf = (name: string) => textAt(audio, name, `${path}.input_audio`);
  return { kind: 'audio', base64: textOf('data'), format: textOf('format') };
}
