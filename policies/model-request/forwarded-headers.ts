import type { IncomingHttpHeaders } from 'node:http';

/** Headers that are never forwarded, whatever prefixes are configured: the client's credentials, its tags, and headers that apply to one hop only. */
const KEPT_HERE =
  /^(?:x-api-key|svc-key|authorization|cookie|proxy-.*|x-forwarded-.*|forwarded|host|connection|keep-alive|te|trailer|transfer-encoding|upgrade|content-length|content-encoding|accept-encoding|idempotency-key|x-svc-(?:require|tags))$/;

/** Returns the client's headers that an upstream receives: content-type, accept, and those with a configured prefix. */
export function headersForUpstreams(headers: IncomingHttpHeaders, prefixes: readonly string[]): Record<string, string> {
  const selected: Record<string, string> = {};
  const hopOnly = hopOnlyNames(headers.connection);
  for (const name in headers) {
    if (name !== 'content-type' && name !== 'accept' && !beginsWithOne(name, prefixes)) continue;
    if (KEPT_HERE.test(name) || hopOnly?.includes(name)) continue;
    const value = headers[name];
    if (value !== undefined) selected[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return selected;
}

function beginsWithOne(name: string, prefixes: readonly string[]): boolean {
  for (const prefix of prefixes) if (name.startsWith(prefix)) return true;
  return false;
}

function hopOnlyNames(connection: string | undefined): readonly string[] | undefined {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined;
  return connection
    .toLowerCase()
    .split(',')
    .map((name) => name.trim());
}
