import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export interface AdminToken {
  readonly token: string;
  /** The file that keeps the token; undefined if it came from the environment. */
  readonly file: string | undefined;
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
