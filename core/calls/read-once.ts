import { parseJson } from '../base/parse-json';

/** The most bytes of a body that is parsed. Parsing delays all other calls: 1 MiB takes about 10 ms. */
const MAX_PARSED_BYTES = 1_024 * 1_024;

/** Returns a function that parses a body at its first use. The function returns undefined if the body is too large. */
export function readOnce(chunks: readonly Buffer[], byteLength: number): () => unknown {
  let read: { readonly value: unknown } | undefined;
  return () => {
    if (byteLength > MAX_PARSED_BYTES) return undefined;
    read ??= { value: parseJson(Buffer.concat(chunks, byteLength).toString('utf8')) };
    return read.value;
  };
}
