import type { Knex } from 'knex';
import { displayParts, hashApiKey, makeOperatorToken } from '../accounts/key-format';
import { fail } from '../base/errors';
import { newId } from '../base/ids';
import { writeAudit } from '../storage/audit';
import { idIs, newestPage, type Page, type PageRequest } from '../storage/page';
import type { OperatorRole } from './roles';

/** A named operator token, without its secret. */
export interface OperatorToken {
  readonly id: string;
  readonly name: string;
  readonly role: OperatorRole;
  /** The token's last four characters. */
  readonly suffix: string;
  readonly createdAt: Date;
  readonly expiresAt: Date | undefined;
  readonly revokedAt: Date | undefined;
  /** When the token was last used, to the minute; undefined if never. */
  readonly lastUsedAt: Date | undefined;
}

type NewOperatorToken = Pick<OperatorToken, 'name' | 'role' | 'expiresAt'>;

interface TokenRow {
  readonly id: string;
  readonly name: string;
  readonly role: OperatorRole;
  readonly hash: string;
  readonly suffix: string;
  readonly created_at: Date;
  readonly expires_at: Date | null;
  readonly revoked_at: Date | null;
  readonly last_used_at: Date | null;
}

/** Creates a token and returns its secret, which is never shown again. @throws CONFLICT if a token has or had the name */
export async function createOperatorToken(
  database: Knex,
  { name, role, expiresAt }: NewOperatorToken,
  actor: string,
): Promise<{ readonly secret: string; readonly token: OperatorToken }> {
  const secret = makeOperatorToken();
  const row: TokenRow = {
    id: newId(),
    name,
    role,
    hash: hashApiKey(secret),
    suffix: displayParts(secret).suffix,
    created_at: new Date(),
    expires_at: expiresAt ?? null,
    revoked_at: null,
    last_used_at: null,
  };
  await database.transaction(async (transaction) => {
    const written = await transaction('operator_tokens').insert(row).onConflict('name').ignore().returning('id');
    if (written.length === 0)
      throw fail('CONFLICT', { param: 'name', message: 'name: a token has or had this name; choose another' });
    const after = { name, role, expiresAt: row.expires_at };
    await writeAudit(transaction, { actor, action: 'token.create', subject: `token:${row.id}`, after });
  });
  return { secret, token: toToken(row) };
}

/** Lists operator tokens, newest first, including revoked and expired ones. */
export async function listOperatorTokens(database: Knex, asked: PageRequest): Promise<Page<OperatorToken>> {
  return newestPage(database<TokenRow>('operator_tokens'), asked, async (row: TokenRow) => toToken(row));
}

/** Revokes a token. Once it resolves, every node refuses the token. Safe to repeat. @throws NOT_FOUND */
export async function revokeOperatorToken(database: Knex, id: string, actor: string): Promise<OperatorToken> {
  return database.transaction(async (transaction) => {
    const before = await transaction<TokenRow>('operator_tokens').where(idIs(id)).forUpdate().first();
    if (before === undefined) throw fail('NOT_FOUND', { message: 'No operator token has this id.' });
    if (before.revoked_at !== null) return toToken(before);
    const row: TokenRow = { ...before, revoked_at: new Date() };
    await transaction('operator_tokens').where({ id }).update({ revoked_at: row.revoked_at });
    const { name, role } = row;
    await writeAudit(transaction, { actor, action: 'token.revoke', subject: `token:${id}`, before: { name, role } });
    return toToken(row);
  });
}

export async function findOperatorToken(database: Knex, hash: string): Promise<OperatorToken | undefined> {
  const row: TokenRow | undefined = await database('operator_tokens').where({ hash }).first();
  return row === undefined ? undefined : toToken(row);
}

export async function noteOperatorTokenUse(database: Knex, id: string, at: Date): Promise<void> {
  await database('operator_tokens').where({ id }).update({ last_used_at: at });
}

function toToken(row: TokenRow): OperatorToken {
  return {
    id: row.id,
    name: row.name,
    role: row.role,
    suffix: row.suffix,
    createdAt: row.created_at,
    expiresAt: row.expires_at ?? undefined,
    revokedAt: row.revoked_at ?? undefined,
    lastUsedAt: row.last_used_at ?? undefined,
  };
}
