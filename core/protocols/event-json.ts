import { asObject, type JsonObject } from '../base/json-values';
import { parseJson } from '../base/parse-json';
import { parseRaw } from '../http/raw-json';

/** The most characters of an event that the gateway parses although it relays the event unchanged. Parsing a larger event would delay every other call. */
const MAX_PARSED_CHARACTERS = 1_024 * 1_024;

/** The error for an event whose data is no JSON object. */
export class MalformedEvent extends Error {}

/** Finds an event that contains a tool's input as an object instead of a text. */
const INPUT = /"(?:input|arguments|args)"\s*:\s*\{\s*"/;

/**
 * Parses the data of an event. Returns undefined for a native event (one that is relayed unchanged) that is too large to parse. In
 * translated events, inputs of tools keep their JSON text.
 * @throws MalformedEvent
 */
export function parseEvent(data: string, isNative: boolean): JsonObject | undefined {
  if (isNative && data.length > MAX_PARSED_CHARACTERS) return undefined;
  const raw = !isNative && INPUT.test(data) ? parseRaw(Buffer.from(data)) : undefined;
  const event = asObject(raw ?? parseJson(data));
  if (event === undefined) throw new MalformedEvent('an event of the answer is not a JSON object');
  return event;
}
