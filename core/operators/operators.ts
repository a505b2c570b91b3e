import { randomBytes, timingSafeEqual } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { dirname, join } from 'node:path';
import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { hashApiKey, isOperatorToken } from '../accounts/key-format';
import { isDatabaseUnavailable } from '../base/database-availability';
import { fail, GatewayError } from '../base/errors';
import { RecentlyUsed } from '../base/recently-used';
import { StartFailure } from '../base/start-failure';
import { cookieOf, OPERATOR_COOKIE } from '../http/cookies';
import type { Proxies } from '../http/proxies';
import { isLoopbackHost } from '../http/public-url';
import { refuseOtherSites, requireCsrfToken } from '../sign-in/console-requests';
import type { SessionTimes } from '../sign-in/sessions';
import { ADMIN, type OperatorActor } from '../storage/audit';
import {
  beginOperatorSession,
  endOperatorSession,
  findOperatorSession,
  type StoredSession,
  sealedBy,
} from './operator-sessions';
import { mayDo, type OperatorRole } from './roles';
import { findOperatorToken, noteOperatorTokenUse, type OperatorToken } from './tokens';
import { WrongTokens } from './wrong-tokens';

/** The operator whose token a request contains. */
export interface Operator {
  /** The token's name; `admin` for ADMIN_TOKEN. */
  readonly name: string;
  readonly role: OperatorRole;
  /** The operator's name in the audit log. */
  readonly actor: OperatorActor;
  readonly expiresAt: Date | undefined;
}

/** A session of the operator's page, together with its operator. */
export interface OperatorSession extends StoredSession {
  readonly operator: Operator;
}

interface OperatorsOptions {
  /** ADMIN_TOKEN, a token of the role owner that never expires. */
  readonly adminToken: string;
  readonly database: Knex;
  readonly proxies: Proxies;
  readonly log: Logger;
  readonly now?: () => number;
}

/** How long a process accepts a token after last reading it, in ms, if the database is unreachable. Meanwhile the token allows only reading. */
const REMEMBERED_MS = 3_600_000;
const MIN_REMEMBERED = 1_000;
/** How often the last use of a token is stored at most. */
const NOTED_EVERY_MS = 60_000;

interface Remembered {
  /** The operator token as the database had it at the last read; undefined if the database no longer had it. */
  readonly token: OperatorToken | undefined;
  readonly atMs: number;
}

/** Authenticates the tokens of operators, and checks whether a token's role allows a request. */
export class Operators {
  readonly #options: OperatorsOptions;
  readonly #adminHash: Buffer;
  readonly #wrong: WrongTokens;
  readonly #now: () => number;
  readonly #remembered = new RecentlyUsed<Remembered>(MIN_REMEMBERED);

  constructor(options: OperatorsOptions) {
    this.#options = options;
    this.#adminHash = hashed(options.adminToken);
    this.#wrong = new WrongTokens(options.log, options.proxies);
    this.#now = options.now ?? Date.now;
  }

  /**
   * Returns the operator whose token a request contains. It queries the database with every request, because no process may accept a token
   * once its revocation was confirmed. A valid token is accepted even if the same address has sent wrong ones.
   * @throws GatewayError INVALID_API_KEY, ADMIN_TOKEN_SLOWED, OPERATOR_ROLE_NEEDED, or the database's error
   */
  async admit(request: IncomingMessage, needed: OperatorRole): Promise<Operator> {
    const operator = await this.#recognise(request, needed);
    if (!mayDo(operator.role, needed)) throw roleNeeded(operator, needed);
    return operator;
  }

