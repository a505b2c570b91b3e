import {
  type DocumentPart,
  type ImagePart,
  NotTranslatable,
  type Part,
  type Signature,
  type Source,
  type TextPart,
  type ToolResultPart,
  type Turn,
} from '../../catalog/conversation';
import { asObject, asText, type JsonObject } from '../../json-values';
import { unseal } from '../seal';
import { carriedOf } from './rules';
import { flagAt, itemsAt, objectAt, optionalTextAt, textAt } from './values';

/** The types of content blocks that each side may have. */
const BLOCKS = {
  system: ['text'],
  user: ['text', 'image', 'document', 'tool_result'],
  assistant: ['text', 'tool_use', 'thinking', 'redacted_thinking'],
  tool_result: ['text', 'image', 'document'],
} as const;

type Side = keyof typeof BLOCKS;
type Block = (typeof BLOCKS)[Side][number];

/** Returns the parts of one side's content: a list of blocks, or a text. */
export function readParts(content: unknown, side: Turn['role'], place: string): readonly Part[] {
  if (typeof content === 'string') return [textPart(content)];
  const blocks = itemsAt(content, place);
  return blocks.flatMap(({ item, place: at }, index): Part[] => {
    const [before, after] = [blocks[index - 1]?.item, blocks[index + 1]?.item];
    if (signatureOfCall(item, after) !== undefined) return [];
    const part = readBlock(item, side, at);
    return part.is === 'tool_call' ? [{ ...part, signature: signatureOfCall(before, item) }] : [part];
  });
}

/** Returns the signature of a tool call, which `write-blocks.ts` puts into a redacted block before the call. */
function signatureOfCall(block: unknown, after: unknown): Signature | undefined {
  const { type, data } = asObject(block) ?? {};
  const isBeforeCall = type === 'redacted_thinking' && asObject(after)?.['type'] === 'tool_use';
  return isBeforeCall ? unseal(data) : undefined;
}

/** Returns the texts of instructions. */
export function readTexts(content: unknown, place: string): readonly TextPart[] {
  return readParts(content, 'system', place) as readonly TextPart[];
}

function readBlock(value: unknown, side: Side, place: string): Part {
  const object = objectAt(value, place);
  const type = textAt(object['type'], `${place}.type`);
  if (!isOf(side, type))
    throw new NotTranslatable(`${place}.type`, `is \`${type}\`, which cannot be carried over here`);
  const { type: _, ...members } = object;
  const block = carriedOf(members, type === 'thinking' ? 'thinking_block' : type, place, side === 'assistant');
  return READERS[type](block, place);
}

function isOf(side: Side, type: string): type is Block {
  return (BLOCKS[side] as readonly string[]).includes(type);
}

const READERS: Readonly<Record<Block, (block: JsonObject, place: string) => Part>> = {
  text: ({ text }, place) => textPart(textAt(text, `${place}.text`)),
  image: ({ source }, place): ImagePart => ({ is: 'image', source: readImage(source, `${place}.source`) }),
  document: readDocument,
  tool_use: ({ id, name, input }, place) => ({
    is: 'tool_call',
    id: textAt(id, `${place}.id`),
    name: textAt(name, `${place}.name`),
    input: JSON.stringify(input === undefined ? {} : objectAt(input, `${place}.input`)),
  }),
  tool_result: readToolResult,
  thinking: ({ thinking, signature }) => ({ is: 'reasoning', text: asText(thinking), signature: unseal(signature) }),
  redacted_thinking: ({ data }) => ({ is: 'reasoning', text: '', signature: unseal(data) }),
};

function textPart(text: string): TextPart {
  return { is: 'text', text };
}

function readToolResult(block: JsonObject, place: string): ToolResultPart {
  return {
    is: 'tool_result',
    id: textAt(block['tool_use_id'], `${place}.tool_use_id`),
    parts: readResult(block['content'], `${place}.content`),
    isError: flagAt(block['is_error'], `${place}.is_error`),
  };
}

function readResult(content: unknown, place: string): ToolResultPart['parts'] {
  if (typeof content === 'string') return [textPart(content)];
  const parts = itemsAt(content, place).map(({ item, place: at }) => readBlock(item, 'tool_result', at));
  return parts as ToolResultPart['parts'];
}

function readImage(value: unknown, place: string): Source {
  const source = objectAt(value, place);
  switch (source['type']) {
    case 'base64':
      return bytesOf(source, place);
    case 'url':
      return { url: textAt(source['url'], `${place}.url`) };
    default:
      return isAtVendor(source, place);
  }
}

function bytesOf(source: JsonObject, place: string): Source {
  return {
    base64: textAt(source['data'], `${place}.data`),
    mediaType: textAt(source['media_type'], `${place}.media_type`),
  };
}

function readDocument({ source, title }: JsonObject, place: string): DocumentPart {
  return {
    is: 'document',
    source: readDocumentSource(source, `${place}.source`),
    name: optionalTextAt(title, `${place}.title`),
  };
}

function readDocumentSource(value: unknown, place: string): DocumentPart['source'] {
  const source = objectAt(value, place);
  switch (source['type']) {
    case 'text':
      return { text: textAt(source['data'], `${place}.data`) };
    case 'content':
      return { text: readContentSource(source['content'], `${place}.content`) };
    case 'base64':
      return bytesOf(source, place);
    case 'url':
      return { url: textAt(source['url'], `${place}.url`), mediaType: 'application/pdf' };
    default:
      return isAtVendor(source, place);
  }
}

function readContentSource(content: unknown, place: string): string {
  const parts = readTexts(content, place);
  return parts.map(({ text }) => text).join('\n');
}

function isAtVendor({ type }: JsonObject, place: string): never {
  const why = type === 'file' ? 'is a file at its vendor' : 'has a type that is not known to the gateway';
  throw new NotTranslatable(place, why);
}
