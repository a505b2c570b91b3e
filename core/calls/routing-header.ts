import type { RoutingFacts } from './call';

export const ROUTING_HEADER = 'X-Tollgate-Routing';

/** The most candidates in the routing header, because common proxies reject longer headers. */
const MAX_CANDIDATES = 8;

/** Returns the ranking of the candidates and the attempts as JSON; undefined unless the client asked for them and its key may debug. */
export function routingHeader({ explained, of, attempts }: RoutingFacts): string | undefined {
  if (explained === undefined) return undefined;
  const candidates = explained.candidates.slice(0, MAX_CANDIDATES);
  const leftOut = explained.leftOut.slice(0, MAX_CANDIDATES);
  return toAscii(JSON.stringify({ ...explained, candidates, of, leftOut, attempts }));
}

/** Escapes all characters that are not printable ASCII, because model names may be any text and a header value must be ASCII. */
function toAscii(json: string): string {
  return json.replace(/[^\x20-\x7e]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
