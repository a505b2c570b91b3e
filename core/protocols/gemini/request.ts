import type { JsonObject } from '../../base/json-values';
import {
  type Conversation,
  type DocumentPart,
  type ImagePart,
  NotTranslatable,
  type OutputFormat,
  type Part,
  type Source,
  type Tool,
  type ToolCallPart,
  type ToolResultPart,
  type Turn,
} from '../../catalog/conversation';
import type { TranslatedCall } from '../../catalog/upstream';
import { budgetOf, effortOf } from '../effort';
import { fitted } from '../fitted';
import { unsealFor } from '../seal';
import { inputObjectOf, schemaOf } from '../text-tools';
import { GEMINI_FORMS, GEMINI_UNSUPPORTED } from './limits';

/** Returns the body of a generateContent call. @throws NotTranslatable */
export function writeGeminiRequest(given: TranslatedCall): JsonObject {
  const conversation = fitted(given, GEMINI_UNSUPPORTED, GEMINI_FORMS);
  const call = { ...given, conversation };
  const { instructions, tools } = conversation;
  return {
    ...(instructions.length > 0 && { systemInstruction: { parts: instructions.map(({ text }) => ({ text })) } }),
    contents: contentsOf(call),
    ...(tools.length > 0 && { tools: [{ functionDeclarations: tools.map(declarationOf) }] }),
    ...(tools.length > 0 && { toolConfig: { functionCallingConfig: callingOf(conversation) } }),
    generationConfig: generationOf(call),
  };
}

function declarationOf(tool: Tool): JsonObject {
  const { name, description } = tool;
  return { name, ...(description !== undefined && { description }), parametersJsonSchema: schemaOf(tool) };
}

function callingOf({ toolChoice = 'auto', tools }: Conversation): JsonObject {
  if (typeof toolChoice === 'object') return { mode: 'ANY', allowedFunctionNames: [toolChoice.tool] };
  if (toolChoice === 'none') return { mode: 'NONE' };
  if (toolChoice === 'required') return { mode: 'ANY' };
  return { mode: tools.some(({ strict }) => strict === true) ? 'VALIDATED' : 'AUTO' };
}

function generationOf(call: TranslatedCall): JsonObject {
  const { temperature, topP, topK, maxTokens, stop, seed, choices, presencePenalty, frequencyPenalty, outputFormat } =
    call.conversation;
  const thinkingConfig = thinkingOf(call);
  return {
    temperature,
    topP,
    topK,
    seed,
    presencePenalty,
    frequencyPenalty,
    maxOutputTokens: maxTokens,
    ...(choices > 1 && { candidateCount: choices }),
    ...(stop.length > 0 && { stopSequences: stop }),
    ...formatOf(outputFormat),
    ...(thinkingConfig !== undefined && { thinkingConfig }),
  };
}

function formatOf(format: OutputFormat | undefined): JsonObject {
  if (format === undefined) return {};
  const responseMimeType = 'application/json';
  return format.kind === 'json' ? { responseMimeType } : { responseMimeType, responseJsonSchema: format.schema };
}

/** Gemini's words for the levels of reasoning effort. Higher levels than these become `high`. */
const LEVELS: Readonly<Record<string, string>> = { none: 'minimal', minimal: 'minimal', low: 'low', medium: 'medium' };

function thinkingOf({
  conversation: { reasoning, maxTokens },
  reasoning: setting,
  maxOutput,
}: TranslatedCall): JsonObject | undefined {
  if (setting === undefined || reasoning === undefined) return undefined;
  const shown = { includeThoughts: reasoning.isShown !== false };
  if (setting === 'budget') {
    const thinkingBudget = budgetOf(reasoning, maxTokens ?? maxOutput);
    return thinkingBudget === undefined ? shown : { ...shown, thinkingBudget };
  }
  const effort = effortOf(reasoning);
  return effort === undefined ? shown : { ...shown, thinkingLevel: LEVELS[effort] ?? 'high' };
}

function contentsOf(call: TranslatedCall): readonly JsonObject[] {
  const nameOf = toolNames(call.conversation);
  const { turns } = call.conversation;
  if (turns.at(-1)?.role === 'assistant')
    throw new NotTranslatable('isBegun', 'ends with an answer, and the last turn must be one of the user there');
  return turns.map((turn) =>
    turn.role === 'assistant'
      ? { role: 'model', parts: modelParts(turn, call) }
      : { role: 'user', parts: turn.parts.flatMap((part) => partsOf(part, nameOf)) },
  );
}

