import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Upstream } from '../catalog/catalog';
import type { UpstreamAdapter } from '../catalog/upstream';

interface Unsigned {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly chunks: readonly Uint8Array[];
}

/** Adds the platform's credential to the headers of a request, and a signature if the adapter signs. Returns the headers. */
export function signedHeaders(
  upstream: Upstream,
  adapter: UpstreamAdapter,
  { method, path, headers, chunks }: Unsigned,
): Unsigned['headers'] | Promise<Unsigned['headers']> {
  const shown = Object.assign(headers, shownCredential(upstream, adapter));
  const { credential, adapterSettings, url } = upstream;
  const { value = '' } = credential;
  const { sign } = adapter;
  if (sign === undefined || value === '') return shown;
  return sha256Of(chunks)
    .then((bodySha256) => sign({ method, url: urlAt(url, path), headers: shown, bodySha256 }, value, adapterSettings))
    .then((signature) => ({ ...shown, ...signature }));
}

/** Returns the address of a path and query at an upstream. It sets URL fields, because in a text a path such as `//x` would name a host. */
export function urlAt(upstream: URL, path: string): URL {
  const address = new URL(upstream);
  const query = path.indexOf('?');
  address.pathname = query === -1 ? path : path.slice(0, query);
  address.search = query === -1 ? '' : path.slice(query);
  return address;
}

/**
 * Returns the headers that contain the credential; no headers if the upstream needs no credential.
 * @throws NoCredential
 */
export function shownCredential(
  { credential: { name, value }, adapterSettings }: Upstream,
  adapter: UpstreamAdapter,
): Unsigned['headers'] {
  if (value === undefined) throw new NoCredential(`the credential "${name}" has no value yet`);
  return value === '' ? {} : adapter.authorize(value, adapterSettings);
}

/** The error for a credential that could not be fetched. No request was sent. */
class NoCredential extends Error {
  override readonly name = 'NoCredential';
  readonly code = 'NO_CREDENTIAL';
}

/** How many bytes are hashed in one step, which takes about a millisecond. */
const HASHED_AT_ONCE_BYTES = 1024 * 1024;

/** Returns the SHA-256 of a body. Other calls are served between the steps for a large body. */
async function sha256Of(chunks: readonly Uint8Array[]): Promise<string> {
  const hash = createHash('sha256');
  let hashedBytes = 0;
  for (const chunk of chunks)
    for (let from = 0; from < chunk.length; from += HASHED_AT_ONCE_BYTES) {
      const piece = chunk.subarray(from, from + HASHED_AT_ONCE_BYTES);
      hash.update(piece);
      hashedBytes += piece.length;
      if (hashedBytes < HASHED_AT_ONCE_BYTES) continue;
      hashedBytes = 0;
      await nextTurn();
    }
  return hash.digest('hex');
}
