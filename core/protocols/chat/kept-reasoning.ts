import { asArray, asCount, asObject, asText, type JsonObject } from '../../base/json-values';
import { parseJson } from '../../base/parse-json';

/**
 * What vendors want returned with the next request beside texts, as JSON in a signature. It is either the `extra_content` of the tool call
 * that follows (ai.google.dev, Thought signatures, 2026-11), or OpenRouter's reasoning blocks in their order (openrouter.ai, Reasoning
 * tokens, Preserving reasoning blocks, 2026-11). Nothing else is read, because a client may forge a signature.
 */
export interface KeptReasoning {
  readonly extra_content?: JsonObject | undefined;
  readonly reasoning_details?: readonly JsonObject[];
}

export function readKept(value = ''): KeptReasoning {
  const kept = asObject(parseJson(value));
  return {
    extra_content: asObject(kept?.['extra_content']),
    reasoning_details: asArray(kept?.['reasoning_details']).filter(
      (each) => asObject(each) !== undefined,
    ) as JsonObject[],
  };
}

/** The members of a reasoning block that a stream sends in pieces. */
const CONTINUED: ReadonlySet<string> = new Set(['text', 'summary', 'data']);

/** Appends pieces of `reasoning_details` to blocks. A stream sends all pieces of one block, which share its `index`, before the next block. */
export function addDetails(blocks: Record<string, unknown>[], given: readonly unknown[]): void {
  for (const each of given) {
    const piece = asObject(each) ?? {};
    const last = blocks.at(-1);
    const isNumbered = asCount(piece['index']) !== undefined;
    if (last === undefined || !isNumbered || last['index'] !== piece['index'] || last['type'] !== piece['type'])
      blocks.push({ ...piece });
    else
      for (const [name, value] of Object.entries(piece))
        if (CONTINUED.has(name)) last[name] = asText(last[name]) + asText(value);
        else last[name] = value ?? last[name];
  }
}
