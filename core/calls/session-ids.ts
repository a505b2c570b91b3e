import { createHmac } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Knex } from 'knex';

/** Where agents name their session: Claude Code, Codex and OpenCode. The first header that is there counts. */
const SESSION_HEADERS = ['x-claude-code-session-id', 'session-id', 'x-session-id', 'x-session-affinity'] as const;
const AGENT_HEADER = 'x-claude-code-agent-id';

export function sessionOf(headers: IncomingHttpHeaders): string | undefined {
  for (const name of SESSION_HEADERS) {
    const value = textIn(headers[name]);
    if (value !== undefined) return value;
  }
  return undefined;
}

/** Returns which agent of the session sends the call; the main one does not say. */
export function agentOf(headers: IncomingHttpHeaders): string | undefined {
  return textIn(headers[AGENT_HEADER]);
}

/** Other versions of Claude Code write `user_<device>_account_<uuid>_session_<uuid>` instead of JSON. */
const JOINED = /^user_.*_session_(.+)$/s;

/** Returns the session within `metadata.user_id`, which also names device and account. `metadata` is the member's JSON text. */
export function sessionInMetadata(metadata: string | undefined): string | undefined {
  if (metadata === undefined) return undefined;
  const userId = textIn(memberOf(JSON.parse(metadata), 'user_id'));
  if (userId === undefined) return undefined;
  if (!userId.startsWith('{')) return JOINED.exec(userId)?.[1];
  try {
    return textIn(memberOf(JSON.parse(userId), 'session_id'));
  } catch {
    return undefined;
  }
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

function textIn(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

const PLAIN = /^[A-Za-z0-9._:-]{1,64}$/;

/** What usage records keep of the ids of sessions and agents. */
export class SessionIds {
  readonly #secret: string;

  constructor(secret: string) {
    this.#secret = secret;
  }

  /** Returns an id as it is when it looks like one, and a keyed hash of anything else. A recorded id stays as it is. */
  recorded(id: string): string {
    if (PLAIN.test(id)) return id;
    return `hash:${createHmac('sha256', this.#secret).update(id).digest('base64url')}`;
  }
}

/** Reads the key of the hash, which all nodes of an installation share. The migration made it. */
export async function openSessionIds(database: Knex): Promise<SessionIds> {
  const row = await database<{ secret: string }>('session_hash_key').first('secret');
  if (row === undefined) throw new Error('The table session_hash_key is empty. Restore its row from a backup.');
  return new SessionIds(row.secret);
}
