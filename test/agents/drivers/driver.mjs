import { readFile } from 'node:fs/promises';

/**
 * Shared parts of the SDKs' drivers. A driver is a small program, like a user of the SDK would write it, that has one conversation and prints its
 * result as one line of JSON.
 */

/** @typedef {{ feature: string, prompt: string, model: string, protocol: string }} Task */

/** The tool that the program offers, as a JSON Schema. */
export const READ_FILE = {
  name: 'read_file',
  description: 'Returns the text of a file.',
  schema: {
    type: 'object',
    properties: { path: { type: 'string' } },
    required: ['path'],
    additionalProperties: false,
  },
};

/** @param {{ path: string }} input */
export const readFileTool = ({ path }) => readFile(path, 'utf8');

export const readImage = () => readFile('image.png', 'base64');

/** The part of the prompt that stays the same between calls, long enough that vendors cache it. */
export const INSTRUCTIONS = `You answer questions about files. ${'Read a file before you speak of it. '.repeat(150)}`;

/**
 * @param {{
 *   converse(task: Task): Promise<{ text: string, usage?: { input: number, output: number } }>,
 *   models?(task: Task): Promise<string[]>,
 * }} program
 */
export async function drive({ converse, models }) {
  const task = JSON.parse(process.argv[2] ?? '{}');
  try {
    const said = task.feature === 'model list' ? { text: '', models: await models?.(task) } : await converse(task);
    print({ succeeded: true, ...said });
  } catch (error) {
    print({ succeeded: false, text: '', error: wordsOf(error) });
    process.exitCode = 1;
  }
}

function wordsOf(error) {
  const { message = String(error), cause, lastError, responseBody } = error ?? {};
  return [message, responseBody, lastError && wordsOf(lastError), cause && wordsOf(cause)].filter(Boolean).join(' / ');
}

function print(said) {
  process.stdout.write(`${JSON.stringify(said)}\n`);
}
