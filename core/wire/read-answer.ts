import { findMembers, sliceChunks } from './json-members';

/** Larger answers are not parsed as a whole: it would hold up every other call. Their text is not known then. */
export const PARSED_AT_MOST_BYTES = 1024 * 1024;

/** What of a large answer is looked at. */
const MEMBERS = ['type', 'usage', 'error', 'id', 'container'];

/** An unstreamed answer's JSON; of a large one only the members that matter. undefined when it is no JSON. */
export function readAnswer(bytes: Buffer): unknown {
  if (bytes.length <= PARSED_AT_MOST_BYTES) return parseJson(bytes.toString('utf8'));
  const places = findMembers([bytes]);
  if (places === undefined) return undefined;
  const members = MEMBERS.flatMap((name) => {
    const place = places.get(name);
    return place === undefined
      ? []
      : [[name, parseJson(sliceChunks([bytes], place.valueStart, place.end).toString('utf8'))]];
  });
  return Object.fromEntries(members) as unknown;
}

/** undefined when it is no JSON. Python writes NaN and Infinity for counts that went wrong: they are read as unknown. */
export function parseJson(text: string): unknown {
  const read = parseStrictly(text);
  if (read !== undefined) return read;
  const mended = text.replace(NO_NUMBER, 'null');
  return mended === text ? undefined : parseStrictly(mended);
}

const NO_NUMBER = /(?<=[:[,]\s{0,8})-?(?:NaN|Infinity)(?=\s{0,8}[,\]}])/g;

function parseStrictly(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Some upstreams report an error with a status of success, and some answer with something else entirely. */
export function isAnswer(body: unknown): boolean {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return false;
  const { error, type } = body as { error?: unknown; type?: unknown };
  return (error === undefined || error === null) && type !== 'error';
}
