import { parseJson } from '../parse-json';

/** Parsing holds up every other call: 1 MiB takes about 10 ms. */
const LARGEST_PARSED_BYTES = 1_024 * 1_024;

/** Returns what parses a body when it is first asked for; undefined where the body is too large for that. */
export function readOnce(chunks: readonly Buffer[], byteLength: number): () => unknown {
  let read: { readonly value: unknown } | undefined;
  return () => {
    if (byteLength > LARGEST_PARSED_BYTES) return undefined;
    read ??= { value: parseJson(Buffer.concat(chunks, byteLength).toString('utf8')) };
    return read.value;
  };
}
