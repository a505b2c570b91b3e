import type { Upstream } from './catalog';
import type { ModelCall } from './upstream';

/** The version of the Messages protocol that the gateway sends where the client names none. */
export const USUAL_VERSION = '2023-06-01';

/** The headers that name the version. `protoa-` is the service's own spelling of the vendor's prefix. */
const VERSION_HEADERS = ['anthropic-version', 'protoa-version'] as const;

/** Returns the protocol version of a call; undefined in Chat, which has none. */
export function versionOf({ protocol, headers }: Pick<ModelCall, 'protocol' | 'headers'>): string | undefined {
  if (protocol !== 'messages') return undefined;
  for (const name of VERSION_HEADERS) if (headers[name] !== undefined) return headers[name];
  return USUAL_VERSION;
}

/** Whether an upstream takes calls of a version. An upstream that declares no versions takes all. */
export function takesVersion({ versions }: Pick<Upstream, 'versions'>, version: string | undefined): boolean {
  return versions === undefined || version === undefined || versions.has(version);
}
