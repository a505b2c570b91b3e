import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isLoopbackHost } from '../http/public-url';
import { StartFailure } from '../start-failure';

export interface AdminToken {
  readonly token: string;
  /** The file that keeps the token; undefined if it came from the environment. */
  readonly file: string | undefined;
}

/** What other machines can guess at the rate of new connections must be long. */
const SHORTEST = 24;

/** @throws StartFailure if `ADMIN_TOKEN` is too short for an admin listener that other machines reach */
export function refuseShortToken(token: string | undefined, hostname: string): void {
  if (token === undefined || token === '' || token.length >= SHORTEST || isLoopbackHost(hostname)) return;
  throw new StartFailure(
    `ADMIN_TOKEN has ${token.length} characters. Because the admin listener (${hostname}) can be reached from other machines, ` +
      `it needs at least ${SHORTEST}. Make one with \`openssl rand -hex 24\`, or leave the variable out to have one made.`,
  );
}

/** Returns `ADMIN_TOKEN`, or a token that is made at the first start and kept in the data folder, readable only by the file's owner. */
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
