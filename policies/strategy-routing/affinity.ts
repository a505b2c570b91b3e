import { createHash } from 'node:crypto';
import type { CallKey } from '../../core/accounts/identify';
import type { ModelRequest } from '../../core/calls/call';

/** A prompt cache is worth nothing later. */
const REMEMBERED_MS = 3_600_000;
const REMEMBERED_AT_MOST = 100_000;

interface Served {
  readonly upstream: string;
  readonly atMs: number;
}

/** Which upstream served a caller last, so that its prompt cache is used again. Bounded; who was not seen longest is forgotten first. */
export class Affinity {
  /** A Map keeps the order of insertion: the first is the one to forget. */
  readonly #served = new Map<string, Served>();
  readonly #atMost: number;

  constructor(atMost = REMEMBERED_AT_MOST) {
    this.#atMost = atMost;
  }

  find(caller: string, nowMs: number): string | undefined {
    const served = this.#served.get(caller);
    return served !== undefined && nowMs - served.atMs < REMEMBERED_MS ? served.upstream : undefined;
  }

  remember(caller: string, upstream: string, nowMs: number): void {
    this.#served.delete(caller);
    this.#served.set(caller, { upstream, atMs: nowMs });
    if (this.#served.size <= this.#atMost) return;
    for (const oldest of this.#served.keys()) {
      this.#served.delete(oldest);
      return;
    }
  }
}

/**
 * Who is calling for what, as far as the call says it: `metadata.user_id`, else `prompt_cache_key`, else `user`, else the key.
 * A hash: what callers say of their users is not kept.
 */
export function callerOf({ members }: Pick<ModelRequest, 'members'>, key: CallKey, model: string): string {
  const said =
    userIdIn(members.get('metadata')) ?? textIn(members.get('prompt_cache_key')) ?? textIn(members.get('user'));
  return createHash('sha256')
    .update(JSON.stringify([key.keyId, model, said ?? null]))
    .digest('base64');
}

function userIdIn(metadata: string | undefined): string | undefined {
  const parsed = metadata === undefined ? undefined : (JSON.parse(metadata) as { user_id?: unknown } | null);
  const userId = typeof parsed === 'object' ? parsed?.user_id : undefined;
  return typeof userId === 'string' && userId !== '' ? userId : undefined;
}

/** The member's text is what the request scanner kept: valid JSON. */
function textIn(json: string | undefined): string | undefined {
  if (json === undefined || !json.startsWith('"') || json === '""') return undefined;
  return json;
}

/** A number from 0 to 1 that depends on caller and upstream alone: nodes that do not know of each other choose alike. */
export function drawOfCaller(caller: string, upstream: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < caller.length; index += 1) hash = Math.imul(hash ^ caller.charCodeAt(index), 0x01000193);
  for (let index = 0; index < upstream.length; index += 1)
    hash = Math.imul(hash ^ upstream.charCodeAt(index), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  hash = Math.imul(hash ^ (hash >>> 12), 0x297a2d39);
  return ((hash ^ (hash >>> 15)) >>> 0) / 2 ** 32;
}
