import { randomBytes } from 'node:crypto';
import type { Knex } from 'knex';
import type { Payer } from '../../../core/ledger/ledger';
import { accountFrozen } from '../../../core/ledger/unavailable';
import { hashToken } from '../../../core/sign-in/sessions';
import type { Timed } from '../store/queries';

/** The header with the token that opens one port of one sandbox. The token is valid while the API key that created it is. Only its hash is stored. */
export const TOKEN_HEADER = 'x-svc-sandbox-token';

const VALID_FOR_MS = 24 * 3_600_000;
/** The maximum number of tokens of one port. The oldest are deleted first. */
const MAX_TOKENS = 20;

export interface PortPlace {
  readonly sandboxId: string;
  readonly port: number;
}

export async function issueToken(
  { database, now }: Timed,
  { sandboxId, port }: PortPlace,
  { keyId }: Pick<Payer, 'keyId'>,
): Promise<{ readonly token: string; readonly expiresAtMs: number }> {
  const token = randomBytes(32).toString('base64url');
  const nowMs = now();
  const expiresAtMs = nowMs + VALID_FOR_MS;
  await database('sandbox_ports').insert({
    sandbox_id: sandboxId,
    port,
    key_id: keyId,
    token_hash: hashToken(token),
    created_at: new Date(nowMs),
    expires_at: new Date(expiresAtMs),
  });
  const newest = database('sandbox_ports')
    .where({ sandbox_id: sandboxId, port })
    .where('expires_at', '>', new Date(nowMs))
    .orderBy('created_at', 'desc')
    .limit(MAX_TOKENS)
    .select('token_hash');
  await database('sandbox_ports').where({ sandbox_id: sandboxId, port }).whereNotIn('token_hash', newest).delete();
  return { token, expiresAtMs };
}

/** Revokes the tokens of a port. Returns false if there was none. */
export async function revokeTokens(database: Knex, { sandboxId, port }: PortPlace): Promise<boolean> {
  const removed = await database('sandbox_ports').where({ sandbox_id: sandboxId, port }).delete();
  return removed > 0;
}

/**
 * Returns the account that owns the sandbox if the token opens this port of the sandbox; otherwise undefined.
 * @throws FORBIDDEN while the account is frozen
 */
export async function accountOfToken(
  timed: Timed,
  { sandboxId, port }: PortPlace,
  tokenHash: string,
): Promise<string | undefined> {
  const [row]: { account_id: string; status: string }[] = await tokensOfValidKeys(timed)
    .where({ 'token.sandbox_id': sandboxId, 'token.port': port, 'token.token_hash': tokenHash })
    .select('sandboxes.account_id', 'accounts.status');
  if (row?.status === 'frozen') throw accountFrozen();
  return row?.account_id;
}

/** Returns which of these tokens (by hash) still open a port of a sandbox that has not ended. */
export async function stillValid(timed: Timed, tokenHashes: readonly string[]): Promise<ReadonlySet<string>> {
  const rows: { token_hash: string }[] = await tokensOfValidKeys(timed)
    .whereIn('token.token_hash', tokenHashes)
    .where('accounts.status', 'active')
    .whereNotIn('sandboxes.observed_state', ['FAILED', 'TERMINATED'])
    .select('token.token_hash');
  return new Set(rows.map((row) => row.token_hash));
}

/** Selects the tokens of valid keys. Postgres knows a revocation before the ledger does, and before the gateway answers the revoking request. */
function tokensOfValidKeys({ database, now }: Timed): Knex.QueryBuilder {
  const at = new Date(now());
  return database('sandbox_ports as token')
    .join('sandboxes', 'sandboxes.id', 'token.sandbox_id')
    .join('accounts', 'accounts.id', 'sandboxes.account_id')
    .join('api_keys', 'api_keys.id', 'token.key_id')
    .where('api_keys.status', 'active')
    .whereRaw('(api_keys.expires_at IS NULL OR api_keys.expires_at > ?)', [at])
    .where('token.expires_at', '>', at);
}
