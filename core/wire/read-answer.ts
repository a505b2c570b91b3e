import { JsonError, JsonScanner } from '../http/json-scanner';
import { parseJson } from '../parse-json';
import { itemHeads } from './item-heads';
import { TopLevelMembers } from './json-members';

/** Larger answers are not parsed as a whole, so their text is not known. */
export const PARSED_AT_MOST_BYTES = 1024 * 1024;

/** The members of a large answer that are read, besides the kinds of the items of its `output`. */
const MEMBERS = ['type', 'status', 'model', 'service_tier', 'usage', 'error', 'id', 'container'];

/**
 * Reads an unstreamed answer while it arrives. Of a large answer it reads only the members that matter, because parsing all of it
 * at once would block every other call.
 */
export class AnswerLook {
  #scan: { readonly members: TopLevelMembers; readonly scanner: JsonScanner } | undefined;
  /** Chunks that were not read yet, because the answer may turn out to be small. */
  #early: Buffer[] = [];
  #byteLength = 0;
  #isJson = true;

  add(chunk: Buffer): void {
    this.#byteLength += chunk.length;
    this.#early.push(chunk);
    if (this.#byteLength <= PARSED_AT_MOST_BYTES) return;
    this.#scan ??= beginScan();
    const { scanner } = this.#scan;
    for (const each of this.#early.splice(0)) this.#try(() => scanner.feed(each));
  }

  /** Returns the JSON of the answer after all bytes have been added; undefined if it is no JSON. */
  read(bytes: Buffer): unknown {
    if (this.#scan === undefined) return parseJson(bytes.toString('utf8'));
    const { scanner, members } = this.#scan;
    this.#try(() => scanner.finish());
    const { isObject, places } = members;
    if (!this.#isJson || !isObject) return undefined;
    const known = MEMBERS.flatMap((name) => {
      const place = places.get(name);
      return place === undefined ? [] : [[name, parseJson(bytes.toString('utf8', place.valueStart, place.end))]];
    });
    const output = places.get('output');
    const heads = output && { output: itemHeads(bytes.subarray(output.valueStart, output.end)) };
    return { ...Object.fromEntries(known), ...heads } as unknown;
  }

  #try(look: () => void): void {
    if (!this.#isJson) return;
    try {
      look();
    } catch (error) {
      if (!(error instanceof JsonError)) throw error;
      this.#isJson = false;
    }
  }
}

function beginScan() {
  const members = new TopLevelMembers();
  return { members, scanner: new JsonScanner(members) };
}

/** Some upstreams report an error with a status of success, and some answer with something else entirely. */
export function isAnswer(body: unknown): boolean {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return false;
  const { error, type } = body as { error?: unknown; type?: unknown };
  return (error === undefined || error === null) && type !== 'error';
}
