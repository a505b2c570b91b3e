import { createHash } from 'node:crypto';
import type { Json } from '../prompt';

export const DEMO_EMBEDDING = 'demo-embedding';

/** One input of an embeddings call: a text, or its tokens. */
type Input = string | readonly number[];

const DIMENSIONS = 8;
const CHARACTERS_PER_TOKEN = 4;

/** Returns the inputs of an embeddings call, or a text that says what is wrong with them. */
export function inputsOf({ input }: Json): readonly Input[] | string {
  const inputs = typeof input === 'string' || isTokens(input) ? [input] : input;
  const areInputs =
    Array.isArray(inputs) && inputs.length > 0 && inputs.every((each) => isText(each) || isTokens(each));
  return areInputs ? (inputs as readonly Input[]) : 'input: a text, tokens, or a list of these is required';
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function isTokens(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.length > 0 && value.every(Number.isInteger);
}

/** Writes the body of an answer of the Embeddings protocol. The vectors are no real embeddings, but equal inputs get equal vectors. */
export function embeddingsBody(body: Json, inputs: readonly Input[]): Record<string, unknown> {
  const wanted = body['dimensions'];
  const dimensions = typeof wanted === 'number' && wanted > 0 ? wanted : DIMENSIONS;
  const tokens = inputs.reduce((sum, each) => sum + tokensOf(each), 0);
  const data = inputs.map((each, index) => {
    const vector = vectorOf(each, dimensions);
    const embedding =
      body['encoding_format'] === 'base64' ? Buffer.from(vector.buffer).toString('base64') : [...vector];
    return { object: 'embedding', index, embedding };
  });
  return { object: 'list', data, model: DEMO_EMBEDDING, usage: { prompt_tokens: tokens, total_tokens: tokens } };
}

function tokensOf(input: Input): number {
  return typeof input === 'string' ? Math.ceil(input.length / CHARACTERS_PER_TOKEN) : input.length;
}

/** Makes a vector of length 1 from a hash of the input. */
function vectorOf(input: Input, dimensions: number): Float32Array {
  const bytes = createHash('shake256', { outputLength: dimensions }).update(JSON.stringify(input)).digest();
  const numbers = [...bytes].map((byte) => byte - 127.5);
  const length = Math.hypot(...numbers);
  return Float32Array.from(numbers, (each) => each / length);
}
