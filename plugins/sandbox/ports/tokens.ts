import { createHash, randomBytes } from 'node:crypto';
import type { Knex } from 'knex';
import type { Timed } from '../store';

/** Opens one port of one sandbox. Only its hash is kept. */
export const TOKEN_HEADER = 'x-svc-sandbox-token';

const VALID_FOR_MS = 24 * 3_600_000;
/** Of one port; the oldest go first. */
const MOST_TOKENS = 20;

export interface PortPlace {
  readonly sandboxId: string;
  readonly port: number;
}

export function hashToken(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

export async function issueToken(
  { database, now }: Timed,
  { sandboxId, port }: PortPlace,
): Promise<{ readonly token: string; readonly expiresAtMs: number }> {
  const token = randomBytes(32).toString('base64url');
  const nowMs = now();
  const expiresAtMs = nowMs + VALID_FOR_MS;
  await database('sandbox_ports').insert({
    sandbox_id: sandboxId,
    port,
    token_hash: hashToken(token),
    created_at: new Date(nowMs),
    expires_at: new Date(expiresAtMs),
  });
  const newest = database('sandbox_ports')
    .where({ sandbox_id: sandboxId, port })
    .where('expires_at', '>', new Date(nowMs))
    .orderBy('created_at', 'desc')
    .limit(MOST_TOKENS)
    .select('token_hash');
  await database('sandbox_ports').where({ sandbox_id: sandboxId, port }).whereNotIn('token_hash', newest).delete();
  return { token, expiresAtMs };
}

/** True when there was one. */
export async function revokeTokens(database: Knex, { sandboxId, port }: PortPlace): Promise<boolean> {
  const removed = await database('sandbox_ports').where({ sandbox_id: sandboxId, port }).delete();
  return removed > 0;
}

/** Whose sandbox the token opens this port of; undefined when it does not. */
export async function accountOfToken(
  { database, now }: Timed,
  { sandboxId, port }: PortPlace,
  tokenHash: string,
): Promise<string | undefined> {
  const [row]: { account_id: string }[] = await database('sandbox_ports')
    .join('sandboxes', 'sandboxes.id', 'sandbox_ports.sandbox_id')
    .where({ sandbox_id: sandboxId, port, token_hash: tokenHash })
    .where('expires_at', '>', new Date(now()))
    .select('sandboxes.account_id');
  return row?.account_id;
}

/** Of these tokens, those that still open a port of a sandbox that has not ended. */
export async function stillValid(
  { database, now }: Timed,
  tokenHashes: readonly string[],
): Promise<ReadonlySet<string>> {
  const rows: { token_hash: string }[] = await database('sandbox_ports')
    .join('sandboxes', 'sandboxes.id', 'sandbox_ports.sandbox_id')
    .whereIn('token_hash', tokenHashes)
    .where('expires_at', '>', new Date(now()))
    .whereNotIn('observed_state', ['FAILED', 'TERMINATED'])
    .select('token_hash');
  return new Set(rows.map((row) => row.token_hash));
}
