import { randomBytes, timingSafeEqual } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { dirname, join } from 'node:path';

export interface AdminToken {
  readonly token: string;
  /** Where it is kept; undefined when it came from the environment. */
  readonly file: string | undefined;
}

/** `ADMIN_TOKEN`, or one that is made at the first start and kept in the data folder, readable by its owner alone. */
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

export function showsToken(request: IncomingMessage, { token }: AdminToken): boolean {
  const shown = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '')?.[1];
  if (shown === undefined) return false;
  const one = Buffer.from(shown);
  const two = Buffer.from(token);
  return one.length === two.length && timingSafeEqual(one, two);
}
