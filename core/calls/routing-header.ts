import type { RoutingFacts } from './call';

export const ROUTING_HEADER = 'X-Tollgate-Routing';

/** Common proxies take no longer ones. */
const CANDIDATES_AT_MOST = 8;

/** The choice and what became of it as JSON, for callers who were allowed to ask; undefined for all others. */
export function routingHeader({ explained, of, attempts }: RoutingFacts): string | undefined {
  if (explained === undefined) return undefined;
  const candidates = explained.candidates.slice(0, CANDIDATES_AT_MOST);
  const leftOut = explained.leftOut.slice(0, CANDIDATES_AT_MOST);
  return toAscii(JSON.stringify({ ...explained, candidates, of, leftOut, attempts }));
}

/** Names of models are anybody's text, and a header is ASCII. */
function toAscii(json: string): string {
  return json.replace(/[^\x20-\x7e]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
