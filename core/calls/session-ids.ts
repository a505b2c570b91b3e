import { createHmac } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Knex } from 'knex';
import { memberOf } from '../base/json-values';
import { parseJson } from '../base/parse-json';

/** The headers in which Claude Code, Codex and OpenCode send their session id. The first one present is used. */
const SESSION_HEADERS = ['x-claude-code-session-id', 'session-id', 'x-session-id', 'x-session-affinity'] as const;
const AGENT_HEADER = 'x-claude-code-agent-id';

export function sessionOf(headers: IncomingHttpHeaders): string | undefined {
  for (const name of SESSION_HEADERS) {
    const value = textIn(headers[name]);
    if (value !== undefined) return value;
  }
  return undefined;
}

/** Returns the id of the agent that sends the call within its session; undefined for the main agent, which sends no id. */
export function agentOf(headers: IncomingHttpHeaders): string | undefined {
  return textIn(headers[AGENT_HEADER]);
}

/** The session id in `user_<device>_account_<uuid>_session_<uuid>`, which some versions of Claude Code send instead of JSON. */
const JOINED = /^user_.*_session_(.+)$/s;
/** The beginning of that text, also without a session. */
const DEVICE = /^user_[0-9a-f]{64}_/;

/** What `metadata.user_id` names: the session in the forms of Claude Code, which also name device and account, or else the end user. */
interface NamedInMetadata {
  readonly session?: string | undefined;
  readonly endUser?: string | undefined;
}

/** Returns what `metadata.user_id` names. `metadata` is the member's JSON text. */
export function namedInMetadata(metadata: string | undefined): NamedInMetadata {
  const userId = metadata === undefined ? undefined : textIn(memberOf(JSON.parse(metadata), 'user_id'));
  if (userId === undefined) return NOTHING_NAMED;
  const object = userId.startsWith('{') ? parseJson(userId) : undefined;
  const session = textIn(memberOf(object, 'session_id')) ?? JOINED.exec(userId)?.[1];
  const isOfClaudeCode = session !== undefined || memberOf(object, 'device_id') !== undefined || DEVICE.test(userId);
  return isOfClaudeCode ? { session } : { endUser: userId };
}

const NOTHING_NAMED: NamedInMetadata = {};

function textIn(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

const CACHE_NAME_CHARACTERS = 32;

/** The form of ids that records have unchanged. */
export const PLAIN_ID = /^[A-Za-z0-9._:-]{1,64}$/;

/** Converts clients' session ids and cache names to the forms that the gateway records or sends. The result is the same on every node and after a restart. */
export class SessionIds {
  readonly #secret: string;

  constructor(secret: string) {
    this.#secret = secret;
  }

  /**
   * Returns the id of a session or agent for usage records: unchanged if it looks like an id, otherwise a keyed hash of the text. A
   * recorded id stays unchanged when it is recorded again.
   */
  recorded(id: string): string {
    if (PLAIN_ID.test(id)) return id;
    return `hash:${createHmac('sha256', this.#secret).update(id).digest('base64url')}`;
  }

  /** Returns a cache name that only this account uses, for the vendor's prompt cache. Without `name`, returns the account's default cache name. */
  cacheName(accountId: string, name?: string): string {
    // This hash has another secret key than the hash of recorded session ids, because clients can read their recorded ids.
    const digest = createHmac('sha256', `cache ${this.#secret}`).update(JSON.stringify([accountId, name]));
    return digest.digest('hex').slice(0, CACHE_NAME_CHARACTERS);
  }
}

/** Reads the secret key for the hashes, which all nodes of an installation share. A database migration created it. */
export async function openSessionIds(database: Knex): Promise<SessionIds> {
  const row = await database<{ secret: string }>('session_hash_key').first('secret');
  if (row === undefined) throw new Error('The table session_hash_key is empty. Restore its row from a backup.');
  return new SessionIds(row.secret);
}