/** Maps the id of each tool call to its function's name, because a tool result must name the function too. */
function toolNames({ turns }: Conversation): ReadonlyMap<string, string> {
  const calls = turns.flatMap(({ parts }) => parts.filter((part): part is ToolCallPart => part.kind === 'tool_call'));
  return new Map(calls.map(({ id, name }) => [id, name]));
}

/** The signature that Google documents for calls that another model made. Gemini rejects a call without a signature. */
const NO_SIGNATURE = 'skip_thought_signature_validator';

/** Writes the parts of a model's turn. A signature of reasoning moves into the part that follows the reasoning. */
function modelParts({ parts }: Turn, { upstream, reasoning }: TranslatedCall): readonly JsonObject[] {
  const written: JsonObject[] = [];
  let signature: string | undefined;
  let isFirstCall = true;
  for (const part of parts) {
    if (part.kind === 'reasoning') {
      signature = unsealFor(part.signature, upstream, 'gemini') ?? signature;
      continue;
    }
    const isCall = part.kind === 'tool_call';
    const missing = isCall && isFirstCall && reasoning !== undefined ? NO_SIGNATURE : undefined;
    const thoughtSignature = signature ?? missing;
    written.push(
      ...modelPart(part).map((each) => ({ ...each, ...(thoughtSignature !== undefined && { thoughtSignature }) })),
    );
    if (isCall) isFirstCall = false;
    signature = undefined;
  }
  return signature === undefined ? written : [...written, { text: '', thoughtSignature: signature }];
}

function modelPart(part: Part): readonly JsonObject[] {
  switch (part.kind) {
    case 'text':
    case 'refusal':
      return [{ text: part.text }];
    case 'tool_call':
      return [{ functionCall: { id: part.id, name: part.name, args: inputObjectOf(part) } }];
    case 'image':
    case 'document':
      return [mediaOf(part)];
    default:
      throw new NotTranslatable(part.kind, 'has no place in an answer there');
  }
}

function partsOf(part: Part, nameOf: ReadonlyMap<string, string>): readonly JsonObject[] {
  switch (part.kind) {
    case 'text':
      return [{ text: part.text }];
    case 'image':
    case 'document':
      return [mediaOf(part)];
    case 'audio':
      return [{ inlineData: { mimeType: `audio/${part.format}`, data: part.base64 } }];
    case 'tool_result':
      return resultParts(part, nameOf);
    default:
      throw new NotTranslatable(part.kind, 'has no place in a message of the user there');
  }
}

/** Writes a tool result: its text into the response, and its images and documents into parts beside it. */
function resultParts(
  { id, parts, isError }: ToolResultPart,
  nameOf: ReadonlyMap<string, string>,
): readonly JsonObject[] {
  const name = nameOf.get(id);
  const text = parts.flatMap((part) => (part.kind === 'text' ? [part.text] : [])).join('\n');
  const media = parts.flatMap((part) => (part.kind === 'text' ? [] : [mediaOf(part)]));
  return [
    { functionResponse: { id, name, response: isError === true ? { error: text } : { output: text } } },
    ...media,
  ];
}

function mediaOf(part: ImagePart | DocumentPart): JsonObject {
  const { source } = part;
  if ('text' in source) return { text: source.text };
  const mimeType = 'base64' in source ? source.mediaType : (source.mediaType ?? typeByName(source));
  if (mimeType === undefined)
    throw new NotTranslatable(part.kind, 'has an address without a file type, which this vendor requires');
  if (!MEDIA[part.kind].test(mimeType))
    throw new NotTranslatable(part.kind, 'has a type that would be read as something else there');
  if ('base64' in source) return { inlineData: { mimeType, data: source.base64 } };
  return { fileData: { mimeType, fileUri: source.url } };
}

/**
 * The media types that are accepted for images and for documents. The vendor interprets data by its media type alone, and the hold differs
 * by kind. Therefore text must not pass as an image, nor a video as a document.
 */
const MEDIA = { image: /^image\/[\w.+-]+$/i, document: /^(?:application|text)\/[\w.+-]+$/i } as const;

const TYPES: ReadonlyMap<string, string> = new Map([
  ['png', 'image/png'],
  ['jpg', 'image/jpeg'],
  ['jpeg', 'image/jpeg'],
  ['webp', 'image/webp'],
  ['gif', 'image/gif'],
  ['heic', 'image/heic'],
  ['pdf', 'application/pdf'],
  ['txt', 'text/plain'],
]);

function typeByName({ url }: Extract<Source, { url: string }>): string | undefined {
  const path = URL.canParse(url) ? new URL(url).pathname : '';
  return TYPES.get(path.slice(path.lastIndexOf('.') + 1).toLowerCase());
}
