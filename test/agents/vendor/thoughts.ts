import { type Json, object, objectsOf } from './json';

/** A model's reasoning before its answer. */
export interface Thought {
  readonly text: string;
  /** The vendor's signature of the reasoning; Chat has none. */
  readonly signature?: string;
}

/** Returns the reasoning in an answer, or in the earlier answers of a request, in any dialect. */
export function thoughtsIn(body: Json): readonly Thought[] {
  const messages = [
    ...objectsOf(body['messages']),
    ...objectsOf(body['choices']).map(({ message }) => object(message)),
  ];
  const blocks = [...messages, body].flatMap(({ content }) => objectsOf(content));
  const items = [...objectsOf(body['input']), ...objectsOf(body['output'])];
  return [...messages, ...blocks, ...items].flatMap(thoughtOf);
}

function thoughtOf(each: Json): readonly Thought[] {
  if (typeof each['reasoning_content'] === 'string') return [{ text: each['reasoning_content'] }];
  if (each['type'] === 'thinking') return [{ text: String(each['thinking']), signature: String(each['signature']) }];
  if (each['type'] !== 'reasoning') return [];
  const text = objectsOf(each['summary']).map((part) => String(part['text']));
  return [{ text: text.join(''), signature: String(each['encrypted_content']) }];
}
