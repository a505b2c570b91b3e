import { randomUUID } from 'node:crypto';
import type { ModelAnswer, ToolCall } from './dialects/answer';
import type { Json, Prompt, Tool } from './prompt';

export const DEMO_MODEL = 'demo-model';

const CHARACTERS_PER_TOKEN = 4;
const TOKENS_PER_IMAGE = 1_600;
const MAX_QUOTED = 200;

/** Returns the demo's answer to a prompt. No model writes it, as every answer says. */
export function answerPrompt(prompt: Prompt): ModelAnswer {
  const tool = wantedTool(prompt);
  const toolCalls = tool === undefined ? [] : [callOf(tool)];
  const { pieces, whole } = cutAt(prompt.maxTokens, piecesOf(tool === undefined ? speak(prompt) : ''));
  return {
    id: `demo_${randomUUID().replaceAll('-', '')}`,
    model: DEMO_MODEL,
    createdAt: Math.floor(Date.now() / 1000),
    texts: pieces,
    toolCalls,
    stop: tool !== undefined ? 'tool' : whole ? 'end' : 'length',
    usage: {
      input: tokensOf(prompt.textLength) + prompt.images * TOKENS_PER_IMAGE,
      output: tokensOf(pieces.join('').length + (toolCalls.length === 0 ? 0 : JSON.stringify(toolCalls).length)),
      cacheRead: 0,
      cacheWrite: 0,
    },
  };
}

function speak({ lastUserText, toolResult }: Prompt): string {
  const said =
    toolResult === undefined ? `You wrote: "${quoted(lastUserText)}"` : `The tool said: "${quoted(toolResult)}"`;
  return (
    `This answer comes from Tollgate's demo upstream: there is no real model behind it. ${said} ` +
    'The call was routed, held, counted and charged like any other.'
  );
}

function quoted(text: string): string {
  return text.length <= MAX_QUOTED ? text : `${text.slice(0, MAX_QUOTED)}…`;
}

/** Returns the tool that the client requires, or the one whose name is in the text. The word "tool" in the text requests any tool. */
function wantedTool({ tools, toolChoice, lastUserText, toolResult }: Prompt): Tool | undefined {
  if (toolChoice === 'none') return undefined;
  if (toolChoice !== undefined && toolChoice !== 'any') return tools.find(({ name }) => name === toolChoice);
  if (toolChoice === 'any') return tools[0];
  if (toolResult !== undefined) return undefined;
  const text = lastUserText.toLowerCase();
  return (
    tools.find(({ name }) => text.includes(name.toLowerCase())) ?? (/\btools?\b/.test(text) ? tools[0] : undefined)
  );
}

function callOf({ name, schema }: Tool): ToolCall {
  return { id: `call_${randomUUID().slice(0, 8)}`, name, input: object(exampleOf({ ...schema, type: 'object' })) };
}

/** Returns a value that fits the simple parts of a JSON Schema. An object gets only its required members. */
function exampleOf(schema: Json): unknown {
  const { type, enum: choices, properties, required } = schema;
  if (Array.isArray(choices)) return choices[0];
  if (type === 'object') {
    const names = Array.isArray(required) ? required.map(String) : [];
    return Object.fromEntries(names.map((name) => [name, exampleOf(object(object(properties)[name]))]));
  }
  if (type === 'array') return [];
  if (type === 'integer' || type === 'number') return 1;
  return type === 'boolean' ? true : 'example';
}

/** Splits a text into words, each with the space before it, as models send tokens. */
function piecesOf(text: string): string[] {
  return text.match(/\s*\S+/g) ?? [];
}

function cutAt(maxTokens: number | undefined, pieces: readonly string[]): { pieces: string[]; whole: boolean } {
  const kept: string[] = [];
  let length = 0;
  for (const piece of pieces) {
    length += piece.length;
    if (maxTokens !== undefined && tokensOf(length) > maxTokens) return { pieces: kept, whole: false };
    kept.push(piece);
  }
  return { pieces: kept, whole: true };
}

function tokensOf(length: number): number {
  return Math.ceil(length / CHARACTERS_PER_TOKEN);
}

function object(value: unknown): Json {
  return typeof value === 'object' && value !== null ? (value as Json) : {};
}
