import { parseJson } from '../../core/parse-json';
import { findMembers, sliceChunks } from '../../core/wire/json-members';
import { itemHeads } from '../../core/wire/read-answer';
import { asText, type JsonObject } from './json';

/** The members that are read of a response too large to parse, which repeats the whole request and answer. */
const READ = ['status', 'model', 'service_tier', 'usage', 'error'];

/** Returns the needed members of an event that is too large to parse; undefined if it is no event. */
export function readLargeEvent(
  data: string,
  name: string | undefined,
): { readonly type: string; readonly event: JsonObject } | undefined {
  const event = membersOf(Buffer.from(data));
  if (event === undefined) return undefined;
  const { type, response, delta } = event;
  return {
    type: asText(type === undefined ? undefined : parseJson(type.toString())) || (name ?? ''),
    event: {
      // Only its length is counted. The few bytes of escapes do not matter in so much text.
      ...(delta !== undefined && { delta: delta.toString() }),
      ...(response !== undefined && { response: readLargeResponse(response) }),
    },
  };
}

function readLargeResponse(bytes: Buffer): JsonObject {
  const { output, ...members } = membersOf(bytes) ?? {};
  const read = READ.flatMap((name) => {
    const member = members[name];
    return member === undefined ? [] : [[name, parseJson(member.toString())] as const];
  });
  return { ...Object.fromEntries(read), ...(output !== undefined && { output: itemHeads(output) }) };
}

/** Returns the members of an object, each as its JSON text. */
function membersOf(bytes: Buffer): Readonly<Record<string, Buffer | undefined>> | undefined {
  const places = findMembers([bytes]);
  if (places === undefined) return undefined;
  const members = [...places].map(
    ([name, { valueStart, end }]) => [name, sliceChunks([bytes], valueStart, end)] as const,
  );
  return Object.fromEntries(members);
}
