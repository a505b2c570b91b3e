import type { AudioPart, DocumentPart, ImagePart } from '../../catalog/conversation';
import { optionalText, optionalWord, sourceOf, textAt } from '../checked';
import { CHAT_RULES } from './request';

/** Reads an image. @throws NotTranslatable */
export function readImage(given: unknown, path: string): ImagePart {
  const image = CHAT_RULES.carriedMembers(given, 'image_url', path);
  const detail = optionalWord(image, 'detail', ['low', 'high', 'auto'], path);
  return { kind: 'image', source: sourceOf(textAt(image, 'url', path), `${path}.url`), ...(detail && { detail }) };
}

/** Reads a document. If the media type is missing, as from some client programs, the bytes count as PDF. */
export function readDocument(given: unknown, path: string): DocumentPart {
  const file = CHAT_RULES.carriedMembers(given, 'file', path);
  const data = textAt(file, 'file_data', path);
  const name = optionalText(file, 'filename', path);
  const source = /^(?:data|https?):/i.test(data)
    ? sourceOf(data, `${path}.file_data`)
    : { base64: data, mediaType: 'application/pdf' };
  return { kind: 'document', source, ...(name !== undefined && { name }) };
}

/** Reads an audio part. @throws NotTranslatable */
export function readAudio(given: unknown, path: string): AudioPart {
  const audio = CHAT_RULES.carriedMembers(given, 'input_audio', path);
  return { kind: 'audio', base64: textAt(audio, 'data', path), format: textAt(audio, 'format', path) };
}
