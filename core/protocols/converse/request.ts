import { asObject, type JsonObject } from '../../base/json-values';
import { parseJson } from '../../base/parse-json';
import {
  type Conversation,
  type DocumentPart,
  type ImagePart,
  NotTranslatable,
  type Part,
  type Tool,
  type Turn,
} from '../../catalog/conversation';
import type { TranslatedCall } from '../../catalog/upstream';
import { jsonOf } from '../../http/raw-json';
import { fitted } from '../fitted';
import { fittedToModel } from '../models';
import { unsealFor } from '../seal';
import { inputObjectOf, schemaOf } from '../text-tools';
import { CONVERSE_FORMS, CONVERSE_UNSUPPORTED } from './limits';

/** Returns the body of a Converse call. @throws NotTranslatable */
export function writeConverseRequest(given: TranslatedCall): JsonObject {
  const conversation = fittedToModel(fitted(given, CONVERSE_UNSUPPORTED, CONVERSE_FORMS), given);
  const call = { ...given, conversation };
  const { instructions, tools } = conversation;
  const system = instructions.map(({ text }) => ({ text }));
  return {
    messages: conversation.turns.map(({ role, parts }) => ({
      role,
      content: parts.flatMap((part) => blocksOf(part, role, call.upstream)),
    })),
    ...(system.length > 0 && { system }),
    inferenceConfig: inferenceOf(conversation),
    ...(tools.length > 0 && { toolConfig: { tools: tools.map(toolOf), ...choiceOf(conversation) } }),
    ...formatOf(conversation),
  };
}

function inferenceOf({ maxTokens, temperature, topP, stop }: Conversation): JsonObject {
  return { maxTokens, temperature, topP, ...(stop.length > 0 && { stopSequences: stop }) };
}

function toolOf(tool: Tool): JsonObject {
  const { name, description, strict } = tool;
  const inputSchema = { json: schemaOf(tool) };
  return { toolSpec: { name, ...(description && { description }), inputSchema, ...(strict === true && { strict }) } };
}

function choiceOf({ toolChoice }: Conversation): JsonObject {
  if (typeof toolChoice === 'object') return { toolChoice: { tool: { name: toolChoice.tool } } };
  return toolChoice === 'required' ? { toolChoice: { any: {} } } : {};
}

/** Writes the output format. Converse expects its schema as a text. */
function formatOf({ outputFormat }: Conversation): JsonObject {
  if (outputFormat?.kind !== 'schema') return {};
  const { name, description } = outputFormat;
  const jsonSchema = { schema: jsonOf(outputFormat.schema), name: name ?? 'answer', description };
  return { outputConfig: { textFormat: { type: 'json_schema', structure: { jsonSchema } } } };
}

function blocksOf(part: Part, side: Turn['role'], upstream: string): readonly JsonObject[] {
  switch (part.kind) {
    case 'text':
    case 'refusal':
      return [{ text: part.text }];
    case 'image':
    case 'document':
      if (side === 'assistant') throw new NotTranslatable(part.kind, 'has no place in an answer there');
      return [mediaOf(part)];
    case 'tool_call':
      return [{ toolUse: { toolUseId: part.id, name: part.name, input: inputObjectOf(part) } }];
    case 'tool_result': {
      const content = part.parts.map((each) => (each.kind === 'text' ? { text: each.text } : mediaOf(each)));
      const status = part.isError === true ? 'error' : 'success';
      return [{ toolResult: { toolUseId: part.id, content, status } }];
    }
    case 'reasoning':
      return reasoningOf(unsealFor(part.signature, upstream, 'converse'), part.text);
    default:
      throw new NotTranslatable(part.kind, 'has no place there');
  }
}

/** Returns the reasoning block whose signature `ConverseReader` stored in `value`. */
function reasoningOf(value: string | undefined, text: string): readonly JsonObject[] {
  const kept = value === undefined ? undefined : asObject(parseJson(value));
  if (kept === undefined) return [];
  const { signature, redactedContent } = kept;
  if (redactedContent !== undefined) return [{ reasoningContent: { redactedContent } }];
  return [{ reasoningContent: { reasoningText: { text, signature } } }];
}

function mediaOf(part: ImagePart | DocumentPart): JsonObject {
  const { source } = part;
  if ('url' in source) throw new NotTranslatable(part.kind, 'is fetched by no model there: send its data');
  if (part.kind === 'document' && 'text' in source)
    return {
      document: { format: 'txt', name: nameOf(part), source: { bytes: Buffer.from(source.text).toString('base64') } },
    };
  if (!('base64' in source)) throw new NotTranslatable(part.kind, 'has a type that is not taken there');
  const format = FORMATS[part.kind].get(source.mediaType.toLowerCase());
  if (format === undefined) throw new NotTranslatable(part.kind, 'has a type that is not taken there');
  const media = { format, source: { bytes: source.base64 } };
  return part.kind === 'image' ? { image: media } : { document: { ...media, name: nameOf(part) } };
}

/** Returns a name for a document, because Converse requires one. Characters that Converse does not accept become hyphens. */
function nameOf({ name = '' }: DocumentPart): string {
  const plain = name
    .replaceAll(/[^A-Za-z0-9\-()[\] ]/g, '-')
    .replaceAll(/ {2,}/g, ' ')
    .slice(0, 200);
  return plain.trim() === '' ? 'document' : plain;
}

const FORMATS = {
  image: new Map([
    ['image/png', 'png'],
    ['image/jpeg', 'jpeg'],
    ['image/gif', 'gif'],
    ['image/webp', 'webp'],
  ]),
  document: new Map([
    ['application/pdf', 'pdf'],
    ['text/plain', 'txt'],
    ['text/markdown', 'md'],
    ['text/html', 'html'],
    ['text/csv', 'csv'],
  ]),
} as const;
