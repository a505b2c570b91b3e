import { parseJson } from '../../core/parse-json';
import { itemHeads } from '../../core/wire/item-heads';
import { findMembers, sliceChunks } from '../../core/wire/json-members';
import { asText, type JsonObject } from './json';

/** What is read of a response that is too large to be parsed: it says again all that was asked and said. */
const READ = ['status', 'model', 'service_tier', 'usage', 'error'];

/** Returns what matters of an event that is too large to be parsed, or undefined when it is no event. */
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
      // Its length is what is counted, and an escape more or less is nothing beside so much text.
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

/** The members of an object, each as its JSON text. */
function membersOf(bytes: Buffer): Readonly<Record<string, Buffer | undefined>> | undefined {
  const places = findMembers([bytes]);
  if (places === undefined) return undefined;
  const members = [...places].map(
    ([name, { valueStart, end }]) => [name, sliceChunks([bytes], valueStart, end)] as const,
  );
  return Object.fromEntries(members);
}