  async #recognise(request: IncomingMessage, needed: OperatorRole): Promise<Operator> {
    const { authorization } = request.headers;
    if (authorization === undefined && sessionTokenOf(request) !== undefined) {
      refuseOtherSites(request);
      return (await this.session(request)).operator;
    }
    const shown = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
    const operator = shown === undefined ? undefined : await this.#find(shown, needed);
    if (operator === undefined) throw this.#wrong.refuse(request, needed);
    return operator;
  }

  /**
   * Creates a session of the operator's page for a token that may read.
   * @throws GatewayError INVALID_API_KEY, ADMIN_TOKEN_SLOWED, OPERATOR_ROLE_NEEDED
   */
  async signIn(request: IncomingMessage, shown: string, times: SessionTimes): Promise<OperatorSession> {
    const operator = await this.#find(shown, 'read');
    if (operator === undefined) throw this.#wrong.refuse(request, 'read', true);
    if (!mayDo(operator.role, 'read')) throw roleNeeded(operator, 'read');
    const hash = hashApiKey(shown);
    const isAdmin = operator === FIRST;
    const begun = await beginOperatorSession(this.#options.database, { hash, isAdmin, actor: operator.actor }, times);
    return { ...begun, operator };
  }

  /**
   * Returns the session of a request. A request that changes something must carry the session's CSRF token. It authenticates the operator
   * token again, because a session ends when its token ends.
   * @throws GatewayError NOT_SIGNED_IN, FORBIDDEN
   */
  async session(request: IncomingMessage): Promise<OperatorSession> {
    const token = sessionTokenOf(request);
    const found = token === undefined ? undefined : await findOperatorSession(this.#options.database, token);
    if (found === undefined) throw fail('NOT_SIGNED_IN');
    const operator = await this.#operatorOf(found);
    if (operator === undefined) throw fail('NOT_SIGNED_IN');
    requireCsrfToken(request, found);
    return { ...found, operator };
  }

  async endSession(session: StoredSession): Promise<void> {
    await endOperatorSession(this.#options.database, session);
  }

  async #operatorOf({ token, operatorToken }: StoredSession): Promise<Operator | undefined> {
    if (operatorToken === sealedBy(token, this.#adminHash.toString())) return FIRST;
    try {
      return await this.#ofHash(operatorToken, 'read');
    } catch (error) {
      if (error instanceof GatewayError && error.code === 'INVALID_API_KEY') return undefined;
      throw error;
    }
  }

  async #find(shown: string, needed: OperatorRole): Promise<Operator | undefined> {
    if (timingSafeEqual(hashed(shown), this.#adminHash)) return FIRST;
    return isOperatorToken(shown) ? this.#ofHash(hashApiKey(shown), needed) : undefined;
  }

  async #ofHash(hash: string, needed: OperatorRole): Promise<Operator | undefined> {
    const token = await this.#read(hash, needed);
    if (token === undefined) return undefined;
    const { id, name, role, expiresAt, revokedAt, lastUsedAt } = token;
    const nowMs = this.#now();
    if (revokedAt !== undefined) throw ended(`"${name}" is revoked`);
    if (expiresAt !== undefined && nowMs >= expiresAt.getTime())
      throw ended(`"${name}" has expired at ${expiresAt.toISOString()}`);
    if (lastUsedAt === undefined || nowMs - lastUsedAt.getTime() >= NOTED_EVERY_MS)
      void noteOperatorTokenUse(this.#options.database, id, new Date(nowMs)).catch(() => undefined);
    return { name, role, actor: `token:${name}`, expiresAt };
  }

  /** Reads a token. While the database is unreachable, it returns the token as last read, because monitoring must continue in an outage. */
  async #read(hash: string, needed: OperatorRole): Promise<OperatorToken | undefined> {
    try {
      const token = await findOperatorToken(this.#options.database, hash);
      const known = this.#remembered.get(hash);
      // A wrong token is not cached, because guesses would displace valid tokens.
      if (token !== undefined || known !== undefined) this.#remembered.set(hash, { token, atMs: this.#now() });
      return token;
    } catch (error) {
      const known = this.#remembered.get(hash);
      const isUsable = known?.token !== undefined && this.#now() - known.atMs < REMEMBERED_MS && mayDo('read', needed);
      if (!isUsable || !isDatabaseUnavailable(error)) throw error;
      return known.token;
    }
  }
}

const FIRST: Operator = { name: ADMIN, role: 'owner', actor: ADMIN, expiresAt: undefined };

function sessionTokenOf(request: IncomingMessage): string | undefined {
  return cookieOf(request, OPERATOR_COOKIE, true) ?? cookieOf(request, OPERATOR_COOKIE, false);
}

function hashed(token: string): Buffer {
  return Buffer.from(hashApiKey(token));
}

function ended(what: string): GatewayError {
  return fail('INVALID_API_KEY', { message: `The operator token ${what}. Use another, or let an owner create one.` });
}

function roleNeeded({ name, role }: Operator, needed: OperatorRole): GatewayError {
  return fail('OPERATOR_ROLE_NEEDED', {
    message: `This needs a token of the role "${needed}"; "${name}" has the role "${role}".`,
    details: { needed, role },
  });
}

interface AdminToken {
  readonly token: string;
  /** The path of the file that contains the token; undefined if the token came from the environment. */
  readonly file: string | undefined;
}

/** The minimum length of a token. It is long because attackers can guess as fast as they open connections. */
const MIN_TOKEN_LENGTH = 24;

/** Refuses to start with a short `ADMIN_TOKEN`. @throws StartFailure if `ADMIN_TOKEN` is too short for an admin listener that other machines reach */
export function refuseShortToken(token: string | undefined, hostname: string): void {
  if (token === undefined || token === '' || token.length >= MIN_TOKEN_LENGTH || isLoopbackHost(hostname)) return;
  throw new StartFailure(
    `ADMIN_TOKEN has ${token.length} characters. Because the admin listener (${hostname}) can be reached from other machines, ` +
      `it needs at least ${MIN_TOKEN_LENGTH}. Make one with \`openssl rand -hex 24\`, or leave the variable out to have one made.`,
  );
}

/** Returns `ADMIN_TOKEN` if it is set, or else the token in the data folder. The first start creates that token in a file that only its owner can read. */
export function readAdminToken(fromEnvironment: string | undefined, dataFolder: string): AdminToken {
  if (fromEnvironment !== undefined && fromEnvironment !== '') return { token: fromEnvironment, file: undefined };
  const file = join(dataFolder, 'admin-token');
  if (!existsSync(file)) {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(file, `${randomBytes(32).toString('base64url')}\n`, { mode: 0o600, flag: 'wx' });
  }
  chmodSync(file, 0o600);
  return { token: readFileSync(file, 'utf8').trim(), file };
}
