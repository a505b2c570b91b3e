import { asObject, type JsonObject } from '../base/json-values';
import { parseJson } from '../base/parse-json';
import { parseRaw } from '../http/raw-json';

/** The largest event that is parsed if only its meaning is needed. Parsing more at once would delay every other call. */
const MAX_PARSED_CHARACTERS = 1_024 * 1_024;

/** The data of an event is no JSON object. */
export class MalformedEvent extends Error {}

/** The beginning of a tool's input that stands in an event as an object. */
const INPUT = /"(?:input|arguments|args)"\s*:\s*\{\s*"/;

/**
 * Parses the data of an event. Returns undefined for a native event that is too large to parse. In others the inputs of tools keep
 * their text.
 * @throws MalformedEvent
 */
export function parseEvent(data: string, isNative: boolean): JsonObject | undefined {
  if (isNative && data.length > MAX_PARSED_CHARACTERS) return undefined;
  const raw = !isNative && INPUT.test(data) ? parseRaw(Buffer.from(data)) : undefined;
  const event = asObject(raw ?? parseJson(data));
  if (event === undefined) throw new MalformedEvent('an event of the answer is not a JSON object');
  return event;
}
