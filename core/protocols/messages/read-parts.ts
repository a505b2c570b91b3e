import { asObject, asText, type JsonObject } from '../../base/json-values';
import {
  type DocumentPart,
  type ImagePart,
  NotTranslatable,
  type Part,
  type Source,
  type TextPart,
  type ToolResultPart,
  type Turn,
} from '../../catalog/conversation';
import { jsonOf } from '../../http/raw-json';
import { booleanAt, listAt, objectAt, optionalObject, optionalText, textAt } from '../checked';
import { unseal } from '../seal';
import { memberPath } from '../translation-rules';
import { MESSAGES_RULES } from './request';

/** The types of content blocks that messages of each role may have. */
const BLOCKS = {
  system: ['text'],
  user: ['text', 'image', 'document', 'tool_result'],
  assistant: ['text', 'tool_use', 'thinking', 'redacted_thinking'],
  tool_result: ['text', 'image', 'document', 'tool_reference'],
} as const;

type Side = keyof typeof BLOCKS;
type Block = (typeof BLOCKS)[Side][number];

/** Returns the parts of a message's content, which is a list of blocks or a text; `side` is the message's role. */
export function readParts(object: JsonObject, name: string, side: Turn['role'], place = ''): readonly Part[] {
  const content = object[name];
  if (typeof content === 'string') return [textPart(content)];
  return listAt(object, name, place).map((block, at) => readBlock(block, side, `${memberPath(place, name)}[${at}]`));
}

/** Returns the texts of system instructions. */
export function readTexts(object: JsonObject, name: string, place = ''): readonly TextPart[] {
  return readParts(object, name, 'system', place) as readonly TextPart[];
}

function readBlock(value: unknown, side: Side, place: string): Part {
  const { type: _, ...members } = asObject(value) ?? {};
  const type = textAt(asObject(value) ?? {}, 'type', place);
  if (!isOf(side, type))
    throw new NotTranslatable(`${place}.type`, `is \`${type}\`, which cannot be carried over here`);
  return READERS[type](MESSAGES_RULES.carriedMembers(members, `content[${type}]`, place, side === 'assistant'), place);
}

function isOf(side: Side, type: string): type is Block {
  return (BLOCKS[side] as readonly string[]).includes(type);
}

const READERS: Readonly<Record<Block, (block: JsonObject, place: string) => Part>> = {
  text: (block, place) => textPart(textAt(block, 'text', place)),
  image: (block, place): ImagePart => ({
    kind: 'image',
    source: readImage(sourceAt(block, place), `${place}.source`),
  }),
  document: readDocument,
  tool_use: (block, place) => ({
    kind: 'tool_call',
    id: textAt(block, 'id', place),
    name: textAt(block, 'name', place),
    input: jsonOf(optionalObject(block, 'input', place) ?? {}),
  }),
  tool_result: readToolResult,
  tool_reference: (block, place) => textPart(`This tool can be called now: ${textAt(block, 'tool_name', place)}`),
  thinking: ({ thinking, signature }) => ({ kind: 'reasoning', text: asText(thinking), signature: unseal(signature) }),
  redacted_thinking: ({ data }) => ({ kind: 'reasoning', text: '', signature: unseal(data) }),
};

function textPart(text: string): TextPart {
  return { kind: 'text', text };
}

function readToolResult(block: JsonObject, place: string): ToolResultPart {
  return {
    kind: 'tool_result',
    id: textAt(block, 'tool_use_id', place),
    parts: readResult(block, place),
    isError: booleanAt(block, 'is_error', place),
  };
}

function readResult(result: JsonObject, place: string): ToolResultPart['parts'] {
  const { content } = result;
  if (typeof content === 'string') return [textPart(content)];
  const blocks = listAt(result, 'content', place);
  const parts = blocks.map((block, at) => readBlock(block, 'tool_result', `${place}.content[${at}]`));
  return parts as ToolResultPart['parts'];
}

function readImage(source: JsonObject, place: string): Source {
  switch (source['type']) {
    case 'base64':
      return bytesOf(source, place);
    case 'url':
      return { url: textAt(source, 'url', place) };
    default:
      throw ofUnknownType(place);
  }
}

function bytesOf(source: JsonObject, place: string): Source {
  return {
    base64: textAt(source, 'data', place),
    mediaType: textAt(source, 'media_type', place),
  };
}

function readDocument(block: JsonObject, place: string): DocumentPart {
  return {
    kind: 'document',
    source: readDocumentSource(sourceAt(block, place), `${place}.source`),
    name: optionalText(block, 'title', place),
  };
}

function readDocumentSource(source: JsonObject, place: string): DocumentPart['source'] {
  switch (source['type']) {
    case 'text':
      return { text: textAt(source, 'data', place) };
    case 'content':
      return {
        text: readTexts(source, 'content', place)
          .map(({ text }) => text)
          .join('\n'),
      };
    case 'base64':
      return bytesOf(source, place);
    case 'url':
      return { url: textAt(source, 'url', place), mediaType: 'application/pdf' };
    default:
      throw ofUnknownType(place);
  }
}

/** Returns the source of a block. Refuses members that the request table does not have for a source, because translation would lose them. */
function sourceAt(block: JsonObject, place: string): JsonObject {
  const source = objectAt(block, 'source', place);
  if (source['type'] === 'file') throw new NotTranslatable(`${place}.source`, 'is a file at its vendor');
  return MESSAGES_RULES.carriedMembers(source, 'source', `${place}.source`);
}

function ofUnknownType(place: string): NotTranslatable {
  return new NotTranslatable(place, 'has a type that is not known to the gateway');
}
